"""Changes of endpoints and backends, and the plans that they make. Called by the applier, one resource at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dataplane.chain.filter import Refused
from dataplane.table import compile as compiler
from dataplane.table import policies
from dataplane.table.built import Built
from dataplane.table.parted import grown
from dataplane.table.plans import BackendPlan
from dataplane.table.store import BackendRecord, EndpointRecord, Store, decode, decode_endpoint
from dataplane.table.swap import Swap
from dataplane.upstream import balance
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.kinds import Position
from dataplane.upstream.parts import Part
from dataplane.upstream.settings import NO_SETTINGS
from gatewright.attach.merge import Attached
from gatewright.attach.places import Level
from gatewright.wire.v1 import backend_pb2

NAMED = "named"
"""In place of a kind: what a backend needs whose host is a name."""
STEP = 256
"""Endpoints of one backend that are looked at between two yields (0.1 ms)."""


def change_endpoint(swap: Swap, name: str, value: bytes | None) -> None:
    """Raises `Refused`."""
    store = swap.of.store
    old = store.endpoints.get(name)
    new = None
    if value is not None:
        message = decode_endpoint(name, value)
        compiler.check_endpoint(message)
        workload = message.workload if swap.of.in_mesh else ""
        there = swap.of.carryover.take(message.address, message.port, workload=workload)
        new = EndpointRecord(message.backend, there, tuple(message.zones))
        store.endpoints[name] = new
        store.endpoints_of.add(new.backend, name)
        swap.dirty_backends[new.backend] = None
    if old is not None:
        swap.released.append(old.endpoint)
        swap.dirty_backends[old.backend] = None
        if new is None:
            del store.endpoints[name]
        if new is None or new.backend != old.backend:
            store.endpoints_of.remove(old.backend, name)


def change_backend(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`."""
    store = swap.of.store
    old = store.backends.get(key)
    if value is not None:
        if old is not None and old.raw == value and key not in swap.rebuilt_backends:
            return
        message = decode(key, value).backend
        kind, inner = compiler.kind_of(swap.of.kinds, message)
        kind.check(inner)
        if old is not None and _object(swap, key, old.message) != _object(swap, key, message):
            raise Refused("a backend keeps the object that it was made from")
        inline = swap.of.interns.of_backend(message.policies, key)
        fallback = swap.of.interns.of_backend(message.fallback, key)
        secrets = [*swap.of.interns.secrets((*message.policies, *message.fallback))]
        written = kind.address(inner)
        address, other = compiler.static_address(written), compiler.static_address(written, True)
        static = None if address is None else swap.of.carryover.take(*address)
        secure = None if other is None or other == address else swap.of.carryover.take(*other)
        waits = kind.awaits(inner)
        store.secret_users.set(key, secrets)
        swap.of.interns.has_dropped |= old is not None and bool(old.inline)
        store.backends[key] = BackendRecord(message, value, static, waits, inline, secure, fallback)
        store.backends_of.add(_object(swap, key, message), key)
    elif old is not None:
        swap.of.interns.has_dropped = True
        del store.backends[key]
        store.secret_users.set(key, ())
        store.backends_of.remove(_object(swap, key, old.message), key)
    for endpoint in (old.static, old.secure) if old is not None else ():
        if endpoint is not None:
            swap.released.append(endpoint)
    swap.dirty_backends[key] = None
    whole = key.rpartition("/")[0]
    if whole in store.backends:  # what a part says itself is in the plan of the whole
        swap.dirty_backends[whole] = None


def rebuild(swap: Swap) -> Iterator[tuple[str, bytes]]:
    """Backends whose own policies read a Secret that changed, as changes."""
    for key in swap.rebuilt_backends:
        record = swap.of.store.backends.get(key)
        if record is not None:
            yield key, record.raw


def make_plans(swap: Swap) -> Iterator[None]:
    """New plans for the backends that changed, and word to the routes that waited for them."""
    for key in swap.dirty_backends:
        yield from _make_plan(swap, key)
        if key in swap.of.blocked and is_ready(swap, key):
            swap.unblocked.extend(swap.of.blocked[key])
        yield


def _make_plan(swap: Swap, key: str) -> Iterator[None]:
    store = swap.of.store
    record = store.backends.get(key)
    old = swap.of.backends.get(key)
    if record is None:
        if old is not None:
            del swap.changed_backends()[key]
        return
    if record.static is not None:
        found = [EndpointRecord(key, record.static)]
    else:
        found = []
        for name in store.endpoints_of.of(key):
            found.append(store.endpoints[name])
            if not len(found) % STEP:
                yield
    near, far = by_zone(found, swap.of.zone)
    kind, inner = compiler.kind_of(swap.of.kinds, record.message)
    position = kind.position(key, inner)
    own, rules, of_kind = policies.of_backend(swap.of.interns, store, position, record.inline)
    parts = [_with_own(swap, key, position, record, part, kind.policy) for part in kind.parts(inner)]
    if kind.modules:
        yield from swap.of.load(kind.name)
    new = compiler.backend_plan(
        key,
        record.message,
        swap.of.kinds,
        near,
        own,
        swap.of.interns.system_tls,
        record.secure,
        rules,
        far,
        parts,
        of_kind.get(kind.policy),
        policies.of_inline(swap.of.interns, record.fallback)[0] if record.fallback else NO_SETTINGS,
    )
    if new.host:
        yield from swap.of.load(NAMED)
    if old is not None and old.endpoints:
        for endpoint in set(new.endpoints).difference(old.endpoints):
            balance.warm_up(endpoint)
    if old is None or _said(old) != _said(new):
        backends = swap.changed_backends()
        backends[key] = new
        swap.backends = grown(backends)


def _with_own(swap: Swap, key: str, position: Position, record: BackendRecord, part: Part, policy: str) -> Part:
    """A part with what the policies of the whole say of connecting to it, those that name it alone included, and with
    what all of its policies say in the kind's own field (`policy`)."""
    interns, store = swap.of.interns, swap.of.store
    place = position._replace(sections=(part.selector, part.name))
    own, rules, _ = policies.of_backend(interns, store, place, ())
    own = own.without_steps(policies.of_backend(interns, store, position, ())[0])
    if policy:
        inline = (*record.inline, *_inline_of_part(store, key, part))
        part = replace(part, of_kind=policies.of_backend(interns, store, place, inline)[2].get(policy))
    if not record.inline or part.backend.startswith(f"{key}/"):  # its own Backend has them already
        return replace(part, own=own, rules=rules)
    above, rules_above, _ = policies.of_inline(swap.of.interns, record.inline)
    return replace(part, own=own, rules=rules, above=above.without_steps(), rules_above=rules_above)


def _inline_of_part(store: Store, key: str, part: Part) -> Iterator[Attached[Built]]:
    """What a part that is a Backend of its own says itself."""
    found = store.backends.get(part.backend) if part.backend.startswith(f"{key}/") else None
    if found is not None:
        yield from (each._replace(level=Level.SECTION_INLINE) for each in found.inline)


def _said(plan: BackendPlan) -> tuple[object, ...]:
    """What a plan says beside what its key does."""
    return plan.endpoints, plan.far, plan.host, plan.own, plan.where, plan.rules, plan.of_kind


def by_zone(found: list[EndpointRecord], zone: str) -> tuple[list[Endpoint], list[Endpoint]]:
    """The endpoints to choose from, and those that are for when all of these are evicted. As kube-proxy has it
    (topology aware routing): hints count when each endpoint has one and some are for our zone."""
    if zone and all(each.zones for each in found):
        near = [each.endpoint for each in found if zone in each.zones]
        if near:
            return near, [each.endpoint for each in found if zone not in each.zones]
    return [each.endpoint for each in found], []


def _object(swap: Swap, key: str, message: backend_pb2.Backend) -> str:
    """The object that a backend was made from, as a key."""
    kind, inner = compiler.kind_of(swap.of.kinds, message)
    return "/".join(kind.position(key, inner)[:3])


def is_ready(swap: Swap, backend: str) -> bool:
    """Whether a route to it may enter: it has an endpoint, or is known to have none (requests get 503), or has no
    endpoints of this kind. One that is not there has nothing to wait for: its requests get 500."""
    record = swap.of.store.backends.get(backend)
    return record is None or not record.waits or swap.of.store.endpoints_of.has(backend)
