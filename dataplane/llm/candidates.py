"""Which provider a request goes to, and which one next: groups in their order, equal ones by health. Pure.

The caller says how each provider is at the moment (`Look`); it is asked when a choice is due, and for no more groups
than that takes. Who was taken is not taken again, until `again` begins a new round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from dataplane.upstream import balance

T = TypeVar("T")


class Standing(NamedTuple):
    """A provider at the moment. `score`: that of the endpoint that represents it; None: none is known yet, it counts as
    healthy. `is_evicted`: all of its endpoints are."""

    score: balance.Scored | None = None
    is_evicted: bool = False


Look = Callable[[T], "Standing | None"]
"""None: nothing may be sent to it."""


class Unknown:
    """The score of a provider whose endpoints are not known yet (`balance.Scored`)."""

    __slots__ = ("health", "latency", "pending", "share", "warming")

    def __init__(self) -> None:
        self.pending, self.latency, self.health = 0, 0.0, 1.0
        self.warming, self.share = balance.WARM, 1.0


class Candidates(Generic[T]):
    """Those of one request."""

    __slots__ = ("_groups", "_left", "_look", "_random")

    def __init__(self, groups: Sequence[Sequence[T]], look: Look[T], random: Callable[[], float]) -> None:
        """`random` draws uniformly from [0, 1)."""
        self._groups, self._look, self._random = groups, look, random
        self._left = [list(group) for group in groups]

    def take(self) -> T | None:
        """The next one: of the first group that has one which is not evicted; where all that are left are evicted, of
        the first group that has any. None: none is left."""
        fallback: tuple[list[T], T] | None = None
        for group in self._left:
            found = [(item, standing) for item in group if (standing := self._look(item)) is not None]
            usable = [each for each in found if not each[1].is_evicted]
            if usable:
                return _without(group, self._chosen(usable))
            if found and fallback is None:
                fallback = group, found[0][0]
        return None if fallback is None else _without(*fallback)

    def again(self) -> None:
        """A new round: all may be taken once more."""
        self._left = [list(group) for group in self._groups]

    def _chosen(self, usable: Sequence[tuple[T, Standing]]) -> T:
        if len(usable) == 1:
            return usable[0][0]
        scores = [each.score or Unknown() for _, each in usable]
        chosen = balance.choose(scores, self._random)
        return usable[next(at for at, score in enumerate(scores) if score is chosen)][0]

    def __repr__(self) -> str:
        return f"Candidates({sum(map(len, self._left))} left)"


def _without(group: list[T], item: T) -> T:
    group.remove(item)
    return item
