"""Where the bytes of a connection, or the datagrams of a UDP session, go: the route of its listener, and a backend by
weight. Pure; what is wrong is a reason, which the log has (docs/operations.md)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.upstream.settings import NO_SETTINGS
from dataplane.upstream.versions import BY_REQUEST

if TYPE_CHECKING:
    from dataplane.table.binds import ListenerPlan
    from dataplane.table.plans import BackendPlan, RoutePlan
    from dataplane.table.table import Table


class Goal(NamedTuple):
    """What was found; `backend` None: nothing, for `reason`."""

    route: RoutePlan | None
    backend: BackendPlan | None
    reason: str = ""
    detail: str = ""


def goal(table: Table, listener: ListenerPlan, server_name: bytes, random: Callable[[], float]) -> Goal:
    """`server_name`: of a TLS connection, in lower case; b"" where none was said. `random` draws from [0, 1)."""
    route = listener.router.stream(server_name)
    if route is None:
        return Goal(None, None, "RouteNotFound")
    targets, weights = route.targets, route.weights
    if not targets or (weights and not weights[-1]):
        return Goal(route, None, "NoValidBackend")
    target = targets[bisect(weights, int(random() * weights[-1]))] if weights else targets[0]
    if not target.backend:
        return Goal(route, None, "InvalidBackend", target.invalid)
    backend = table.backends.get(target.backend)
    if backend is None:
        return Goal(route, None, "InvalidBackend", target.backend)
    policies = route.policies
    if listener.upper is not None and policies.under is not None:  # filled before the swap
        policies = policies.under[listener.upper.number]
    if policies.backend is not NO_SETTINGS:
        backend = backend.under(policies.backend, BY_REQUEST)
    if policies.rules is not None:
        backend = backend.with_rules(policies.rules)
    return Goal(route, backend)


FAILURES: Final = {
    "refused": "BackendRefused",
    "forbidden": "DestinationRefused",
    "dns": "DnsFailed",
    "endpoints": "NoEndpoints",
    "limit": "BackendBusy",
    "connect": "ConnectFailed",
    "tunnel": "TunnelFailed",
}
"""Causes of `upstream.raw` as reasons of the log."""
