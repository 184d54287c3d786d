"""Routes: what their parents say to them, what they say themselves, and both together. Only those with a parent managed
by Gatewright get as far as that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from controlplane.derive import Context, Graph
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.views import Views
from controlplane.translate.gateway import attachment
from controlplane.translate.gateway.attachment import ClassAnswer, ClassListeners, Counting, Hostnames, Parent
from controlplane.translate.keys import (
    RESOURCE_TYPE,
    BackendUse,
    ObjectKey,
    Referral,
    ResourceKey,
    RouteClass,
    route_resource,
)
from controlplane.translate.policy import policy_targets
from controlplane.translate.policy.policy_targets import RouteView
from controlplane.translate.route import placed_routes, routes
from controlplane.translate.route.placed_routes import PlacedRoute
from controlplane.translate.route.route_kinds import ROUTE_KINDS, RouteKind
from controlplane.translate.route.routes import RouteTranslation
from gatewright.api.schema.names import GATEWAY_BACKEND
from gatewright.attach.hostnames import route_marks


class Classes:
    """Routes that name the same listeners, and what these say to them: looked at once for all of them."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways) -> None:
        self._parents = gateways.parents
        indexes = [source.index("class", _classes_of(kind)) for kind, source in inputs.routes.items()]
        self.all = graph.groups("route classes", *indexes)
        self.by_owner = self.all.index("owner", lambda key, _: [key.owner])
        self.listeners = graph.map("class listeners", self.all, self._listeners)
        self.answers = graph.map("class answers", self.all, self._answer)
        self.marks = graph.groups("class marks", self.listeners.index("marks", attachment.marks))
        """Marks of hostnames that a listener has."""

    def _listeners(self, context: Context, key: RouteClass, _: bool) -> ClassListeners | None:
        plan = context.fetch(self._parents, key.owner)
        return attachment.class_listeners(key, plan) if plan is not None else None

    def _answer(self, context: Context, key: RouteClass, _: bool) -> ClassAnswer | None:
        plan = context.fetch(self._parents, key.owner)
        return attachment.class_answer(key, plan) if plan is not None else None


def _classes_of(kind: str) -> Any:  # Any: the groups of an index, whose objects are of the kind's own model
    return lambda key, route: attachment.classes(kind, key.namespace, route.spec.parent_refs)


class Routes:
    """All kinds of routes, each with collections of its own."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways, views: Views) -> None:
        self.classes = Classes(graph, inputs, gateways)
        self.by_kind = {
            kind: KindOfRoutes(graph, inputs, self.classes, views, row) for kind, row in ROUTE_KINDS.items()
        }
        self.referrals = tuple(each.referrals for each in self.by_kind.values())
        """To backends."""
        self.resources = tuple(each.resources for each in self.by_kind.values())


class KindOfRoutes:
    """The routes of one kind."""

    def __init__(self, graph: Graph, inputs: Inputs, classes: Classes, views: Views, row: RouteKind) -> None:
        kind = row.kind
        self.row = row
        self._inputs = inputs
        self.objects = inputs.routes[kind]
        self._classes = classes
        self._views = views
        self.attachments = graph.map(f"{kind} attachments", self.objects, self._attach)
        self.attached = graph.groups(f"{kind} attached", self.attachments.index("route", lambda key, _: [key]))
        self.translations = graph.map(f"{kind} translations", self.attached, self._translate, routes.untranslated)
        self.placed = graph.map(f"{kind} placed", self.attachments, self._place)
        self.counted = self.placed.index("class", lambda _, route: route.classes)
        self.marked = self.placed.index("marks", lambda _, route: _marks(route))
        self.referrals = self.placed.index("referrals", lambda key, route: _referrals(kind, key, route))
        """To backends."""
        self.unfinished = self.placed.index("unfinished", self._unfinished)
        self.resources = graph.derive(f"{kind} resources", self.placed, lambda _, __, route: _resources(route))
        self.views = graph.map(f"{kind} for policies", self.objects, self._view)

    def counting(self, context: Context) -> Counting:
        """The routes that are not refused, by class."""
        return Counting(
            lambda key: context.count(self.counted, key),
            lambda key, mark: context.count(self.marked, (key, mark)),
            lambda key, mark: context.fetch_keys(self.marked, (key, mark)),
        )

    def _attach(self, context: Context, key: ObjectKey, route: Any) -> tuple[Parent, ...] | None:
        references = route.spec.parent_refs
        classes = {each.owner: each for each in attachment.classes(self.row.kind, key.namespace, references)}
        hostnames = Hostnames(
            route.spec.hostnames,
            lambda mark: context.fetch(self._classes.marks, mark) is not None,
            lambda key: context.fetch(self._classes.listeners, key),
        )
        parents = []
        for position, parent in attachment.named(key.namespace, references):
            route_class = classes[parent.owner]
            answer = context.fetch(self._classes.answers, route_class)
            if answer is not None:
                parents.append(attachment.attach(position, route_class, parent, answer, hostnames))
        return tuple(parents) or None

    def _translate(self, context: Context, key: ObjectKey, _: bool) -> RouteTranslation | None:
        route = context.fetch(self.objects, key)
        if route is None:
            return None
        refused = self._inputs.refused(context, self.row.kind, key)
        if refused is not None:
            return replace(routes.rest(context, self._views.backends, self.row, key, route), refused=refused)
        return routes.translate(context, self._views.backends, self.row, key, route)

    def _place(self, context: Context, key: ObjectKey, parents: tuple[Parent, ...]) -> PlacedRoute | None:
        translation = context.fetch(self.translations, key)
        return placed_routes.placed(self.row, key, translation, parents) if translation is not None else None

    def _unfinished(self, key: ObjectKey, route: PlacedRoute) -> Iterator[ResourceKey]:
        for rule in route.translation.unfinished:
            name = route_resource(self.row.wire, key, rule)
            yield from (ResourceKey(gateway, RESOURCE_TYPE, name) for gateway in route.gateways)

    def _view(self, context: Context, key: ObjectKey, route: Any) -> RouteView:
        parents = context.fetch(self.attachments, key)
        return policy_targets.route_view(route, parents or ())


def _marks(route: PlacedRoute) -> Iterator[tuple[RouteClass, str]]:
    marks = [mark for mark in route_marks(route.hostnames) if mark]  # all of a class meet listeners for any host
    return ((key, mark) for key in route.classes for mark in marks)


def _referrals(kind: str, key: ObjectKey, route: PlacedRoute) -> Iterator[Referral]:
    """Of the route itself, and of GatewayBackends that bring parts along."""
    made = route.translation
    for gateway in route.gateways:
        for backend in made.named:
            yield Referral(BackendUse(gateway, backend), kind, key.namespace)
        for part, whole in made.brought:
            yield Referral(BackendUse(gateway, part), GATEWAY_BACKEND, *whole)


def _resources(route: PlacedRoute) -> dict[ResourceKey, bytes]:
    return {ResourceKey(gateway, RESOURCE_TYPE, name): data for gateway, name, data in route.resources}
