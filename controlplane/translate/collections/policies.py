"""Policies, as routes: where they attach, what they say, and both together. Who wins is asked in `outcomes`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from controlplane.derive import Context, Graph, Source
from controlplane.translate.collections.consents import PLACES, Consents
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.routes import Routes
from controlplane.translate.collections.views import Views
from controlplane.translate.keys import RESOURCE_TYPE, BackendUse, ObjectKey, Referral, ResourceKey, policy_resource
from controlplane.translate.policy import placed_policies, policies, policy_targets
from controlplane.translate.policy.placed_policies import PlacedPolicy
from controlplane.translate.policy.policies import PolicyTranslation
from controlplane.translate.policy.policy_references import KIND
from controlplane.translate.policy.policy_targets import Attachment, Targets
from controlplane.translate.route.placed_routes import PlacedRoute
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.attach.places import PlaceKey


class Policies:
    """GatewayPolicies."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways, views: Views, routes: Routes) -> None:
        self._views = views
        self._objects = inputs.gateway_policies
        self.translations = graph.map("policies", inputs.gateway_policies, self._translate, policies.untranslated)
        in_routes = graph.groups("referrals in routes", *routes.referrals)
        self.callers = replace(self._targets(inputs, gateways, routes), uses=in_routes.index("object", _object))
        calls = graph.map("calls of policies", self.translations, self._call)
        referrals = graph.groups("referrals", *routes.referrals, calls.index("referrals", _referrals))
        self.leads = referrals.index("use", lambda referral, _: [referral.use])
        """Who leads to a backend at a Gateway."""
        self.users_by_object = referrals.index("object", _object)
        """Gateways with a route to a backend, or with a policy that calls it."""
        self.targets = replace(self.callers, uses=self.users_by_object)
        self.attachments = graph.map("policy attachments", inputs.gateway_policies, self._attach)
        self.consents = Consents(graph, views, self.translations, self.attachments, referrals, self.leads)
        self.placed = graph.map("placed policies", self.attachments, self._place)
        self.uses = self.placed.index("uses", lambda _, policy: _uses(policy))
        """Of backends."""
        placed_secrets = self.placed.index("secrets", lambda _, policy: policy.secrets())
        self.secret_uses = graph.groups("secret uses", placed_secrets, self.consents.uses)
        self._closed = self.placed.index("closed", lambda _, policy: policy.closed_places())
        self.unfinished = self.placed.index("unfinished", _unfinished)
        self.resources = graph.derive("policy resources", self.placed, lambda _, __, policy: _resources(policy))

    def lacking(self, context: Context, namespace: str, route: PlacedRoute, gateway: ObjectKey) -> Collection[str]:
        """Why a Gateway sends nothing to backends that a route of a namespace names: Secrets for them are kept from it.
        Nothing is asked of backends of that namespace, which chose by the route, or of the Gateway's."""
        own = (namespace, gateway.namespace)
        foreign = [backend for backend in route.translation.named if backend.namespace not in own]
        if not foreign:
            return ()
        return dict.fromkeys(
            text for backend in foreign for text in self._closures(context, BackendUse(gateway, backend))
        )

    def _closures(self, context: Context, use: BackendUse) -> Iterator[str]:
        """Of one backend: for its own policies, and for those attached to it."""
        backend = use.backend
        if backend.kind == "gatewaybackend" and (own := context.fetch(self.consents.closed, use)):
            yield own
        sections = ("", str(backend.port)) if backend.kind == "service" else ("", backend.part)
        kind = PLACES[backend.kind]
        for place in (PlaceKey(kind, *backend.object, section) for section in dict.fromkeys(sections)):
            for _, policy in context.fetch_index(self._closed, (use.gateway, place)):
                yield from placed_policies.whys(policy.closed[use.gateway])

    def _targets(self, inputs: Inputs, gateways: Gateways, routes: Routes) -> Targets:
        labelled: tuple[Source[ObjectKey, Any], ...] = (
            inputs.gateways,
            inputs.listener_sets,
            *inputs.routes.values(),
            inputs.services,
            inputs.gateway_backends,
        )
        return Targets(
            gateways.plans,
            gateways.sets,
            {kind: each.views for kind, each in routes.by_kind.items()},
            self._views.services,
            self._views.gateway_backends,
            None,
            {source.name: source.index("labels", policy_targets.labels) for source in labelled},
        )

    def _attach(self, context: Context, key: ObjectKey, policy: GatewayPolicy) -> Attachment:
        return policy_targets.attachment(context, self.targets, key, policy)

    def _call(self, context: Context, key: ObjectKey, translation: PolicyTranslation) -> tuple[BackendUse, ...] | None:
        """What a policy calls, from each Gateway that it acts on: known before it is asked who uses a backend. One
        that is attached to a backend acts where routes lead to that; what is called makes no calls of its own."""
        policy = context.fetch(self._objects, key) if translation.backends else None
        if policy is None:
            return None
        where = policy_targets.attachment(context, self.callers, key, policy)
        return tuple(BackendUse(gateway, backend) for gateway, _ in where.places for backend in translation.backends)

    def _translate(self, context: Context, key: ObjectKey, policy: GatewayPolicy) -> PolicyTranslation:
        return policies.translate(context, self._views.backends, self._views.tls, key, policy)

    def _place(self, context: Context, key: ObjectKey, where: Attachment) -> PlacedPolicy | None:
        translation = context.fetch(self.translations, key)
        if translation is None:
            return None
        return placed_policies.placed(key, translation, where, lambda use: self.consents.withheld(context, use))


def _referrals(key: ObjectKey, uses: tuple[BackendUse, ...]) -> Iterator[Referral]:
    return (Referral(use, KIND, key.namespace) for use in uses)


def _object(referral: Referral, _: object) -> list[tuple[str, ObjectKey]]:
    return [(referral.use.backend.kind, referral.use.backend.object)]


def _uses(policy: PlacedPolicy) -> Iterator[BackendUse]:
    return (BackendUse(gateway, backend) for gateway in policy.gateways for backend in policy.translation.backends)


def _unfinished(key: ObjectKey, policy: PlacedPolicy) -> Iterator[ResourceKey]:
    for field in policy.translation.refusing if policy.translation.unfinished else ():
        name = policy_resource(key, field)
        yield from (ResourceKey(gateway, RESOURCE_TYPE, name) for gateway in policy.gateways)


def _resources(policy: PlacedPolicy) -> dict[ResourceKey, bytes]:
    return {ResourceKey(gateway, RESOURCE_TYPE, name): data for gateway, name, data in policy.resources}
