"""What a lost connection carried, or what waited for one in vain, ended in turns of the loop (`net/turns`): to end a
request takes as long as to answer one (its cleanup, its line of the log, a retry), and hundreds of connections with a
hundred requests each are lost in one moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.net.turns import Turns


def end_all(turns: Turns, ends: Iterable[Callable[[], None]], source: str = "") -> None:
    """Call each, now as far as the share of this turn goes, the others in later turns. `source`: as `Turns.add`."""
    endings = Endings(turns, ends, source)
    if len(endings) > 1:
        turns.begin()
    if endings:
        endings.begin()


class Endings:
    """Of one connection."""

    __slots__ = ("_left", "_source", "_turns")

    def __init__(self, turns: Turns, ends: Iterable[Callable[[], None]], source: str) -> None:
        self._turns = turns
        self._left = deque(ends)
        self._source = source

    def __len__(self) -> int:
        return len(self._left)

    def begin(self) -> None:
        """None of it, where the share of this turn is used up."""
        if self._turns.is_spent():
            self._turns.add(self, self._source)
        else:
            self.next_turn()

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        left, turns = self._left, self._turns
        try:
            left.popleft()()
            while left and not turns.is_spent():
                left.popleft()()
        finally:  # a bug with one must not keep the others
            if left:
                turns.add(self, self._source)

    def __repr__(self) -> str:
        return f"Endings({len(self._left)} left)"
