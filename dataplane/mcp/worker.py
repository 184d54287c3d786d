"""What a worker remembers of sessions: nothing that cannot be made again. Bounded, oldest first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from dataplane.link.ended import Ended
from dataplane.mcp.sessions import IDLE, UpstreamSession

MOST: Final = 16_384
"""Sessions that are remembered."""


@dataclass(slots=True)
class Remembered:
    """Of one session: sessions of servers that took the place of those in its id."""

    seen: float
    renewed: dict[str, UpstreamSession] = field(default_factory=dict)


class Memory:
    """By number of a session. `ended` is what all workers know."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._known: OrderedDict[bytes, Remembered] = OrderedDict()

    def of(self, number: bytes, now: float) -> Remembered:
        found = self._known.get(number)
        if found is None or now - found.seen > IDLE:
            found = self._known[number] = Remembered(now)
        found.seen = now
        self._known.move_to_end(number)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return found

    def peek(self, number: bytes) -> Remembered | None:
        return self._known.get(number)

    def end(self, number: bytes) -> None:
        """The session was ended: its id is worth nothing any more, to no worker."""
        self._ended.add(number)

    def has_ended(self, number: bytes) -> bool:
        return number in self._ended

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Memory({len(self._known)} sessions)"
