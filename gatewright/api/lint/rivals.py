"""Policies of a folder that set the same field: which of them has no effect, where, and because of whom.

Called by lint. Who wins is for `gatewright.attach` to say, as it is for the proxies; here the objects are turned into
its words, and its outcome into warnings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gatewright.api.lint import reach
from gatewright.api.lint.sections import port_number, sections
from gatewright.api.objects.gateway_policy import GatewayPolicy, GatewayPolicySpec
from gatewright.api.objects.listener_set import ListenerSet
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.routes.own_fields import own_fields
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.references import ParentReference
from gatewright.api.text.problem import Advice
from gatewright.attach.outcome import Claim, Setting, lock_on, order, outcome, winners
from gatewright.attach.places import ListenerPosition, Phase, PlaceKey

_MOST_NAMED: Final = 3
"""Places that one warning names."""

Found = tuple[ObjectKey, Advice]


def rivals(objects: reach.Objects) -> Iterator[Found]:
    """Fields of policies that others of these files take out, and rules' own fields that an override takes out."""
    policies = [item for item in objects.values() if isinstance(item, GatewayPolicy)]
    claims = {policy.key: list(_claims(policy, objects)) for policy in policies}
    at_place: dict[PlaceKey, list[Claim[ObjectKey]]] = defaultdict(list)
    for claim in (claim for own in claims.values() for claim in own):
        at_place[claim.place].append(claim)
    world = _World(objects, {place: winners(found) for place, found in at_place.items()})
    for policy in policies:
        yield from ((policy.key, advice) for advice in _lost(policy, claims[policy.key], world))
    for item in objects.values():
        if isinstance(item, HTTPRoute):
            yield from ((item.key, advice) for advice in _lost_by_rules(item, world))


class _World:
    """What `attach.outcome` asks for."""

    def __init__(self, objects: reach.Objects, winning: dict[PlaceKey, dict[Setting, Claim[ObjectKey]]]) -> None:
        self._objects = objects
        self._winners = winning

    def winners_at(self, place: PlaceKey) -> dict[Setting, Claim[ObjectKey]]:
        return self._winners.get(place, {})

    def earlier(self, winner: ObjectKey, loser: GatewayPolicy) -> str:
        """Why the one comes before the other."""
        age = self._objects[winner].metadata.creation_timestamp
        if age == loser.metadata.creation_timestamp:
            return "comes first by name"
        return "is older" if age is not None else "has no creationTimestamp, which comes first"

    def above(self, place: PlaceKey) -> Iterator[list[PlaceKey]]:
        """The ways to a place from the Gateways above it."""
        whole = PlaceKey(*place[:3])
        item = self._objects.get(ObjectKey(*place[:3]))
        ways: Iterable[list[PlaceKey]] = ()
        if place.kind == "ListenerSet" and isinstance(item, ListenerSet):
            ways = [[_gateway_of(item)]]
        elif place.kind.endswith("Route") and item is not None:
            ways = self._ways_to_route(item)
        elif place.kind == "Gateway":
            ways = [[]]
        for way in ways:
            yield [*way, whole] if place.section else way

    def _ways_to_route(self, route: Any) -> Iterator[list[PlaceKey]]:  # Any: routes have no class in common
        for parent in route.spec.parent_refs:
            yield from self._listeners(parent, route.key.namespace)

    def _listeners(self, parent: ParentReference, namespace: str) -> Iterator[list[PlaceKey]]:
        key = reach.named(parent, namespace)
        item = self._objects.get(key) if key is not None else None
        if key is None or key.kind not in ("Gateway", "ListenerSet"):
            return
        gateway, owner = PlaceKey(*key), None
        if isinstance(item, ListenerSet):
            gateway, owner = _gateway_of(item), (key.namespace, key.name)
        names = [parent.section_name] if parent.section_name else sections(item) if item is not None else [""]
        for name in names:
            position = ListenerPosition((gateway.namespace, gateway.name), name, owner)
            yield [place for _, place in position.places()]


def _gateway_of(listeners: ListenerSet) -> PlaceKey:
    parent = listeners.spec.parent_ref
    return PlaceKey("Gateway", parent.namespace or listeners.key.namespace, parent.name)


# What policies claim.


def _claims(policy: GatewayPolicy, objects: reach.Objects) -> Iterator[Claim[ObjectKey]]:
    key, spec = policy.key, policy.spec
    age = order(policy.metadata.creation_timestamp, key.namespace, key.name)
    settings = list(_settings(spec))
    for target, section in reach.targets(policy, objects):
        item = objects.get(target)
        if section and item is not None and section not in sections(item):
            continue  # acts nowhere, and is told by sections.unknown_sections
        place = PlaceKey(*target, port_number(item, section) if section and item is not None else section or "")
        yield from (Claim(key, place, each, age, _overrides(spec) and each.phase in _LOCKING) for each in settings)


_LOCKING: Final = (Phase.PRE_ROUTING, Phase.POST_ROUTING)
"""Inheritance is of traffic policies only (spec 1, PolicyStrategy)."""


def _overrides(spec: GatewayPolicySpec) -> bool:
    return spec.strategy is not None and spec.strategy.inheritance == "Override"


def _settings(spec: GatewayPolicySpec) -> Iterator[Setting]:
    traffic = Phase.POST_ROUTING
    if spec.traffic is not None and spec.traffic.phase == "PreRouting":
        traffic = Phase.PRE_ROUTING
    for phase in (Phase.FRONTEND, traffic, Phase.BACKEND):
        section = getattr(spec, phase.section)
        for name in type(section).model_fields if section is not None else ():
            if name != "phase" and getattr(section, name) is not None:
                yield Setting(phase, name)


# What is told.


def _lost(policy: GatewayPolicy, own: list[Claim[ObjectKey]], world: _World) -> Iterator[Advice]:
    """Warnings about one policy: one for each field and rival."""
    found = outcome(own, world.winners_at, world.above)
    taken: dict[tuple[Setting, str], list[PlaceKey]] = defaultdict(list)
    for conflict in found.conflicts:
        why = f"{conflict.winner} sets it there, too, and {world.earlier(conflict.winner, policy)}"
        taken[conflict.setting, why].append(conflict.place)
    for each in found.overridden:
        taken[each.setting, f"{each.winner} on {each.lock} overrides it"].append(each.place)
    for (setting, why), places in taken.items():
        yield Advice(("spec", *str(setting).split(".")), f"has no effect on {_listed(places)}: {why}")


def _listed(places: list[PlaceKey]) -> str:
    every = [str(place) for place in dict.fromkeys(places)]
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _lost_by_rules(route: HTTPRoute, world: _World) -> Iterator[Advice]:
    """What stands in a rule itself is the most specific, and lost to any override above."""
    place = PlaceKey(*route.key)
    for index, rule in enumerate(route.spec.rules):
        for path, setting in own_fields(rule):
            for way in world.above(place):
                here = [*way, place, place._replace(section=rule.name)] if rule.name else [*way, place]
                lock = lock_on(setting, map(world.winners_at, here))
                if lock is not None:
                    message = f"has no effect: {lock.policy} on {lock.place} overrides it"
                    yield Advice(("spec", "rules", index, *path), message)
                    break
