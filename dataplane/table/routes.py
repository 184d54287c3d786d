"""Changes of routes: into and out of the routers of their listeners, or to wait. Called by the applier."""

from __future__ import annotations

from collections.abc import Iterator

from dataplane.table import compile as compiler
from dataplane.table.endpoints import is_ready
from dataplane.table.matches import Placement, place
from dataplane.table.plans import RoutePlan
from dataplane.table.store import RouteRecord, decode, decode_route
from dataplane.table.swap import Swap
from gatewright.wire.v1 import route_pb2


def change_route(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`. A version whose backends have no endpoints yet waits; the one before stays meanwhile."""
    record = swap.of.store.routes.get(key)
    if value is None:
        _stop_waiting(swap, key)
        if record is not None:
            _leave(swap, key, record)
        return
    if record is not None and record.is_of(value):
        _stop_waiting(swap, key)
        return
    message = decode(key, value).route
    plan = compiler.route_plan(key, message, swap.of.interns)
    placements = place(message, plan)
    _stop_waiting(swap, key)
    for target in plan.targets:
        if not is_ready(swap, target.backend):
            _wait(swap, key, value, plan)
            return
    if record is not None:
        _leave(swap, key, record)
    swap.of.store.routes[key] = RouteRecord(value, message, plan)
    _enter(swap, key, message, placements)


def unblocked(swap: Swap) -> Iterator[tuple[str, bytes]]:
    """Routes that waited and may be able to enter now, as changes."""
    for key in swap.unblocked:
        value = swap.of.waiting.get(key)
        if value is not None:
            yield key, value


def _enter(swap: Swap, key: str, message: route_pb2.Route, placements: list[Placement]) -> None:
    hostnames = compiler.hostnames(message)
    listeners = message.listeners
    for listener in listeners if len(listeners) == 1 else dict.fromkeys(listeners):
        swap.of.store.routes_of.add(listener, key)
        draft = swap.drafts.get(listener) or swap.draft(listener)
        if draft is not None:
            for hostname in hostnames:
                draft.add(hostname, placements)


def _leave(swap: Swap, key: str, record: RouteRecord) -> None:
    message = record.placed()
    placements = place(message, record.plan)
    hostnames = compiler.hostnames(message)
    for listener in dict.fromkeys(message.listeners):
        swap.of.store.routes_of.remove(listener, key)
        draft = swap.draft(listener)
        if draft is not None:
            for hostname in hostnames:
                draft.remove(hostname, placements, record.plan)
    del swap.of.store.routes[key]


def _wait(swap: Swap, key: str, value: bytes, plan: RoutePlan) -> None:
    swap.of.waiting[key] = value
    for target in plan.targets:
        if not is_ready(swap, target.backend):
            swap.of.blocked.setdefault(target.backend, {})[key] = None


def _stop_waiting(swap: Swap, key: str) -> None:
    value = swap.of.waiting.pop(key, None) if swap.of.waiting else None
    if value is None:
        return
    blocked = swap.of.blocked
    for backend in compiler.wanted_backends(decode_route(value)):
        routes = blocked.get(backend)
        if routes is not None:
            routes.pop(key, None)
            if not routes:
                del blocked[backend]
