"""Matches in order of rank, for a path under which thousands are: one more or less copies a few hundred references, not
all of them. What is few is a plain tuple; nothing here is ever changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from dataplane.table.matches import Match, Rank, Spot

if TYPE_CHECKING:
    from dataplane.table.plans import RoutePlan

LIMIT = 256
"""Matches of a plain tuple, and of a part: as many are copied for each that comes or goes."""


class Ranked:
    """Iterates as a tuple of matches."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[tuple[Match, ...], ...]) -> None:
        self.parts = parts
        """None of them is empty."""

    def __iter__(self) -> Iterator[Match]:
        return chain.from_iterable(self.parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __repr__(self) -> str:
        return f"Ranked({len(self)} matches)"


Matches = tuple[Match, ...] | Ranked


def added(matches: Matches, match: Match) -> Matches:
    """With one more, behind those of the same rank."""
    parts = (matches,) if isinstance(matches, tuple) else matches.parts
    place = min(bisect_left(parts, match.rank, key=_last), len(parts) - 1)
    part = parts[place]
    index = bisect_right(part, match.rank, key=_rank)
    longer = (*part[:index], match, *part[index:])
    if len(longer) <= LIMIT:
        return _made((*parts[:place], longer, *parts[place + 1 :]))
    half = LIMIT // 2
    return _made((*parts[:place], longer[:half], longer[half:], *parts[place + 1 :]))


def without(matches: Matches, spot: Spot, plan: RoutePlan) -> Matches:
    """Without those of a plan in a spot, which may be none."""
    if isinstance(matches, tuple):
        return tuple([match for match in matches if match.plan is not plan or match.spot != spot])
    parts = matches.parts
    first = bisect_left(parts, spot, key=_last_spot)
    end = bisect_right(parts, spot, lo=first, key=_first_spot)
    shorter = [without(part, spot, plan) for part in parts[first:end]]
    return _made((*parts[:first], *_joined(shorter), *parts[end:]))


def _joined(parts: list[Matches]) -> Iterator[tuple[Match, ...]]:
    """What is left of neighbouring parts, in as few as there need be."""
    left: list[Match] = []
    for match in chain.from_iterable(parts):
        left.append(match)
        if len(left) == LIMIT:
            yield tuple(left)
            left = []
    if left:
        yield tuple(left)


def _made(parts: tuple[tuple[Match, ...], ...]) -> Matches:
    if len(parts) > 1:
        return Ranked(parts)
    return parts[0] if parts else ()


def _rank(match: Match) -> Rank:
    return match.rank


def _last(part: tuple[Match, ...]) -> Rank:
    return part[-1].rank


def _last_spot(part: tuple[Match, ...]) -> Spot:
    return part[-1].spot


def _first_spot(part: tuple[Match, ...]) -> Spot:
    return part[0].spot
