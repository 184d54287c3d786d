"""Settings that have no effect because another policy wins everywhere: read from the collections of outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from controlplane.lint.world import World, key_of
from controlplane.translate.keys import ObjectKey as Key
from controlplane.translate.route.route_kinds import ROUTE_KINDS
from gatewright.api.lint.lint import Found
from gatewright.api.objects.gateway_policy import GatewayPolicy
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Advice
from gatewright.attach.outcome import Claim, Setting, lock_on
from gatewright.attach.places import PlaceKey, rule_places

MOST_NAMED: Final = 3
"""Places that one warning names."""


def of_policies(world: World) -> Iterator[Found]:
    """What `Conflicted` and `Overridden` say of a policy: one warning for each field and winner."""
    for key, item in world.objects.items():
        if not isinstance(item, GatewayPolicy):
            continue
        for (setting, why), places in _taken(world, item).items():
            path = ("spec", *str(setting).split("."))
            yield "no-effect", key, Advice(path, f"has no effect on {_listed(places)}: {why}")


def _taken(world: World, policy: GatewayPolicy) -> dict[tuple[Setting, str], list[PlaceKey]]:
    """Fields, and why they do not count, with the places where they do not."""
    taken: dict[tuple[Setting, str], list[PlaceKey]] = defaultdict(list)
    for _, loss in world.graph.outcomes.losses_of.members(Key(policy.key.namespace, policy.key.name)):
        for conflict in loss.conflicts:
            winner = key_of("GatewayPolicy", conflict.winner)
            why = f"{winner} sets it there, too, and {_earlier(world, winner, policy, conflict.setting)}"
            taken[conflict.setting, why].append(conflict.place)
        for each in loss.overridden:
            winner = key_of("GatewayPolicy", each.winner)
            taken[each.setting, f"{winner} on {each.lock} overrides it"].append(each.place)
    return taken


def _earlier(world: World, winner: ObjectKey, loser: GatewayPolicy, setting: Setting) -> str:
    """Why the one comes before the other."""
    if setting.phase.section == "traffic" and _is_override(world.objects[winner]) and not _is_override(loser):
        return "is an Override"
    age = world.objects[winner].metadata.creation_timestamp
    if age == loser.metadata.creation_timestamp:
        return "comes first by name"
    return "is older" if age is not None else "has no creationTimestamp, which comes first"


def _is_override(policy: Any) -> bool:
    strategy = policy.spec.strategy
    return strategy is not None and strategy.inheritance == "Override"


def _listed(places: list[PlaceKey]) -> str:
    every = [str(place) for place in dict.fromkeys(places)]
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def of_rules(world: World) -> Iterator[Found]:
    """What `Overridden` says of a route: what stands in a rule itself is lost to any override above."""
    for key, item in world.objects.items():
        row = ROUTE_KINDS.get(key.kind)
        route: Any = item  # the model of its kind
        for index, rule in enumerate(route.spec.rules if row is not None else ()):
            for path, setting in row.own_fields(rule) if row is not None else ():
                lock = _lock(world, key, rule.name or "", setting)
                if lock is not None:
                    message = f"has no effect: GatewayPolicy {lock.policy} on {lock.place} overrides it"
                    yield "no-effect", key, Advice(("spec", "rules", index, *path), message)


def _lock(world: World, key: ObjectKey, rule: str, setting: Setting) -> Claim[Key] | None:
    """The override of a setting on one of the listeners that serve the route."""
    places = [place for _, place in rule_places(key.kind, key.namespace, key.name, rule)]
    locks = world.graph.outcomes.locks
    route = world.graph.routes.by_kind[key.kind].views.get(Key(key.namespace, key.name))
    for route_class in route.classes if route is not None else ():
        ways = world.graph.outcomes.ways.get(route_class)
        for way in ways.to(route.hostnames) if ways is not None and route is not None else ():
            if (found := lock_on(setting, (locks.get(place) or {} for place in (*way, *places)))) is not None:
                return found
    return None
