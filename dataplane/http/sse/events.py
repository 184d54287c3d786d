"""What a stream of events consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it is dispatched. All text is UTF-8, as it came.

    `data`: its data lines, joined by line feeds. `type`: b"" means "message". `id`: of this event itself, b"" resets
    the last id; None: the stream's last id holds on. `retry`: milliseconds before a client connects again, when the
    block of the event sets it. The repr has no data: it may be a secret.
    """

    data: bytes
    type: bytes = b""
    id: bytes | None = None
    retry: int | None = None

    def __repr__(self) -> str:
        return f"Event({len(self.data)} bytes, type={self.type!r}, id={self.id!r}, retry={self.retry})"


@dataclass(frozen=True, slots=True)
class Aside:
    """What is in a stream beside events: a comment line, b"" for an empty one, or a block without data, which sets id
    or retry all the same (WHATWG HTML 9.2.6). The repr has no text, as above."""

    comment: bytes | None = None
    id: bytes | None = None
    retry: int | None = None

    def __repr__(self) -> str:
        size = "no" if self.comment is None else len(self.comment)
        return f"Aside({size} bytes, id={self.id!r}, retry={self.retry})"


class EventTooLarge(Exception):
    """An event, or a line, has more bytes than its reader may hold."""
