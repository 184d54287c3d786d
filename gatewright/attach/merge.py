"""Policies of all levels as one set: per top-level field, by precedence.

1 Of several policies that set a field at one level, an `Override` counts before others, then the one with the smaller
`order`; the others conflict: a lock is not taken away by an older policy. 2 An `Override` locks the field: of
those at several levels the least specific wins, whatever is more specific is overridden. 3 Otherwise the most specific
wins. Fields of ACCUMULATING are not merged: all act, as far as no `Override` locks out those of more specific levels.

Sets of different phases never meet (Traffic `phase`): `split` takes them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from gatewright.attach.places import Level, Phase
from gatewright.attach.policies import ACCUMULATING, ALL, WITH_INLINE

ValueT = TypeVar("ValueT")


class Attached(NamedTuple, Generic[ValueT]):
    """One field of one policy at one place."""

    field: str
    """Name of the field of the wire's Policy."""
    level: Level
    order: str
    override: bool
    value: ValueT
    """What the caller knows it by: a built filter, an object's key."""


@dataclass(slots=True)
class Merged(Generic[ValueT]):
    """What came of a set."""

    effective: dict[str, list[Attached[ValueT]]] = field(default_factory=dict)
    """By field, the least specific first; more than one only of ACCUMULATING fields."""
    conflicted: list[tuple[Attached[ValueT], Attached[ValueT]]] = field(default_factory=list)
    """Loser and winner at one level."""
    overridden: list[tuple[Attached[ValueT], Attached[ValueT]]] = field(default_factory=list)
    """What a less specific `Override` (second) took out, whether or not it had won at its own level. What has the
    value of the lock is not taken out: one policy may be attached at both places."""


def split(policies: Iterable[tuple[Phase, Attached[ValueT]]]) -> dict[Phase, list[Attached[ValueT]]]:
    """What is to be merged with what. Every phase has a set, in the order in which the phases run."""
    sets: dict[Phase, list[Attached[ValueT]]] = {phase: [] for phase in Phase}
    for phase, each in policies:
        sets[phase].append(each)
    return sets


def merge(attached: Iterable[Attached[ValueT]]) -> Merged[ValueT]:
    """Merge the policies of one phase at one position. A policy that names a place in two ways counts once there."""
    by_field: dict[str, list[Attached[ValueT]]] = {}
    for each in attached:
        by_field.setdefault(each.field, []).append(each)
    merged: Merged[ValueT] = Merged()
    for name, found in by_field.items():
        if len(found) == 1:  # nearly always
            merged.effective[name] = found
            continue
        found.sort(key=_rank)  # stable: equal ones stay as given
        how = ACCUMULATING.get(name)
        if how == ALL:
            merged.effective[name] = _unlocked(_once(found), merged)
            continue
        own = [each for each in found if each.level == Level.INLINE] if how == WITH_INLINE else []
        rivals = [each for each in found if each.level != Level.INLINE] if own else found
        merged.effective[name] = ([_winner(_once(rivals), merged)] if rivals else []) + own
    return merged


def winner(found: list[Attached[ValueT]]) -> Attached[ValueT]:
    """Of what is in effect of an accumulating field, the one that would be alone if it were none."""
    return next((each for each in found if each.override), None) or next(
        each for each in found if each.level == found[-1].level
    )


def _rank(each: Attached[ValueT]) -> tuple[Level, bool, str]:
    return each.level, not each.override, each.order


def _once(found: list[Attached[ValueT]]) -> list[Attached[ValueT]]:
    """Without what is there twice; a rule may well have equal filters."""
    kept: list[Attached[ValueT]] = []
    for each in found:
        if each.level == Level.INLINE or not kept or each != kept[-1]:
            kept.append(each)
    return kept


def _unlocked(found: list[Attached[ValueT]], merged: Merged[ValueT]) -> list[Attached[ValueT]]:
    """Of policies that add up, sorted, those that the least specific `Override` leaves: at its level, and above it.
    Else a route's own `Allow` would open what the Gateway closed."""
    lock = next((each for each in found if each.override), None)
    if lock is None:
        return found
    merged.overridden += _overridden(found, lock)
    return [each for each in found if each.level <= lock.level]


def _overridden(
    found: list[Attached[ValueT]], lock: Attached[ValueT]
) -> Iterator[tuple[Attached[ValueT], Attached[ValueT]]]:
    return ((each, lock) for each in found if each.level > lock.level and each.value != lock.value)


def _winner(rivals: list[Attached[ValueT]], merged: Merged[ValueT]) -> Attached[ValueT]:
    """Of at least one, sorted."""
    first: dict[Level, Attached[ValueT]] = {}
    for each in rivals:
        winner = first.setdefault(each.level, each)
        if winner is not each:
            merged.conflicted.append((each, winner))
    lock = next((each for each in first.values() if each.override), None)
    if lock is None:
        return first[rivals[-1].level]
    merged.overridden += _overridden(rivals, lock)
    return lock
