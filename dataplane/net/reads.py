"""Large reads that wait, because others have used up the share of a turn.

Hundreds of connections may have a body under way, and all of them 256 KB in their sockets in one moment. The loop reads
each that it finds readable, before anybody can say that it is late. So as soon as one large read is late, all whose
bodies are under way stop reading, and read again a few in each turn, each client address once before another one reads
twice.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from dataplane.link.sources import source_of

if TYPE_CHECKING:
    from dataplane.net.turns import Turns

READS: Final = 16
"""Connections that read again in one turn: 256 KB each take 4 ms together."""


class Reading(Protocol):
    """A connection with a large body under way."""

    def hold(self) -> bool:
        """Stop reading until `read_again`. False: it does not read now anyway."""

    def read_again(self) -> None:
        """Also called when the connection is gone."""


class Reads:
    """Of one worker."""

    __slots__ = ("_held", "_may", "_turn", "_turns", "_under_way", "_waiting")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._under_way: dict[Reading, str] = {}
        """Who is stopped when a read is late, and the client's address."""
        self._may: set[Reading] = set()
        """Whose turn it was to read again in one turn,"""
        self._turn = -1
        """this one."""
        self._waiting: dict[object, deque[Reading]] = {}
        """By address."""
        self._held = 0
        """How many wait."""

    def __len__(self) -> int:
        return len(self._under_way)

    def enter(self, one: Reading, address: str) -> None:
        """A large body of this client begins."""
        self._under_way[one] = address

    def leave(self, one: Reading) -> None:
        """It is here, or its connection has gone; or there was none."""
        self._under_way.pop(one, None)
        self._may.discard(one)

    def are_late(self, one: Reading, size: int) -> bool:
        """It was given so many bytes in one read. Where that was late, all that read bodies have stopped now, but for
        those whose turn it is."""
        turns = self._turns
        if not turns.is_late_for(size):
            return False
        if self._turn != turns.number:
            self._may.clear()
        if one not in self._may:
            for other, address in self._under_way.items():
                if other not in self._may:
                    self.stop(other, address)
        return True

    def stop(self, one: Reading, address: str) -> None:
        """Until the turn of its address, if it reads."""
        if not one.hold():
            return
        self._waiting.setdefault(source_of(address), deque()).append(one)
        if not self._held:
            self._turns.add(self)
        self._held += 1

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: a few read again."""
        self._may.clear()
        self._turn = self._turns.number
        while self._held and len(self._may) < READS:
            one = self._pop()
            self._may.add(one)
            one.read_again()
        if self._held:
            self._turns.add(self)

    def _pop(self) -> Reading:
        source = next(iter(self._waiting))
        queue = self._waiting.pop(source)
        if len(queue) > 1:
            self._waiting[source] = queue  # behind all others
        self._held -= 1
        return queue.popleft()

    def __repr__(self) -> str:
        return f"Reads({self._held} of {len(self._under_way)} wait)"
