"""References of TCP, TLS and UDP routes that lead back to their own Gateway. For statuses and lint: nothing travels
because of it. What has no such route asks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from controlplane.deploy.names import name_of
from controlplane.derive import Context, Graph
from controlplane.translate.collections.backends import UsedBackends
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.routes import KindOfRoutes, Routes
from controlplane.translate.collections.views import Views
from controlplane.translate.conditions import Condition
from controlplane.translate.gateway.attachment import Listening
from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.route import leading_back
from controlplane.translate.route.leading_back import Found, Names, StreamMessage, Taken
from controlplane.translate.route.placed_routes import PlacedRoute
from gatewright.api.checks.own_ports import is_here


class LeadingBack:
    """By Gateway, since the way from one route leads on through others of it."""

    def __init__(self, graph: Graph, inputs: Inputs, views: Views, routes: Routes, used: UsedBackends) -> None:
        self._inputs = inputs
        self._views = views
        self._classes = routes.classes
        self._addresses = used.addresses
        self.kinds = {kind: each for kind, each in routes.by_kind.items() if not each.row.reads_content}
        taken = [
            graph.map(f"taken by {kind}", each.placed, partial(self._taken, each)) for kind, each in self.kinds.items()
        ]
        self._by_gateway = [each.index("gateway", lambda _, rules: {rule.gateway for rule in rules}) for each in taken]
        gateways = graph.groups("gateways with connections", *self._by_gateway)
        self.found = graph.map("leading back", gateways, self._found)

    def condition(self, context: Context, kind: str, key: ObjectKey, gateway: ObjectKey) -> Condition | None:
        """`ResolvedRefs` of a route at a Gateway, where one of its references leads back there."""
        if kind not in self.kinds:
            return None
        found = context.fetch(self.found, gateway) or ()
        return leading_back.condition(each for each in found if (each.where.kind, each.where.route) == (kind, key))

    def _found(self, context: Context, gateway: ObjectKey, _: bool) -> tuple[Found, ...] | None:
        routes = (rules for index in self._by_gateway for _, rules in context.fetch_index(index, gateway))
        return leading_back.found([each for rules in routes for each in rules if each.gateway == gateway]) or None

    def _taken(
        self, routes: KindOfRoutes, context: Context, key: ObjectKey, route: PlacedRoute
    ) -> tuple[Taken, ...] | None:
        message = cast(type[StreamMessage], routes.row.message)
        listeners = self._listeners(routes, context, key)
        names = {gateway: self._names(context, gateway) for gateway in listeners}

        def ports(gateway: ObjectKey, backend: BackendKey) -> Iterator[int]:
            return self._ports(context, names[gateway], backend)

        found = leading_back.taken(routes.row.kind, key, message, route.translation, listeners, ports)
        return tuple(found) or None

    def _listeners(self, routes: KindOfRoutes, context: Context, key: ObjectKey) -> dict[ObjectKey, list[Listening]]:
        """Those that take a route, by Gateway."""
        found: dict[ObjectKey, list[Listening]] = {}
        for parent in context.fetch(routes.attachments, key) or ():
            listeners = context.fetch(self._classes.listeners, parent.route_class)
            if parent.refused is None and listeners is not None:
                found.setdefault(parent.gateway, []).extend(listeners.by_parent[parent.number])
        return found

    def _names(self, context: Context, gateway: ObjectKey) -> Names:
        is_made = context.fetch(self._inputs.provisioner, "") is not None
        outcome = context.fetch(self._inputs.outcomes, gateway)
        return Names(
            ObjectKey(gateway.namespace, name_of("Service", gateway.name)) if is_made else None,
            frozenset(value.lower() for _, value in outcome.addresses) if outcome is not None else frozenset(),
        )

    def _ports(self, context: Context, names: Names, backend: BackendKey) -> Iterator[int]:
        """The Gateway's own ports that a backend is."""
        if backend.kind == "gatewaybackend":
            view = context.fetch(self._views.gateway_backends, backend.object)
            address = view.address if view is not None else None
            if address is not None and names.are(address.host):
                yield address.port
        elif backend.object == names.service:
            yield backend.port
        else:
            addresses = context.fetch(self._addresses, backend) or ()
            yield from {each.port for each in addresses if is_here(each.host)}
