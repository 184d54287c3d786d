"""What became of a policy: where it acts, which of its fields another policy of the same place took, which are locked.

Used by the control plane for the conditions `Conflicted` and `Overridden`, and by lint to warn. Pure. It says the same
as `merge` at every position, without visiting them: who comes first at a place is found once for each place
(`winners`); what became of a policy then follows from the winners at its places and above them (`outcome`). So a change
of one policy concerns its places, and the policies below them only when a lock came or went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from gatewright.attach.places import Phase, PlaceKey
from gatewright.attach.policies import ACCUMULATING, ALL

PolicyT = TypeVar("PolicyT")


class Setting(NamedTuple):
    """What policies can be rivals about."""

    phase: Phase
    field: str
    """Name of the field of the wire's Policy."""

    def __str__(self) -> str:
        """As users write it: `traffic.extAuth`, `backend.http`."""
        first, *rest = self.field.removeprefix(f"{self.phase.section}_").split("_")
        return ".".join((self.phase.section, first + "".join(map(str.capitalize, rest))))


class Claim(NamedTuple, Generic[PolicyT]):
    """One field of one policy object at one place."""

    policy: PolicyT
    """What the caller knows the object by; equal for claims of one object."""
    place: PlaceKey
    setting: Setting
    order: str
    """Unique among policies; between equal places the smaller text wins."""
    override: bool


def order(created: str | None, namespace: str, name: str) -> str:
    """The text by which policies are ordered: the older, then by name. `created` is RFC 3339 in UTC, which
    sorts as text; objects of files have none, and come first."""
    return f"{created or ''} {namespace}/{name}"


Winners = Mapping[Setting, Claim[PolicyT]]


class Conflict(NamedTuple, Generic[PolicyT]):
    """A field that another policy sets at the same place, and comes first."""

    setting: Setting
    place: PlaceKey
    winner: PolicyT


class Overridden(NamedTuple, Generic[PolicyT]):
    """A field that an `Override` above locks."""

    setting: Setting
    place: PlaceKey
    lock: PlaceKey
    """Where the override is attached."""
    winner: PolicyT


@dataclass(frozen=True, slots=True)
class Outcome(Generic[PolicyT]):
    """What became of one policy object. No entry is there twice."""

    acts: tuple[tuple[PlaceKey, Setting], ...] = ()
    """What it decides, or takes part in deciding, at one position of the place at least: unless something more specific
    decides there, which is no fault of the policy."""
    conflicts: tuple[Conflict[PolicyT], ...] = ()
    overridden: tuple[Overridden[PolicyT], ...] = ()


def winners(claims: Iterable[Claim[PolicyT]]) -> dict[Setting, Claim[PolicyT]]:
    """Who comes first among the claims of one place, an `Override` before others. Of settings that add up only an
    `Override` is one: no other keeps requests out."""
    first: dict[Setting, Claim[PolicyT]] = {}
    for claim in claims:
        held = first.get(claim.setting)
        if (claim.override or not _accumulates(claim)) and (held is None or _rank(claim) < _rank(held)):
            first[claim.setting] = claim
    return first


def outcome(
    own: Iterable[Claim[PolicyT]],
    winners_at: Callable[[PlaceKey], Winners[PolicyT]],
    above: Callable[[PlaceKey], Iterable[Sequence[PlaceKey]]],
) -> Outcome[PolicyT]:
    """What became of the policy that has these claims; those of one place together, so that it is asked about once.

    `winners_at`: the `winners` of a place. `above`: for each position that a place has, the less specific places there,
    the least specific first; those of a route are the ways to its Gateways, those of a Gateway nothing.
    """
    acts: dict[tuple[PlaceKey, Setting], None] = {}
    conflicts: dict[Conflict[PolicyT], None] = {}
    overridden: dict[Overridden[PolicyT], None] = {}
    for place, there in groupby(own, attrgetter("place")):
        first, ways = winners_at(place), [[winners_at(each) for each in way] for way in above(place)]
        for claim in there:
            winner = claim if _accumulates(claim) else first.get(claim.setting, claim)
            if winner.policy != claim.policy:
                conflicts[Conflict(claim.setting, place, winner.policy)] = None
            locks = [lock_on(claim.setting, way) for way in ways]
            for lock in locks:
                if lock is not None and lock.policy != claim.policy:
                    overridden[Overridden(claim.setting, place, lock.place, lock.policy)] = None
            if winner.policy == claim.policy and (not locks or any(_opens(claim, lock) for lock in locks)):
                acts[place, claim.setting] = None
    return Outcome(tuple(acts), tuple(conflicts), tuple(overridden))


def _rank(claim: Claim[PolicyT]) -> tuple[bool, str]:
    """As `merge` has it: a lock is not taken away by an older policy."""
    return not claim.override, claim.order


def _accumulates(claim: Claim[PolicyT]) -> bool:
    return ACCUMULATING.get(claim.setting.field) == ALL


def _opens(claim: Claim[PolicyT], lock: Claim[PolicyT] | None) -> bool:
    return lock is None or lock.policy == claim.policy


def lock_on(setting: Setting, way: Iterable[Winners[PolicyT]]) -> Claim[PolicyT] | None:
    """The least specific override of a setting. `way`: the winners of places, the least specific first."""
    for winners_there in way:
        winner = winners_there.get(setting)
        if winner is not None and winner.override:
            return winner
    return None
