"""Changes of policies and Secrets, and what listeners and their routes make of them. Called by the applier.

A policy is one top-level field of one object, with the places that it is attached to. It is built when it arrives, once
for each place where it counts per target, else once; merging is done here, at swap time, never for a request: of each
listener the gateway phase and what its routes inherit, of each distinct set of a rule's own policies what it comes to
below that (`Interns.prepare`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from dataplane.chain.chain import EMPTY
from dataplane.chain.filter import FRONTEND, STEP, Origin, Refused, Row
from dataplane.table.built import Built
from dataplane.table.intern import Interns, settings_of
from dataplane.table.plans import NO_KINDS, NO_LISTENER_POLICIES, NO_POLICIES, ListenerPolicies, RoutePolicies
from dataplane.table.store import (
    PolicyRecord,
    SecretRecord,
    Store,
    decode,
    digest,
    too_new,
)
from dataplane.table.swap import Swap
from dataplane.telemetry.plan import TelemetryPlan
from dataplane.upstream.backend_rules import Rules
from dataplane.upstream.kinds import Position
from dataplane.upstream.settings import NO_SETTINGS, Settings
from gatewright import revisions
from gatewright.attach.merge import Attached, merge, split
from gatewright.attach.parents import Owner
from gatewright.attach.places import Level, ListenerPosition, Phase, PlaceKey, backend_places, key_of, rule_places
from gatewright.wire.v1 import listener_pb2, policy_pb2, resource_pb2

LISTENER_KINDS = ("Gateway", "ListenerSet")
ROUTE_KINDS = ("HTTPRoute", "GRPCRoute")
BACKEND_KINDS = ("Service", "GatewayBackend")

MAX_RULES = 64
"""Rules of a route that a policy may have to find (Gateway API: 16)."""


def change_secret(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`. Policies that read it are built anew."""
    store = swap.of.store
    old = store.secrets.get(key)
    if value is None:
        if store.secrets.pop(key, None) is None:
            return
    else:
        if old is not None and old.digest == digest(value):
            return
        store.secrets[key] = SecretRecord(digest(value), dict(decode(key, value).secret.data))
    for user in list(store.secret_users.of(key)):
        if user.startswith("route/"):
            swap.rebuilt_routes[user] = None
        elif user.startswith("listener/"):
            swap.listeners.add(user)
        elif user.startswith("backend/"):
            swap.rebuilt_backends[user] = None
        elif user.startswith("mesh/"):
            swap.is_mesh_new = True
        else:
            swap.rebuilt_policies[user] = None


def change_policy(swap: Swap, key: str, value: bytes | None) -> None:
    """Raises `Refused`; the last good version stays then. One of a kind that refuses what it covers is entered even so,
    and refuses."""
    store = swap.of.store
    old = store.policies.get(key)
    if value is None:
        if old is not None:
            _remove(swap, key, old)
        store.secret_users.set(key, ())
        return
    if old is not None and old.raw == value and key not in swap.rebuilt_policies:
        swap.refuse_on(key, old.refused)
        return
    store.secret_users.set(key, _secrets(swap.of.interns, key, value))
    new = _record(swap.of.interns, key, value)
    if old is not None:
        _remove(swap, key, old)
    _enter(swap, key, new)
    swap.refuse_on(key, new.refused)


def _secrets(interns: Interns, key: str, value: bytes) -> list[str]:
    """Keys of the Secrets that a policy reads, also of one that cannot be built before they come."""
    message, _ = _decoded(key, value)
    name = message.WhichOneof("field") or ""
    return list(interns.rows[name][1].secrets(getattr(message, name))) if name in interns.rows else []


def rebuild(swap: Swap) -> Iterator[tuple[str, bytes]]:
    """Policies that read a Secret which changed, as changes."""
    for key in swap.rebuilt_policies:
        record = swap.of.store.policies.get(key)
        if record is not None:
            yield key, record.raw


def _record(interns: Interns, key: str, value: bytes) -> PolicyRecord:
    message, refused = _decoded(key, value)
    is_said = bool(message.invalid) and not refused
    try:
        index, row = interns.row(message)
    except Refused as error:  # it may be for security, so it refuses what it covers
        name = key.rpartition("/")[2]
        refused, is_said = refused or str(error), False
        row = Row(name, _unknown, STEP, "unknown to this proxy", refuses=True)
        made = Built(0, row, None, f"{name}: {refused}", _object(message))
        built = {key_of(place): made for place in message.places}
    else:
        if refused and not row.refuses:
            raise Refused(refused)
        message.invalid = message.invalid or refused
        built = _built(interns, message, index, row)
    override = message.inheritance == policy_pb2.INHERITANCE_OVERRIDE
    # What the control plane marked as impossible it says itself, on the policy: this proxy serves what was meant.
    why = "" if is_said else next((each.refused for each in built.values() if each.refused), "")
    return PolicyRecord(value, key.rpartition("/")[2], _phase(message, row), override, message.order, built, why)


def _phase(message: policy_pb2.Policy, row: Row) -> Phase:
    if row.kind == FRONTEND:
        return Phase.FRONTEND
    return Phase.PRE_ROUTING if message.phase == policy_pb2.PHASE_PRE_ROUTING else Phase.POST_ROUTING


def _unknown(config: Any, env: Any) -> Any:
    raise Refused("a policy that this proxy does not know")


def _decoded(key: str, value: bytes) -> tuple[policy_pb2.Policy, str]:
    """A policy, and why it must refuse what it covers although it could be read: it is of a newer proxy's language."""
    try:
        resource = resource_pb2.Resource.FromString(value)
    except DecodeError:
        raise Refused("not a Resource message") from None
    if resource.WhichOneof("kind") == "policy" and resource.key == key and resource.min_revision > revisions.NEWEST:
        return resource.policy, too_new(resource)
    return decode(key, value).policy, ""


def _built(interns: Interns, message: policy_pb2.Policy, index: int, row: Row) -> dict[PlaceKey, Built]:
    """By place. Raises `Refused`, as `Interns.built` does."""
    policy = _object(message)
    content = digest(getattr(message, row.name).SerializeToString(deterministic=True)).hex()
    made: Built | None = None
    built = {}
    for place in map(key_of, message.places):
        if made is None or row.per_target:
            made = interns.built(message, index, row, Origin(policy, row.name, str(place), content))
        built[place] = made
    return built


def _object(message: policy_pb2.Policy) -> str:
    source = message.source
    return f"{source.kind} {source.namespace}/{source.name}"


def _enter(swap: Swap, key: str, record: PolicyRecord) -> None:
    swap.of.store.policies[key] = record
    for place in record.built:
        swap.of.store.policies_at.setdefault(place, {})[key] = None
        _mark(swap, place)


def _remove(swap: Swap, key: str, record: PolicyRecord) -> None:
    store = swap.of.store
    swap.of.interns.has_dropped = True
    del store.policies[key]
    for place in record.built:
        there = store.policies_at[place]
        there.pop(key, None)
        if not there:
            del store.policies_at[place]
        _mark(swap, place)


def _mark(swap: Swap, place: PlaceKey) -> None:
    """What is to be merged anew because of a change at a place."""
    if place.kind in LISTENER_KINDS:
        swap.merged_places.add(place[:3])
    elif place.kind in ROUTE_KINDS:
        swap.merged_routes[place[:3]] = None
    elif place.kind in BACKEND_KINDS:
        for key in swap.of.store.backends_of.of("/".join(place[:3])):
            swap.dirty_backends[key] = None


def attached_to_rule(store: Store, kind: str, namespace: str, name: str, rule: str) -> tuple[Attached[Built], ...]:
    """The policies that name a route or its rule."""
    if not store.policies_at:
        return ()
    found = _attached(store, rule_places(kind, namespace, name, rule))
    return tuple([each for phase, each in found if phase is Phase.POST_ROUTING])


def of_backend(
    interns: Interns, store: Store, position: Position, inline: tuple[Attached[Built], ...]
) -> tuple[Settings, Rules | None, Mapping[str, object]]:
    """What the policies of a backend come to, attached ones and the object's own (`inline`): how it is connected to,
    what they say for its sake, and of what happens in its kind."""
    if not store.policies_at and not inline:
        return NO_SETTINGS, None, NO_KINDS
    kind, namespace, name, sections = position
    found = [each for _, each in _attached(store, backend_places(kind, namespace, name, *sections))]
    return of_inline(interns, (*found, *inline))


def of_inline(
    interns: Interns, attached: tuple[Attached[Built], ...]
) -> tuple[Settings, Rules | None, Mapping[str, object]]:
    """As `of_backend`, of these alone."""
    effective = merge(attached).effective
    return settings_of(effective), interns.rules(effective), interns.of_kind(effective)


def _attached(store: Store, places: Iterable[tuple[Level, PlaceKey]]) -> Iterator[tuple[Phase, Attached[Built]]]:
    for level, place in places:
        for key in store.policies_at.get(place, ()):
            record = store.policies[key]
            yield record.phase, Attached(record.field, level, record.order, record.override, record.built[place])


def marked_routes(swap: Swap) -> Iterator[str]:
    """Keys of the rules whose own policies changed."""
    routes = swap.of.store.routes
    for kind, namespace, name in swap.merged_routes:
        for number in range(MAX_RULES):
            key = f"route/{kind.lower()}/{namespace}/{name}/{number}"
            if key in routes:
                yield key


def merge_listeners(swap: Swap) -> Iterator[None]:
    """Make the policies of each listener that changed or has a place where one did; then those of its routes."""
    store, interns = swap.of.store, swap.of.interns
    changed = set(swap.listeners)
    prepared: set[tuple[int, Owner]] = set()
    for key, message in store.listeners.items():
        position = position_of(store, message)
        if position is None:
            continue
        if key not in changed and not any(place[:3] in swap.merged_places for _, place in position.places()):
            continue
        policies = _of_listener(store, interns, position)
        if policies == swap.of.listener_policies.get(key, NO_LISTENER_POLICIES):
            continue
        swap.listener_policies[key] = policies
        swap.listeners.add(key)
        site = store.sites.get(key)  # one that is not there yet is filled later, with all that this would do
        if policies.upper is None or site is None or (policies.upper.number, site.owner) in prepared:
            continue
        prepared.add((policies.upper.number, site.owner))
        # Of routes that the listener does not take as well: asking would cost more than what is made for nothing.
        for route in store.routes_of.of(site.owner):
            interns.prepare(policies.upper, store.routes[route].plan.policies)
            yield


def of_gateway(store: Store, interns: Interns) -> RoutePolicies:
    """What policies of the Gateway say of connections to backends. Of two (a file beside a controller) the first
    counts, by name."""
    if not store.policies_at:
        return NO_POLICIES
    for key in sorted({bind.gateway for bind in store.binds.values()}):
        namespace, _, name = key.removeprefix("gateway/").partition("/")
        places = [(Level.GATEWAY, PlaceKey("Gateway", namespace, name))]
        attached = [each for phase, each in _attached(store, places) if phase is Phase.POST_ROUTING]
        return interns.of_backends(attached) if attached else NO_POLICIES
    return NO_POLICIES


def position_of(store: Store, message: listener_pb2.Listener) -> ListenerPosition | None:
    """None for a listener whose bind is not there: it serves no request."""
    bind = store.binds.get(message.bind)
    if bind is None:
        return None
    namespace, _, name = bind.gateway.removeprefix("gateway/").partition("/")
    source = message.source
    listener_set = (source.namespace, source.name) if source.kind == "ListenerSet" else None
    return ListenerPosition((namespace, name), message.name, listener_set)


def _frontend(interns: Interns, effective: dict[str, list[Attached[Built]]]) -> dict[str, Any]:
    """Values of fields of the plan: those of the policies, and what parts of its telemetry come to."""
    fields: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for name, found in effective.items():
        row = interns.rows[name][1]
        whole, _, part = row.plan_field.partition(".")
        (parts if part else fields)[part or whole] = _value(row, [each.value for each in found])
    return fields | {"telemetry": TelemetryPlan(**parts)} if parts else fields


def _value(row: Row, built: list[Built]) -> Any:  # of the plan's field
    """The value of a frontend policy, or those of several that hold at once."""
    values = [row.closed(each.why) if each.refused and row.closed is not None else each.made for each in built]
    return tuple(values) if row.many else values[-1]


def _of_listener(store: Store, interns: Interns, position: ListenerPosition) -> ListenerPolicies:
    if not store.policies_at:
        return NO_LISTENER_POLICIES
    sets = split(_attached(store, position.places()))
    frontend = _frontend(interns, merge(sets[Phase.FRONTEND]).effective)
    upper = interns.upper(sets[Phase.POST_ROUTING])
    early = sets[Phase.PRE_ROUTING]
    refused = frontend["http"].refused if "http" in frontend else ""
    if refused:
        chain = interns.closed("frontend_http", refused)
    else:
        chain = interns.chain(merge(early).effective)[0] if early else EMPTY
    return ListenerPolicies(chain, upper, **frontend)
