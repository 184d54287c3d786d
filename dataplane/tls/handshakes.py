"""Steps of handshakes, taken in turns: each holds the processor for about a millisecond, and a client that
opens many connections at once would keep requests of others waiting, and their handshakes.

A step is taken at once while no other waits and the share of this turn of the loop is not used up (`net/turns`). Others
wait, by client: in each round every client has one step taken, so that one who begins 200 handshakes is the one who
waits for them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.net.turns import Turns


class Stepping(Protocol):
    """A connection in its handshake."""

    @property
    def source(self) -> str:
        """Whose it is."""

    def step(self) -> None:
        """Go on as far as bytes are here. Also called when the connection is gone."""


class Handshakes:
    """One per worker."""

    __slots__ = ("_turns", "_waiting")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._waiting: dict[str, deque[Stepping]] = {}
        """By source, in the order in which they are served."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, one: Stepping) -> None:
        """Take a step of `one`: now if that may be, else when it is its turn."""
        turns = self._turns
        if not self._waiting:
            if turns.begin() or not turns.is_spent():
                one.step()
                return
            turns.add(self)
        self._waiting.setdefault(one.source, deque()).append(one)

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        try:
            self._take_steps()
        finally:  # whatever came of one step, the others have their turn
            if self._waiting:
                self._turns.add(self)

    def _take_steps(self) -> None:
        waiting, turns = self._waiting, self._turns
        while waiting:
            source = next(iter(waiting))
            queue = waiting.pop(source)
            one = queue.popleft()
            if queue:
                waiting[source] = queue
            one.step()
            if turns.is_spent():
                break
