"""Policies of all levels as one set: per top-level field, by precedence (decisions, Precedence and `Override`).

1 Of several policies that set a field at one level, the one with the smaller `order` counts; the others conflict.
2 An `Override` locks the field: of those at several levels the least specific wins, whatever is more specific is
overridden. 3 Otherwise the most specific wins. Fields of ACCUMULATING are not merged: all act.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from gatewright.attach.places import Level

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


ALL: Final = "all of them act, the least specific first"
WITH_INLINE: Final = "the policy that wins and the rule's own filter both act, in this order"

ACCUMULATING: Final[dict[str, str]] = {
    "authorization": ALL,  # spec 2, Authorization 5
    "header_modifiers": WITH_INLINE,  # decisions: policy first, then filter
    "request_mirror": ALL,  # a rule's filters only, which may be several
    "url_rewrite": ALL,  # a rule's filters only
    "request_redirect": ALL,  # a rule's filters only
}
"""Fields of which more than one may act, with how."""


@dataclass(slots=True)
class Merged(Generic[ValueT]):
    """What came of a set."""

    effective: dict[str, list[Attached[ValueT]]] = field(default_factory=dict)
    """By field, the least specific first; more than one only of ACCUMULATING fields."""
    conflicted: list[tuple[Attached[ValueT], Attached[ValueT]]] = field(default_factory=list)
    """Loser and winner at one level."""
    overridden: list[tuple[Attached[ValueT], Attached[ValueT]]] = field(default_factory=list)
    """What a less specific `Override` (second) took out."""


def merge(attached: Iterable[Attached[ValueT]]) -> Merged[ValueT]:
    """Merge the policies of one phase at one position."""
    by_field: dict[str, list[Attached[ValueT]]] = {}
    for each in attached:
        by_field.setdefault(each.field, []).append(each)
    merged: Merged[ValueT] = Merged()
    for name, found in by_field.items():
        found.sort(key=lambda each: (each.level, each.order))  # stable: equal ones stay as given
        how = ACCUMULATING.get(name)
        if how == ALL:
            merged.effective[name] = found
            continue
        inline = [each for each in found if how == WITH_INLINE and each.level == Level.INLINE]
        rivals = [each for each in found if each not in inline] if inline else found
        merged.effective[name] = ([_winner(rivals, merged)] if rivals else []) + inline
    return merged


def _winner(rivals: list[Attached[ValueT]], merged: Merged[ValueT]) -> Attached[ValueT]:
    """Of at least one, sorted by level and order."""
    heads: list[Attached[ValueT]] = []
    for each in rivals:
        if heads and heads[-1].level == each.level:
            merged.conflicted.append((each, heads[-1]))
        else:
            heads.append(each)
    locked = next((position for position, each in enumerate(heads) if each.override), None)
    if locked is None:
        return heads[-1]
    merged.overridden += [(each, heads[locked]) for each in heads[locked + 1 :]]
    return heads[locked]
