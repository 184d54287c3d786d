"""Statuses: what is known of each object, handed to the module that has the words for it.

They depend on the whole object, not on a view, because each carries its `generation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from controlplane.derive import Context, Graph
from controlplane.translate.backend import backend_tls, gateway_backends, inference_pools
from controlplane.translate.backend.backend_tls import TLSVerdict
from controlplane.translate.backend.backends import BACKEND_NOT_FOUND, GatewayBackendView, unresolved
from controlplane.translate.backend.inference_pools import PoolView
from controlplane.translate.collections.backend_tls import BackendTLS
from controlplane.translate.collections.backends import UsedBackends
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.leading_back import LeadingBack
from controlplane.translate.collections.outcomes import Outcomes
from controlplane.translate.collections.policies import Policies
from controlplane.translate.collections.routes import KindOfRoutes, Routes
from controlplane.translate.collections.views import Views
from controlplane.translate.collections.wanted import WantedObjects
from controlplane.translate.conditions import Condition, StatusBody, joined
from controlplane.translate.consent import NOT_PERMITTED
from controlplane.translate.fleet import RefusalKey
from controlplane.translate.gateway import attachment, parameters
from controlplane.translate.gateway.attachment import ClassListeners
from controlplane.translate.gateway.gateways import ClassView, JoinedSet
from controlplane.translate.gateway.listeners import GatewayPlan
from controlplane.translate.gateway.parameters import ParametersView
from controlplane.translate.gateway.wanted import asked_of
from controlplane.translate.keys import BackendKey, ObjectKey, RouteClass
from controlplane.translate.policy import positions
from controlplane.translate.policy.policy_targets import Attachment
from controlplane.translate.route.placed_routes import PlacedRoute
from controlplane.translate.status import api_versions, backend_tls_status, gateway_status
from controlplane.translate.status.gateway_status import News
from controlplane.translate.status.listener_set_status import ListenerSetReport
from controlplane.translate.status.policy_status import PolicyReport
from controlplane.translate.status.route_status import RouteReport
from gatewright.attach.parents import Owner


class GatewayStatuses:
    """Of GatewayClasses, Gateways and ListenerSets."""

    def __init__(
        self,
        graph: Graph,
        inputs: Inputs,
        views: Views,
        gateways: Gateways,
        routes: Routes,
        wanted: WantedObjects,
    ) -> None:
        self._inputs = inputs
        self._views = views
        self._routes = routes
        self._wanted = wanted
        self.counts = graph.map("attached routes", routes.classes.listeners, self._count)
        """Of each class, at each of the listeners that take it."""
        self.of_classes = graph.map("class statuses", gateways.classes, self._class_status)
        self.of_gateways = graph.map("gateway statuses", gateways.plans, self._gateway_status)
        self.of_sets = graph.map("listener set statuses", gateways.sets, self._set_status)

    def _class_status(self, context: Context, key: ObjectKey, view: ClassView) -> StatusBody | None:
        item = context.fetch(self._inputs.gateway_classes, key)
        if item is None or view.vanished is not None:
            return None
        definitions = [(name.name, version) for name, version in context.fetch_index(self._views.api_versions, ())]
        version = api_versions.supported_version(definitions)
        parameters = context.fetch(self._wanted.of_classes, key)
        refused = view.refused or (parameters if isinstance(parameters, Condition) else None)
        return gateway_status.class_status(refused, version, item.metadata.generation)

    def _gateway_status(self, context: Context, key: ObjectKey, plan: GatewayPlan) -> StatusBody | None:
        item = context.fetch(self._inputs.gateways, key)
        if item is None:
            return None
        news = self._news(context, Owner("Gateway", *key), key)
        asked = asked_of(item)
        report = gateway_status.GatewayReport(plan, news, self._wanted.news(context, key), asked)
        return report.status(item.metadata.generation)

    def _set_status(self, context: Context, key: ObjectKey, joined: JoinedSet) -> StatusBody | None:
        item = context.fetch(self._inputs.listener_sets, key)
        if item is None:
            return None
        news = self._news(context, Owner("ListenerSet", *key), joined.plan.gateway)
        return ListenerSetReport(joined, news).status(item.metadata.generation)

    def _news(self, context: Context, owner: Owner, gateway: ObjectKey) -> News:
        refused = context.fetch_index(self._inputs.refusals_by_gateway, gateway)
        return News(
            context.fetch(self._inputs.fleet, gateway),
            {name.resource: text for name, text in refused},
            self._attached(context, owner),
            lambda secret: context.fetch(self._views.expiring, secret),
        )

    def _count(self, context: Context, key: RouteClass, listeners: ClassListeners) -> Mapping[str, int]:
        counting = self._routes.by_kind[key.kind].counting(context)
        sites = [each.site for each in listeners.distinct]
        return {site.section: attachment.count(key, site.hostname, counting) for site in sites}

    def _attached(self, context: Context, owner: Owner) -> Mapping[str, int]:
        """How many routes each listener of an object takes, by its name."""
        total: Counter[str] = Counter()
        for key in context.fetch_keys(self._routes.classes.by_owner, owner):
            total.update(context.fetch(self.counts, key) or {})
        return total


class ParametersStatuses:
    """Of GatewayParameters."""

    def __init__(self, graph: Graph, inputs: Inputs, wanted: WantedObjects) -> None:
        self._inputs = inputs
        self.of_parameters = graph.map("parameters statuses", wanted.parameters, self._status)

    def _status(self, context: Context, key: ObjectKey, view: ParametersView) -> StatusBody | None:
        item = context.fetch(self._inputs.gateway_parameters, key)
        return None if item is None else parameters.status(view, item)


class RouteStatuses:
    """Of the routes of one kind."""

    def __init__(
        self,
        graph: Graph,
        inputs: Inputs,
        routes: KindOfRoutes,
        policies: Policies,
        outcomes: Outcomes,
        leading_back: LeadingBack,
    ) -> None:
        self._inputs = inputs
        self._leading_back = leading_back
        self._routes = routes
        self._policies = policies
        self._outcomes = outcomes
        self.of_routes = graph.map(f"{routes.row.kind} statuses", routes.placed, self._status)

    def _status(self, context: Context, key: ObjectKey, route: PlacedRoute) -> StatusBody | None:
        item = context.fetch(self._routes.objects, key)
        parents = context.fetch(self._routes.attachments, key)
        if item is None or parents is None:
            return None
        report = RouteReport(
            self._routes.row,
            item,
            parents,
            route,
            lambda gateway, name: context.fetch(self._inputs.refusals, RefusalKey(gateway, name)),
            lambda place: context.fetch(self._outcomes.locks, place) or {},
            lambda route_class: context.fetch(self._outcomes.ways, route_class),
            lambda gateway: self._unusable(context, key, route, gateway),
        )
        return report.status()

    def _unusable(
        self, context: Context, key: ObjectKey, route: PlacedRoute, gateway: ObjectKey
    ) -> Iterator[Condition]:
        """What else is wrong with backends that the route names, at one Gateway."""
        lacking = self._policies.lacking(context, key.namespace, route, gateway)
        if lacking:
            yield Condition("ResolvedRefs", False, NOT_PERMITTED, joined([*lacking]))
        back = self._leading_back.condition(context, self._routes.row.kind, key, gateway)
        if back is not None:
            yield back


class BackendStatuses:
    """Of GatewayBackends."""

    def __init__(self, graph: Graph, inputs: Inputs, views: Views, policies: Policies, used: UsedBackends) -> None:
        self._inputs = inputs
        self._views = views
        self._used = used
        self._closed = policies.consents.closed
        self.of_backends = graph.map("backend statuses", views.gateway_backends, self._status)

    def _status(self, context: Context, key: ObjectKey, view: GatewayBackendView) -> StatusBody | None:
        item = context.fetch(self._inputs.gateway_backends, key)
        if item is None:
            return None
        backend = BackendKey("gatewaybackend", key.namespace, key.name)
        uses = context.fetch_index(self._used.uses_by_backend, backend)
        fleets = [context.fetch(self._inputs.fleet, use.gateway) for use, _ in uses]
        keys = [backend, *(each for each in view.leads if each.part)]
        refusals = [
            text for each in keys for _, text in context.fetch_index(self._inputs.refusals_by_resource, each.resource)
        ]
        closed = [text for use, _ in uses if view.secrets and (text := context.fetch(self._closed, use))]
        missing = [
            f"spec.policies: GatewayBackend {each.object} does not exist"
            for each in view.leads
            if each.kind == "gatewaybackend" and context.fetch(self._views.gateway_backends, each.object) is None
        ]
        if missing and view.unresolved is None:
            view = replace(view, unresolved=unresolved(BACKEND_NOT_FOUND, joined(missing)))
        return gateway_backends.backend_status(view, fleets, refusals, closed, item.metadata.generation)


class PoolStatuses:
    """Of InferencePools."""

    def __init__(self, graph: Graph, inputs: Inputs, views: Views, used: UsedBackends) -> None:
        self._inputs = inputs
        self._used = used
        self.of_pools = graph.map("inference pool statuses", views.pools, self._status)

    def _status(self, context: Context, key: ObjectKey, view: PoolView) -> StatusBody | None:
        item = context.fetch(self._inputs.pools, key)
        if item is None:
            return None
        backend = inference_pools.backend_key(key)
        gateways = [use.gateway for use, _ in context.fetch_index(self._used.uses_by_backend, backend)]
        refusals = {gateway: self._refusals(context, gateway, backend) for gateway in gateways}
        return inference_pools.status(view, refusals, item.metadata.generation)

    def _refusals(self, context: Context, gateway: ObjectKey, backend: BackendKey) -> list[str]:
        text = context.fetch(self._inputs.refusals, RefusalKey(gateway, backend.resource))
        return [] if text is None else [text]


class PolicyStatuses:
    """Of GatewayPolicies."""

    def __init__(self, graph: Graph, inputs: Inputs, policies: Policies, outcomes: Outcomes) -> None:
        self._inputs = inputs
        self._policies = policies
        self._outcomes = outcomes
        self.of_policies = graph.map("policy statuses", policies.attachments, self._status)

    def _status(self, context: Context, key: ObjectKey, where: Attachment) -> StatusBody | None:
        item = context.fetch(self._inputs.gateway_policies, key)
        translation = context.fetch(self._policies.translations, key)
        if item is None or translation is None:
            return None
        report = PolicyReport(
            key,
            translation,
            where,
            context.fetch(self._policies.placed, key),
            [loss for _, loss in context.fetch_index(self._outcomes.losses_of, key)],
            lambda gateway, name: context.fetch(self._inputs.refusals, RefusalKey(gateway, name)),
            lambda place: positions.gateway_of(context, self._policies.targets, place),
        )
        return report.status(item.metadata.generation)


class BackendTLSStatuses:
    """Of BackendTLSPolicies."""

    def __init__(self, graph: Graph, inputs: Inputs, tls: BackendTLS, policies: Policies) -> None:
        self._inputs = inputs
        self._tls = tls.policies
        self._uses = policies.users_by_object
        self.of_policies = graph.map("backend TLS statuses", tls.verdicts, self._status)

    def _status(self, context: Context, key: ObjectKey, verdict: TLSVerdict) -> StatusBody | None:
        item = context.fetch(self._inputs.backend_tls_policies, key)
        if item is None:
            return None
        standings = backend_tls.standings(context, self._tls, self._uses, key, verdict)
        return backend_tls_status.status(verdict, standings, item.metadata.generation)
