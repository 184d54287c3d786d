"""Every collection of the control plane, in reading order: each is made from those above it.

Built once by `Program`. The transforms are the other rooms' functions; here is only what reads what.
"""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.derive import Collection, Context, Graph, Source
from controlplane.translate import (
    attachment,
    backends,
    endpoints,
    gateway_status,
    gateways,
    own_kinds,
    policies,
    policy_targets,
    references,
    route_status,
    routes,
    secrets,
)
from controlplane.translate.attachment import Candidate, Parent
from controlplane.translate.backends import Backends, GatewayBackendView
from controlplane.translate.conditions import StatusBody
from controlplane.translate.endpoints import Address
from controlplane.translate.fleet import FleetView, RefusalKey
from controlplane.translate.gateways import ClassView
from controlplane.translate.keys import (
    ENDPOINT_TYPE,
    RESOURCE_TYPE,
    BackendKey,
    BackendUse,
    ObjectKey,
    ResourceKey,
    SecretUse,
    secret_resource,
)
from controlplane.translate.listeners import GatewayPlan
from controlplane.translate.namespaces import Labels
from controlplane.translate.policies import ClaimKey, PlacedPolicy, PolicyTranslation
from controlplane.translate.policy_status import PolicyReport
from controlplane.translate.policy_targets import Attachment, RouteView, Targets
from controlplane.translate.routes import PlacedRoute, RouteTranslation
from controlplane.translate.secrets import Secrets
from gatewright.api.endpoint_slice import EndpointSlice
from gatewright.api.gateway import Gateway
from gatewright.api.gateway_backend import GatewayBackend
from gatewright.api.gateway_class import GatewayClass
from gatewright.api.gateway_parameters import GatewayParameters
from gatewright.api.gateway_policy import GatewayPolicy
from gatewright.api.http_route import HTTPRoute
from gatewright.api.namespace import Namespace
from gatewright.api.reference_grant import ReferenceGrant
from gatewright.api.secret import Secret
from gatewright.api.service import Service
from gatewright.attach.outcome import Claim, Outcome, Winners, outcome, winners
from gatewright.attach.places import PlaceKey


class Collections:
    """The graph and its collections."""

    def __init__(self) -> None:
        graph = self.graph = Graph()

        # Inputs: objects as decoded, and what is known of the proxies.
        self.gateway_classes: Source[ObjectKey, GatewayClass] = graph.source("GatewayClass")
        self.gateways: Source[ObjectKey, Gateway] = graph.source("Gateway")
        self.http_routes: Source[ObjectKey, HTTPRoute] = graph.source("HTTPRoute")
        self.grants: Source[ObjectKey, ReferenceGrant] = graph.source("ReferenceGrant")
        self.namespaces: Source[ObjectKey, Namespace] = graph.source("Namespace")
        self.services: Source[ObjectKey, Service] = graph.source("Service")
        self.slices: Source[ObjectKey, EndpointSlice] = graph.source("EndpointSlice")
        self.gateway_backends: Source[ObjectKey, GatewayBackend] = graph.source("GatewayBackend")
        self.gateway_policies: Source[ObjectKey, GatewayPolicy] = graph.source("GatewayPolicy")
        self.gateway_parameters: Source[ObjectKey, GatewayParameters] = graph.source("GatewayParameters")
        self.secrets: Source[ObjectKey, Secret] = graph.source("Secret")
        self.fleet: Source[ObjectKey, FleetView] = graph.source("fleet")
        self.refusals: Source[RefusalKey, str] = graph.source("refusals")
        self.refusals_by_gateway = self.refusals.index("gateway", lambda key, _: [key.gateway])
        self.refusals_by_resource = self.refusals.index("resource", lambda key, _: [key.resource])
        self.sources = {
            source.name: source
            for source in (
                self.gateway_classes,
                self.gateways,
                self.http_routes,
                self.grants,
                self.namespaces,
                self.services,
                self.slices,
                self.gateway_backends,
                self.gateway_policies,
                self.gateway_parameters,
                self.secrets,
            )
        }
        """Kind to its source."""

        # Views: objects without what changes nothing (metadata, status, fields nobody reads).
        self.labels = graph.map("labels", self.namespaces, lambda _, __, namespace: _labels(namespace))
        self.classes = graph.map("classes", self.gateway_classes, _class_view)
        self.plans = graph.map("gateways", self.gateways, self._plan)
        self.sections = graph.derive("sections", self.plans, lambda _, __, plan: gateways.sections(plan))
        self.granted = graph.groups("granted", self.grants.index("permissions", references.permissions))
        self.service_views = graph.map("services", self.services, lambda _, __, service: backends.service_view(service))
        self.slice_views = graph.map("slices", self.slices, lambda _, key, each: endpoints.slice_view(key, each))
        self.slices_by_service = self.slice_views.index("service", lambda _, view: [view.service])
        self.backend_views = graph.map(
            "gateway backends", self.gateway_backends, lambda _, __, backend: own_kinds.backend_view(backend)
        )
        self.backends = Backends(self.service_views, self.backend_views, self.granted)
        self.secret_views = graph.map("secrets", self.secrets, lambda _, __, secret: secrets.view(secret))
        self.known_secrets = Secrets(self.secret_views, self.secret_views.index("labels", secrets.labels))

        # Routes: where they attach, what they say, and both together. Only routes with a parent of ours get this far.
        self.attachments = graph.map("attachments", self.http_routes, self._attach)
        self.attached = graph.groups("attached", self.attachments.index("route", lambda key, _: [key]))
        self.translations = graph.map("routes", self.attached, self._translate)
        self.placed = graph.map("placed routes", self.attachments, self._place)
        self.admitted = self.placed.index("admitted by", lambda _, route: route.admitted_by)

        # Policies: as routes. Who wins where is found once for each place, from what changes with no value.
        routes_use = self.placed.index("uses", lambda _, route: _uses(route))
        self.route_views = graph.map("routes for policies", self.http_routes, self._route_view)
        labelled = (self.gateways, self.http_routes, self.services, self.gateway_backends)
        self.targets = Targets(
            self.plans,
            self.route_views,
            self.service_views,
            self.backend_views,
            graph.groups("route uses", routes_use).index(
                "object", lambda use, _: [(use.backend.kind, use.backend.object)]
            ),
            {source.name: source.index("labels", policy_targets.labels) for source in labelled},
        )
        self.policy_attachments = graph.map("policy attachments", self.gateway_policies, self._attach_policy)
        self.policy_translations = graph.map("policies", self.gateway_policies, self._translate_policy)
        self.placed_policies = graph.map("placed policies", self.policy_attachments, self._place_policy)
        self.claims = graph.derive("claims", self.placed_policies, lambda _, key, policy: policies.claims(key, policy))
        self.claims_at = self.claims.index("place", lambda key, _: [key.place])
        self.winners = graph.map("winners", graph.groups("claimed places", self.claims_at), self._winners)
        self.locks = graph.map("locks", self.winners, lambda _, __, found: _locks(found))
        self.losses = graph.map("losses", self.claims, self._loss)
        self.losses_of = self.losses.index("policy", lambda key, _: [key.policy])

        # Backends: only those that routes and policies use, each computed once and sent to the Gateways of these.
        policies_use = self.placed_policies.index("uses", lambda _, policy: _policy_uses(policy))
        self.uses = graph.groups("uses", routes_use, policies_use)
        self.uses_by_backend = self.uses.index("backend", lambda use, _: [use.backend])
        self.used = graph.groups("used backends", self.uses_by_backend)
        self.addresses = graph.map("addresses", self.used, self._addresses)
        self.backend_messages = graph.map("backends", self.used, self._backend)
        self.endpoint_messages = graph.map(
            "endpoints", self.addresses, lambda _, key, found: endpoints.endpoint_resources(key, found)
        )

        # Secrets: in the same way.
        self.secret_uses = graph.groups(
            "secret uses", self.placed_policies.index("secrets", lambda _, policy: _secret_uses(policy))
        )
        self.used_secrets = graph.groups("used secrets", self.secret_uses.index("secret", lambda use, _: [use.secret]))
        self.secret_messages = graph.map("secret messages", self.used_secrets, self._secret)

        # Outputs.
        self.resources: tuple[Collection[ResourceKey, bytes], ...] = (
            graph.derive("gateway resources", self.plans, lambda _, __, plan: gateways.resources(plan)),
            graph.derive("route resources", self.placed, lambda _, __, route: _route_resources(route)),
            graph.derive("policy resources", self.placed_policies, lambda _, __, policy: _policy_resources(policy)),
            graph.derive("secret resources", self.secret_uses, self._secret_resources),
            graph.derive("backend resources", self.uses, self._backend_resources),
            graph.derive("endpoint resources", self.uses, self._endpoint_resources),
        )
        self.statuses: dict[str, Collection[ObjectKey, StatusBody]] = {
            "GatewayClass": graph.map("class statuses", self.classes, self._class_status),
            "Gateway": graph.map("gateway statuses", self.plans, self._gateway_status),
            "HTTPRoute": graph.map("route statuses", self.placed, self._route_status),
            "GatewayBackend": graph.map("backend statuses", self.backend_views, self._backend_status),
            "GatewayPolicy": graph.map("policy statuses", self.policy_attachments, self._policy_status),
            "GatewayParameters": graph.map(
                "parameters statuses", self.gateway_parameters, lambda _, __, item: own_kinds.parameters_status(item)
            ),
        }

    # Views

    def _plan(self, context: Context, key: ObjectKey, gateway: Gateway) -> GatewayPlan | None:
        view = context.fetch(self.classes, ObjectKey("", gateway.spec.gateway_class_name))
        return gateways.plan(key, gateway, view) if view is not None else None

    # Routes

    def _attach(self, context: Context, key: ObjectKey, route: HTTPRoute) -> tuple[Parent, ...] | None:
        def labels() -> Labels | None:
            return context.fetch(self.labels, ObjectKey("", key.namespace))

        candidate = Candidate(routes.KIND, key.namespace, route.spec.hostnames, labels)
        parents = []
        for position, reference in enumerate(route.spec.parent_refs):
            gateway = attachment.gateway_of(reference, key.namespace)
            plan = self._parent(context, gateway, reference.section_name) if gateway is not None else None
            if plan is not None:
                parents.append(attachment.attach(position, reference, plan, candidate))
        return tuple(parents) or None

    def _parent(self, context: Context, gateway: ObjectKey, section: str | None) -> GatewayPlan | None:
        """As much of the Gateway as the reference can mean: a listener added to it moves no route of another one."""
        if section is not None and (plan := context.fetch(self.sections, (gateway, section))) is not None:
            return plan
        return context.fetch(self.plans, gateway)

    def _translate(self, context: Context, key: ObjectKey, _: bool) -> RouteTranslation | None:
        route = context.fetch(self.http_routes, key)
        return routes.translate(context, self.backends, key, route) if route is not None else None

    def _place(self, context: Context, key: ObjectKey, parents: tuple[Parent, ...]) -> PlacedRoute | None:
        translation = context.fetch(self.translations, key)
        return routes.placed(key, translation, parents) if translation is not None else None

    # Policies

    def _route_view(self, context: Context, key: ObjectKey, route: HTTPRoute) -> RouteView:
        parents = context.fetch(self.attachments, key)
        return policy_targets.route_view(route, parents or ())

    def _attach_policy(self, context: Context, key: ObjectKey, policy: GatewayPolicy) -> Attachment:
        return policy_targets.attachment(context, self.targets, key, policy)

    def _translate_policy(self, context: Context, key: ObjectKey, policy: GatewayPolicy) -> PolicyTranslation:
        return policies.translate(context, self.backends, self.known_secrets, key, policy)

    def _place_policy(self, context: Context, key: ObjectKey, where: Attachment) -> PlacedPolicy | None:
        translation = context.fetch(self.policy_translations, key)
        return policies.placed(key, translation, where) if translation is not None else None

    def _winners(self, context: Context, place: PlaceKey, _: bool) -> Winners[ObjectKey]:
        return winners(claim for _, claims in context.fetch_index(self.claims_at, place) for claim in claims)

    def _loss(self, context: Context, key: ClaimKey, claims: tuple[Claim[ObjectKey], ...]) -> Outcome[ObjectKey] | None:
        """What a policy loses at one place."""
        found = outcome(
            claims,
            # What is above matters only as far as it locks.
            lambda place: context.fetch(self.winners if place == key.place else self.locks, place) or {},
            lambda place: policy_targets.above(context, self.targets, place),
        )
        return found if found.conflicts or found.overridden else None

    def _secret(self, context: Context, key: ObjectKey, _: bool) -> bytes | None:
        secret = context.fetch(self.secrets, key)
        return secrets.resource(key, secret.values()) if secret is not None else None

    def _secret_resources(self, context: Context, use: SecretUse, _: bool) -> dict[ResourceKey, bytes]:
        data = context.fetch(self.secret_messages, use.secret)
        return {ResourceKey(use.gateway, RESOURCE_TYPE, secret_resource(use.secret)): data} if data is not None else {}

    # Backends

    def _addresses(self, context: Context, key: BackendKey, _: bool) -> tuple[Address, ...] | None:
        if key.kind != "service":
            return None
        service = context.fetch(self.service_views, key.object)
        port = service.port(key.port) if service is not None else None
        if port is None:
            return None
        slices = (view for _, view in context.fetch_index(self.slices_by_service, key.object))
        return endpoints.addresses(slices, port)

    def _backend(self, context: Context, key: BackendKey, _: bool) -> bytes | None:
        return BACKEND_MESSAGES[key.kind](self, context, key)

    def _service_message(self, context: Context, key: BackendKey) -> bytes | None:
        service = context.fetch(self.service_views, key.object)
        port = service.port(key.port) if service is not None else None
        empty = not context.fetch(self.addresses, key)
        return backends.service_resource(key, port, empty=empty) if port is not None else None

    def _static_message(self, context: Context, key: BackendKey) -> bytes | None:
        view = context.fetch(self.backend_views, key.object)
        return backends.static_resource(key, view) if view is not None else None

    def _backend_resources(self, context: Context, use: BackendUse, _: bool) -> dict[ResourceKey, bytes]:
        data = context.fetch(self.backend_messages, use.backend)
        return {ResourceKey(use.gateway, RESOURCE_TYPE, use.backend.resource): data} if data is not None else {}

    def _endpoint_resources(self, context: Context, use: BackendUse, _: bool) -> dict[ResourceKey, bytes]:
        found = context.fetch(self.endpoint_messages, use.backend) or ()
        return {ResourceKey(use.gateway, ENDPOINT_TYPE, name): data for name, data in found}

    # Statuses

    def _class_status(self, context: Context, key: ObjectKey, view: ClassView) -> StatusBody | None:
        item = context.fetch(self.gateway_classes, key)
        return gateway_status.class_status(view, item.metadata.generation) if item is not None else None

    def _gateway_status(self, context: Context, key: ObjectKey, plan: GatewayPlan) -> StatusBody | None:
        item = context.fetch(self.gateways, key)
        if item is None:
            return None
        refusals = {name.resource: text for name, text in context.fetch_index(self.refusals_by_gateway, key)}
        report = gateway_status.GatewayReport(
            plan,
            context.fetch(self.fleet, key),
            refusals,
            lambda listener: context.count(self.admitted, (key, listener)),
        )
        return report.status(item.metadata.generation)

    def _route_status(self, context: Context, key: ObjectKey, route: PlacedRoute) -> StatusBody | None:
        item, parents = context.fetch(self.http_routes, key), context.fetch(self.attachments, key)
        if item is None or parents is None:
            return None
        return route_status.status(
            item, parents, route, lambda gateway, name: context.fetch(self.refusals, RefusalKey(gateway, name))
        )

    def _backend_status(self, context: Context, key: ObjectKey, view: GatewayBackendView) -> StatusBody | None:
        item = context.fetch(self.gateway_backends, key)
        if item is None:
            return None
        backend = BackendKey("gatewaybackend", key.namespace, key.name)
        fleets = [
            context.fetch(self.fleet, use.gateway) for use, _ in context.fetch_index(self.uses_by_backend, backend)
        ]
        refusals = [text for _, text in context.fetch_index(self.refusals_by_resource, backend.resource)]
        return own_kinds.backend_status(view, fleets, refusals, item.metadata.generation)

    def _policy_status(self, context: Context, key: ObjectKey, where: Attachment) -> StatusBody | None:
        item, translation = context.fetch(self.gateway_policies, key), context.fetch(self.policy_translations, key)
        if item is None or translation is None:
            return None
        report = PolicyReport(
            key,
            translation,
            where,
            context.fetch(self.placed_policies, key),
            [loss for _, loss in context.fetch_index(self.losses_of, key)],
            lambda gateway, name: context.fetch(self.refusals, RefusalKey(gateway, name)),
        )
        return report.status(item.metadata.generation)


BACKEND_MESSAGES = {"service": Collections._service_message, "gatewaybackend": Collections._static_message}


def _labels(namespace: Namespace) -> Labels:
    return tuple(sorted(namespace.metadata.labels.items()))


def _locks(winners: Winners[ObjectKey]) -> Winners[ObjectKey] | None:
    return {setting: claim for setting, claim in winners.items() if claim.override} or None


def _class_view(_: Context, __: ObjectKey, gateway_class: GatewayClass) -> ClassView | None:
    return gateways.class_view(gateway_class) if gateways.is_ours(gateway_class) else None


def _uses(route: PlacedRoute) -> Iterator[BackendUse]:
    return (BackendUse(gateway, backend) for gateway in route.gateways for backend in route.translation.backends)


def _route_resources(route: PlacedRoute) -> dict[ResourceKey, bytes]:
    return {ResourceKey(gateway, RESOURCE_TYPE, name): data for gateway, name, data in route.resources}


def _policy_uses(policy: PlacedPolicy) -> Iterator[BackendUse]:
    return (BackendUse(gateway, backend) for gateway in policy.gateways for backend in policy.translation.backends)


def _secret_uses(policy: PlacedPolicy) -> Iterator[SecretUse]:
    return (SecretUse(gateway, secret) for gateway in policy.gateways for secret in policy.translation.secrets)


def _policy_resources(policy: PlacedPolicy) -> dict[ResourceKey, bytes]:
    return {ResourceKey(gateway, RESOURCE_TYPE, name): data for gateway, name, data in policy.resources}
