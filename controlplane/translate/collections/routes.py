"""Routes: where they attach, what they say, and both together. Only those with a parent of ours get as far as that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controlplane.derive import Context, Graph
from controlplane.translate import attachment, policy_targets, routes
from controlplane.translate.attachment import Candidate, Parent
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.views import Views
from controlplane.translate.keys import RESOURCE_TYPE, BackendUse, ObjectKey, ResourceKey, route_resource
from controlplane.translate.listeners import GatewayPlan
from controlplane.translate.namespaces import Labels
from controlplane.translate.policy_targets import RouteView
from controlplane.translate.route_kinds import ROUTE_KINDS, RouteKind
from controlplane.translate.routes import PlacedRoute, RouteTranslation


class Routes:
    """All kinds of routes, each with collections of its own."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways, views: Views) -> None:
        self.by_kind = {kind: KindOfRoutes(graph, inputs, gateways, views, row) for kind, row in ROUTE_KINDS.items()}
        self.uses = tuple(each.uses for each in self.by_kind.values())
        """Of backends."""
        self.resources = tuple(each.resources for each in self.by_kind.values())

    def admitted(self, context: Context, gateway: ObjectKey, listener: str) -> int:
        """How many routes a listener admits."""
        return sum(context.count(each.admitted, (gateway, listener)) for each in self.by_kind.values())


class KindOfRoutes:
    """The routes of one kind."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways, views: Views, row: RouteKind) -> None:
        kind = row.kind
        self.row = row
        self._inputs = inputs
        self.objects = inputs.routes[kind]
        self._gateways = gateways
        self._views = views
        self.attachments = graph.map(f"{kind} attachments", self.objects, self._attach)
        self.attached = graph.groups(f"{kind} attached", self.attachments.index("route", lambda key, _: [key]))
        self.translations = graph.map(f"{kind} translations", self.attached, self._translate, routes.untranslated)
        self.placed = graph.map(f"{kind} placed", self.attachments, self._place)
        self.admitted = self.placed.index("admitted by", lambda _, route: route.admitted_by)
        self.uses = self.placed.index("uses", lambda _, route: _uses(route))
        """Of backends."""
        self.unfinished = self.placed.index("unfinished", self._unfinished)
        self.resources = graph.derive(f"{kind} resources", self.placed, lambda _, __, route: _resources(route))
        self.views = graph.map(f"{kind} for policies", self.objects, self._view)

    def _attach(self, context: Context, key: ObjectKey, route: Any) -> tuple[Parent, ...] | None:
        def labels() -> Labels | None:
            return context.fetch(self._views.labels, ObjectKey("", key.namespace))

        candidate = Candidate(self.row.kind, key.namespace, route.spec.hostnames, labels)
        parents = []
        for position, reference in enumerate(route.spec.parent_refs):
            gateway = attachment.gateway_of(reference, key.namespace)
            plan = self._parent(context, gateway, reference.section_name) if gateway is not None else None
            if plan is not None:
                parents.append(attachment.attach(position, reference, plan, candidate))
        return tuple(parents) or None

    def _parent(self, context: Context, gateway: ObjectKey, section: str | None) -> GatewayPlan | None:
        """As much of the Gateway as the reference can mean."""
        if section is not None and (plan := context.fetch(self._gateways.sections, (gateway, section))) is not None:
            return plan
        return context.fetch(self._gateways.plans, gateway)

    def _translate(self, context: Context, key: ObjectKey, _: bool) -> RouteTranslation | None:
        route = context.fetch(self.objects, key)
        if route is None:
            return None
        refused = self._inputs.refused(context, self.row.kind, key)
        if refused is not None:
            return RouteTranslation(refused=refused)
        return routes.translate(context, self._views.backends, self.row, key, route)

    def _place(self, context: Context, key: ObjectKey, parents: tuple[Parent, ...]) -> PlacedRoute | None:
        translation = context.fetch(self.translations, key)
        return routes.placed(self.row, key, translation, parents) if translation is not None else None

    def _unfinished(self, key: ObjectKey, route: PlacedRoute) -> Iterator[ResourceKey]:
        for rule in route.translation.unfinished:
            name = route_resource(self.row.wire, key, rule)
            yield from (ResourceKey(gateway, RESOURCE_TYPE, name) for gateway in route.gateways)

    def _view(self, context: Context, key: ObjectKey, route: Any) -> RouteView:
        parents = context.fetch(self.attachments, key)
        return policy_targets.route_view(route, parents or ())


def _uses(route: PlacedRoute) -> Iterator[BackendUse]:
    return (BackendUse(gateway, backend) for gateway in route.gateways for backend in route.translation.backends)


def _resources(route: PlacedRoute) -> dict[ResourceKey, bytes]:
    return {ResourceKey(gateway, RESOURCE_TYPE, name): data for gateway, name, data in route.resources}
