"""Changes of routes: into and out of the routers of their listeners, or to wait. Called by the applier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dataplane.table import compile as compiler
from dataplane.table import policies, sites
from dataplane.table.endpoints import is_ready
from dataplane.table.matches import Placement, left, place
from dataplane.table.plans import RoutePlan
from dataplane.table.store import RouteRecord, decode, decode_route, route_of
from dataplane.table.swap import Swap
from gatewright.wire.v1 import route_pb2


def change_route(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`. A version whose backends have no endpoints yet waits; the one before stays meanwhile."""
    record = swap.of.store.routes.get(key)
    if value is None:
        _stop_waiting(swap, key)
        if record is not None:
            _leave(swap, key, record)
            swap.of.store.secret_users.set(key, ())
            swap.of.store.secret_routes.pop(key, None)
        return
    store, interns = swap.of.store, swap.of.interns
    if record is not None and record.is_of(value) and key not in swap.rebuilt_routes:
        _stop_waiting(swap, key)
        swap.refuse_on(key, _refused(record.plan))
        return
    message = route_of(decode(key, value))
    source = message.source
    attached = policies.attached_to_rule(store, source.kind, source.namespace, source.name, message.rule)
    plan = compiler.route_plan(key, message, interns, attached)
    placements = place(message, plan)
    _stop_waiting(swap, key)
    for target in plan.targets:
        if not is_ready(swap, target.backend):
            _wait(swap, key, value, plan)
            return
    standing = _standing(swap, key, message, plan)
    if record is not None:
        _leave(swap, key, record)
    _note_secrets(swap, key, value, message)
    store.routes[key] = RouteRecord(value, message, plan)
    _enter(swap, key, message, placements, plan, standing)
    swap.refuse_on(key, _refused(plan))


def _refused(plan: RoutePlan) -> str:
    """Which of a rule's own policies refuse what they cover, and why."""
    return "; ".join([each.refused for each in plan.policies.inline if each.refused])


def _note_secrets(swap: Swap, key: str, value: bytes, message: route_pb2.Route) -> None:
    store = swap.of.store
    secrets = list(swap.of.interns.secrets(message.policies)) if message.policies else []
    store.secret_users.set(key, secrets)
    if secrets:
        store.secret_routes[key] = value
    else:
        store.secret_routes.pop(key, None)


def rebuilt(swap: Swap) -> Iterator[tuple[str, bytes]]:
    """Routes whose inline policies read a Secret that changed, as changes."""
    for key in swap.rebuilt_routes:
        value = swap.of.store.secret_routes.get(key)
        if value is not None:
            yield key, value


def change_policies(swap: Swap, key: str) -> None:
    """The policies that name a route, or its rule, are others: the same rule with a new plan."""
    store, interns = swap.of.store, swap.of.interns
    record = store.routes[key]
    plan = record.plan
    _, _, namespace, name, _ = key.split("/")
    attached = policies.attached_to_rule(store, plan.kind, namespace, name, plan.rule)
    if attached == plan.policies.attached:
        return
    message = record.placed()
    _leave(swap, key, record)
    new = replace(plan, policies=interns.with_attached(attached, plan.policies))
    standing = _standing(swap, key, message, new)
    store.routes[key] = record.with_plan(new)
    _enter(swap, key, message, place(message, new), new, standing)


def unblocked(swap: Swap) -> Iterator[tuple[str, bytes]]:
    """Routes that waited and may be able to enter now, as changes."""
    for key in swap.unblocked:
        value = swap.of.waiting.get(key)
        if value is not None:
            yield key, value


def _enter(
    swap: Swap,
    key: str,
    message: route_pb2.Route,
    placements: list[Placement],
    plan: RoutePlan,
    standing: sites.Standing,
) -> None:
    store = swap.of.store
    for owner in sites.owners(message):
        store.routes_of.add(owner, key)
    for listener, hostnames in standing.items():
        draft = swap.drafts.get(listener) or swap.draft(listener)
        for hostname in hostnames:
            draft.add(hostname, placements, plan)


def _standing(swap: Swap, key: str, message: route_pb2.Route, plan: RoutePlan) -> sites.Standing:
    """Where a plan stands. What it comes to there is made, since that may take long, before anything is changed."""
    standing = sites.standing(swap.of.store.sites, key, plan.kind, message)
    for listener in standing:
        swap.of.interns.prepare(swap.policies_of(listener).upper, plan.policies)
    return standing


def _leave(swap: Swap, key: str, record: RouteRecord) -> None:
    store, message = swap.of.store, record.placed()
    places = left(message, record.plan)
    for owner in sites.owners(message):
        store.routes_of.remove(owner, key)
    for listener, hostnames in sites.standing(store.sites, key, record.plan.kind, message).items():
        draft = swap.draft(listener)
        for hostname in hostnames:
            draft.remove(hostname, places, record.plan)
    del store.routes[key]


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
