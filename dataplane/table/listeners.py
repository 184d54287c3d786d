"""Changes of gateways, binds and listeners, and the plans that they make. Called by the applier, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dataplane.chain.filter import Refused
from dataplane.http.rules import DEFAULT, HttpRules
from dataplane.table import compile as compiler
from dataplane.table import security, sites
from dataplane.table.binds import BindPlan
from dataplane.table.draft import RouterDraft
from dataplane.table.limits import LimitsPlan, strictest
from dataplane.table.matches import place
from dataplane.table.router import EMPTY
from dataplane.table.store import decode
from dataplane.table.swap import Swap
from gatewright.attach.parents import Site
from gatewright.wire.v1 import listener_pb2


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
    swap.resited.update(dict.fromkeys(store.listeners_of.of(key)))


def change_listener(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`. The routes of a removed one stay in the store: it may come back."""
    store = swap.of.store
    old = store.listeners.get(key)
    new = None if value is None else _decoded(swap, key, value)
    store.secret_users.set(key, () if new is None else new.tls.certificates)
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
    swap.resited[key] = None
    if old is None:
        swap.of.routers[key] = EMPTY


def _decoded(swap: Swap, key: str, value: bytes) -> listener_pb2.Listener:
    """Raises `Refused`. What a message admits that cannot be read is not known, and may be less than the version before
    did: nothing is admitted until one comes that can be read."""
    try:
        message = decode(key, value).listener
    except Refused:
        old = swap.of.store.listeners.get(key)
        if old is not None:
            old.ClearField("admits")
            swap.resited[key] = None
        raise
    compiler.check_listener(message)
    return message


def _drop(swap: Swap, key: str) -> None:
    del swap.of.store.listeners[key]
    swap.of.store.sites.remove(key)
    swap.of.listener_plans.pop(key, None)
    swap.of.listener_policies.pop(key, None)
    swap.of.security.pop(key, None)
    swap.of.remains.watch(swap.of.routers.pop(key))


def fill(swap: Swap) -> Iterator[None]:
    """Enter the routes that were there before into listeners that are new, or that admit others than before."""
    store = swap.of.store
    for key in swap.resited:
        message = store.listeners.get(key)
        if message is None:
            continue  # removed by the same state
        site = sites.site_of(message, store.binds.get(message.bind))
        if site == store.sites.get(key):
            continue
        store.sites.put(key, site)
        yield from _fill(swap, key, site)


def _fill(swap: Swap, listener: str, site: Site) -> Iterator[None]:
    store = swap.of.store
    upper = swap.policies_of(listener).upper
    draft = swap.drafts[listener] = RouterDraft()
    for key in store.routes_of.of(site.owner):
        record = store.routes[key]
        message = record.placed()
        hostnames = sites.places_at(site, key, record.plan.kind, message)
        if hostnames is not None:
            swap.of.interns.prepare(upper, record.plan.policies)
            placements = place(message, record.plan)
            for hostname in hostnames:
                draft.add(hostname, placements, record.plan)
        yield


def secure(swap: Swap) -> Iterator[None]:
    """Make what listeners need for TLS, of those that changed, or whose settings or certificates did."""
    store = swap.of.store
    for key in sorted(swap.listeners):
        message = store.listeners.get(key)
        if message is None or not security.is_secure(message):
            swap.of.security.pop(key, None)
            continue
        old = swap.of.security.get(key)
        settings = compiler.tls_settings(message, swap.policies_of(key))
        plan = security.plan_of(message, settings, store, old, swap.of.clock)
        if plan is not old:
            swap.of.security[key] = plan
            _say_refused(swap, key, plan.refused, "" if old is None else old.refused)
        yield


def _say_refused(swap: Swap, key: str, reason: str, before: str) -> None:
    """A listener is in force, and part of its TLS cannot be used; or, of one that was `before`, can be again."""
    refused = swap.of.refused
    if reason:
        swap.refused[key] = refused[key] = reason
    elif before and refused.get(key) == before:
        del refused[key]
        swap.accepted = True


def make_plans(swap: Swap) -> Iterator[None]:
    """New plans for the listeners that changed, or whose bind or routes did."""
    store = swap.of.store
    for key in swap.listeners:
        message = store.listeners.get(key)
        bind = None if message is None else store.binds.get(message.bind)
        if message is not None and bind is not None:
            swap.of.listener_plans[key] = compiler.listener_plan(
                key, message, bind, swap.of.routers[key], swap.policies_of(key), swap.of.security.get(key)
            )
            swap.binds.add(message.bind)
        yield


def make_binds(swap: Swap) -> dict[str, BindPlan]:
    """The binds of the next table; one without listeners is not in it, so that no port is opened for none."""
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


def reads_otherwise(changed: Iterable[str], old: Mapping[str, BindPlan], new: Mapping[str, BindPlan]) -> bool:
    """Whether a head may mean something else than before on one of the changed binds (`http/rules`)."""
    return any(key in old and key in new and _rules(old[key]) != _rules(new[key]) for key in changed)


def _rules(bind: BindPlan) -> dict[str, HttpRules]:
    """By hostname, where they are not the default ones."""
    default = () if bind.default is None else (bind.default,)
    plans = (*bind.exact.values(), *bind.wildcards.values(), *default)
    if all(plan.http is DEFAULT for plan in plans):
        return {}
    return {plan.hostname: plan.http for plan in plans}


def limits_of(binds: Mapping[str, BindPlan]) -> LimitsPlan:
    """What holds for the binds of a table together."""
    return strictest(listener.limits for bind in binds.values() for listener in bind.listeners())
