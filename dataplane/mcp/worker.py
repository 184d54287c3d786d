"""What a worker remembers of sessions: nothing that cannot be made again. Bounded, oldest first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from dataplane.mcp.sessions import UpstreamSession

MOST: Final = 16_384
"""Sessions that are remembered."""
IDLE: Final = 1800.0
"""Seconds without a request after which one is forgotten."""


@dataclass(slots=True)
class Remembered:
    """Of one session: sessions of servers that took the place of those in its id."""

    seen: float
    renewed: dict[str, UpstreamSession] = field(default_factory=dict)
    is_over: bool = False
    """It was ended: its id is worth nothing any more."""


class Memory:
    """By number of a session."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Remembered] = OrderedDict()

    def of(self, number: bytes, now: float) -> Remembered:
        found = self._known.get(number)
        if found is None or (now - found.seen > IDLE and not found.is_over):
            found = self._known[number] = Remembered(now)
        found.seen = now
        self._known.move_to_end(number)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return found

    def peek(self, number: bytes) -> Remembered | None:
        return self._known.get(number)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Memory({len(self._known)} sessions)"
