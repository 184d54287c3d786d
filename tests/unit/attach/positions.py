"""One position with all its places, for the tests of attachment: a named rule of a route on a listener of a set.

`Policy` is a policy object in few words; `at` finds what acts at the position, as both planes do: by its places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gatewright.attach.merge import Attached, Merged, merge, split
from gatewright.attach.outcome import Claim, Outcome, Setting, outcome, winners
from gatewright.attach.places import Level, ListenerPosition, Phase, PlaceKey, backend_places, rule_places

LISTENER = ListenerPosition(("infra", "edge"), "web", ("team", "extra"))
TRAFFIC: tuple[tuple[Level, PlaceKey], ...] = (
    *LISTENER.places(),
    *rule_places("HTTPRoute", "shop", "cart", "pay"),
)
BACKEND: tuple[tuple[Level, PlaceKey], ...] = (*TRAFFIC, *backend_places("Service", "shop", "cart", "http", "8080"))

PLACES = {
    "gateway": PlaceKey("Gateway", "infra", "edge"),
    "set": PlaceKey("ListenerSet", "team", "extra"),
    "listener": PlaceKey("ListenerSet", "team", "extra", "web"),
    "route": PlaceKey("HTTPRoute", "shop", "cart"),
    "rule": PlaceKey("HTTPRoute", "shop", "cart", "pay"),
    "backend": PlaceKey("Service", "shop", "cart"),
    "section": PlaceKey("Service", "shop", "cart", "http"),
    "section by number": PlaceKey("Service", "shop", "cart", "8080"),
}
"""By the words of the tests."""

ELSEWHERE = (
    PlaceKey("Gateway", "infra", "edge", "web"),  # a listener of the Gateway itself
    PlaceKey("Gateway", "team", "edge"),
    PlaceKey("Gateway", "infra", "other"),
    PlaceKey("ListenerSet", "team", "extra", "admin"),
    PlaceKey("ListenerSet", "infra", "extra"),
    PlaceKey("HTTPRoute", "shop", "cart", "browse"),
    PlaceKey("GRPCRoute", "shop", "cart"),
    PlaceKey("HTTPRoute", "team", "cart"),
    PlaceKey("GatewayBackend", "shop", "cart"),
    PlaceKey("Service", "shop", "cart", "https"),
)
"""Places that have something in common with those of the position and are none of them."""

INLINE = {"inline": Level.INLINE, "backend inline": Level.BACKEND_INLINE, "section inline": Level.SECTION_INLINE}
"""What stands in the route or the backend itself, and is no policy object."""


@dataclass(frozen=True)
class Policy:
    """One field of one object. What it sets is its own name."""

    name: str
    places: tuple[PlaceKey, ...]
    override: bool = False
    phase: Phase = Phase.POST_ROUTING
    field: str = "cors"

    def claims(self) -> list[Claim[str]]:
        setting = Setting(self.phase, self.field)
        return [Claim(self.name, place, setting, self.name, self.override) for place in self.places]


def attached(
    policies: Iterable[Policy], places: Iterable[tuple[Level, PlaceKey]]
) -> Iterator[tuple[Phase, Attached[str]]]:
    """Which of the policies are at these places."""
    known = list(policies)
    for level, place in places:
        for policy in known:
            if place in policy.places:
                yield policy.phase, Attached(policy.field, level, policy.name, policy.override, policy.name)


def merged(
    policies: Sequence[Policy],
    places: Iterable[tuple[Level, PlaceKey]] = TRAFFIC,
    inline: Iterable[tuple[Phase, Attached[str]]] = (),
) -> dict[Phase, Merged[str]]:
    """What the policies come to, by phase."""
    sets = split([*attached(policies, places), *inline])
    return {phase: merge(found) for phase, found in sets.items()}


def outcomes(policies: Sequence[Policy], ways: dict[PlaceKey, list[list[PlaceKey]]]) -> dict[str, Outcome[str]]:
    """What became of each; `ways` are the positions of each place (`outcome`)."""
    claims = [claim for policy in policies for claim in policy.claims()]
    at = {
        place: winners(claim for claim in claims if claim.place == place) for place in {each.place for each in claims}
    }
    return {
        policy.name: outcome(policy.claims(), lambda place: at.get(place, {}), lambda place: ways.get(place, []))
        for policy in policies
    }


def ways_at(places: Iterable[tuple[Level, PlaceKey]]) -> dict[PlaceKey, list[list[PlaceKey]]]:
    """The ways of a single position: above each place are the others of less level."""
    known = list(places)
    return {place: [[other for above, other in known if above < level]] for level, place in known}
