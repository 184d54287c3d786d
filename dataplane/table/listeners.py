"""Changes of gateways, binds and listeners, and the plans that they make. Called by the applier, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from dataplane.table import compile as compiler
from dataplane.table.binds import BindPlan
from dataplane.table.matches import place
from dataplane.table.router import EMPTY
from dataplane.table.store import decode
from dataplane.table.swap import Swap


def change_gateway(swap: Swap, key: str, value: bytes | None) -> None:
    """Its names are in the keys of its binds; it is kept so that the store is complete. Raises `Refused`."""
    if value is None:
        swap.of.store.gateways.pop(key, None)
    else:
        decode(key, value)
        swap.of.store.gateways[key] = value


def change_bind(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`."""
    store = swap.of.store
    if value is None:
        if store.binds.pop(key, None) is None:
            return
    else:
        message = decode(key, value).bind
        compiler.check_bind(message)
        if store.binds.get(key) == message:
            return
        store.binds[key] = message
    swap.binds.add(key)
    swap.listeners.update(store.listeners_of.of(key))


def change_listener(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`. The routes of a removed one stay in the store: it may come back."""
    store = swap.of.store
    old = store.listeners.get(key)
    new = None
    if value is not None:
        new = decode(key, value).listener
        compiler.check_listener(new)
    if old == new:
        return
    if old is not None:
        store.listeners_of.remove(old.bind, key)
        swap.binds.add(old.bind)
    if new is None:
        _drop(swap, key)
        return
    store.listeners[key] = new
    store.listeners_of.add(new.bind, key)
    swap.binds.add(new.bind)
    swap.listeners.add(key)
    if old is None:
        swap.of.routers[key] = EMPTY
        swap.new_listeners.append(key)


def _drop(swap: Swap, key: str) -> None:
    del swap.of.store.listeners[key]
    swap.of.listener_plans.pop(key, None)
    swap.of.listener_policies.pop(key, None)
    swap.of.remains.watch(swap.of.routers.pop(key))


def fill_new(swap: Swap) -> Iterator[None]:
    """Enter the routes that were there before their listener."""
    store = swap.of.store
    for listener in swap.new_listeners:
        draft = swap.draft(listener)
        if draft is None:
            continue  # removed by the same state
        for key in store.routes_of.of(listener):
            record = store.routes[key]
            message = record.placed()
            placements = place(message, record.plan)
            swap.of.interns.settle(swap.policies_of(listener).upper, record.plan.policies)
            for hostname in compiler.hostnames(message):
                draft.add(hostname, placements, record.plan)
            yield


def make_plans(swap: Swap) -> None:
    """New plans for the listeners that changed, or whose bind or routes did."""
    store = swap.of.store
    for key in swap.listeners:
        message = store.listeners.get(key)
        bind = None if message is None else store.binds.get(message.bind)
        if message is not None and bind is not None:
            swap.of.listener_plans[key] = compiler.listener_plan(
                key, message, bind, swap.of.routers[key], swap.policies_of(key)
            )
            swap.binds.add(message.bind)


def make_binds(swap: Swap) -> dict[str, BindPlan]:
    """The binds of the next table; one without listeners is not in it, so that no port is opened for nobody."""
    store = swap.of.store
    binds = dict(swap.of.current.table.binds)
    for key in swap.binds:
        binds.pop(key, None)
        swap.of.conflicts.pop(key, None)
        message = store.binds.get(key)
        listeners = sorted(store.listeners_of.of(key))
        if message is None or not listeners:
            continue
        plans = [swap.of.listener_plans[listener] for listener in listeners]
        binds[key], refused = compiler.bind_plan(key, message, plans)
        swap.refused |= refused
        swap.of.conflicts[key] = refused
    return binds
