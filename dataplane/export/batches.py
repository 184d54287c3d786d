"""Records that wait for a collector: bounded, and what does not fit is dropped. Pure.

A record is whatever its encoder takes; nothing of it is encoded before its batch is sent, so that a request which ends
pays one `append`.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

Record = TypeVar("Record")

MOST_HELD: Final = 2048
"""Records that wait (as OpenTelemetry's batch processors hold)."""
MOST_SENT: Final = 512
"""Records of one message."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes of text in records that wait: what clients sent may be most of it."""


class Batches(Generic[Record]):
    """The records of one exporter."""

    __slots__ = ("_bytes", "_held", "_most_held", "_most_sent")

    def __init__(self, most_held: int = MOST_HELD, most_sent: int = MOST_SENT) -> None:
        self._held: deque[tuple[Record, int]] = deque()
        self._bytes = 0
        self._most_held = most_held
        self._most_sent = most_sent

    def __len__(self) -> int:
        return len(self._held)

    def add(self, record: Record, weight: int) -> bool:
        """Take one in, of about so many bytes; False: there is no place. The newest is dropped: the
        oldest show how it all began."""
        if len(self._held) >= self._most_held or self._bytes + weight > MOST_BYTES:
            return False
        self._held.append((record, weight))
        self._bytes += weight
        return True

    @property
    def is_full(self) -> bool:
        """No record finds a place."""
        return len(self._held) >= self._most_held

    @property
    def is_due(self) -> bool:
        """There is enough for a message."""
        return len(self._held) >= self._most_sent

    def take(self) -> list[Record]:
        """The records of the next message, the oldest first."""
        taken = [self._held.popleft() for _ in range(min(len(self._held), self._most_sent))]
        self._bytes -= sum(weight for _, weight in taken)
        return [record for record, _ in taken]
