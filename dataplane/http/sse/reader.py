"""Reads a stream of events from any split of its bytes (WHATWG HTML 9.2.5, 9.2.6).

One `EventReader` reads one stream. It holds one unfinished event and one unfinished line, both bounded. It does no I/O,
and does not look at `content-type` or `content-encoding`.
"""

from __future__ import annotations

import re
from typing import Final

from dataplane.http.sse.events import Aside, Event, EventTooLarge

BOM: Final = b"\xef\xbb\xbf"
MAX_EVENT: Final = 1024 * 1024
"""Bytes of data of one event, and of one line, unless the reader is made otherwise."""
MAX_RETRY_DIGITS: Final = 15
"""Milliseconds with more digits than this mean nothing to a client, and reading them would cost."""

_LINE = re.compile(rb"([^\r\n]*+)(\r\n|\n|\r)").match


class EventReader:
    """`feed` takes bytes and gives the events that are complete with them; `feed_all` what is beside them as
    well."""

    __slots__ = (
        "_after_cr",
        "_asides",
        "_at_start",
        "_data",
        "_id",
        "_left",
        "_most",
        "_retry",
        "_size",
        "_tail",
        "_type",
    )

    def __init__(self, most: int = MAX_EVENT) -> None:
        self._most = most
        self._asides = False
        """What is no event is wanted, too."""
        self._at_start = True
        """No byte but those of a byte order mark has come."""
        self._after_cr = False
        """The last line ended with CR: a LF that follows belongs to it."""
        self._tail = bytearray()
        """An unfinished line."""
        self._size = 0
        """Bytes of the present event's data so far, a line end for each line."""
        self._data: list[bytes] = []
        self._type = b""
        self._id: bytes | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Events that end in `data`. Raises `EventTooLarge`; what comes behind that cannot be read."""
        found: list[Event | Aside] = []
        self._read(data, found)
        return found  # type: ignore[return-value]  # asides are not wanted

    def feed_all(self, data: bytes) -> list[Event | Aside]:
        """The same with what is beside events; a comment within an event comes before that."""
        self._asides = True
        found: list[Event | Aside] = []
        self._read(data, found)
        return found

    def _read(self, data: bytes, events: list[Event | Aside]) -> None:
        if self._at_start:
            data = self._without_mark(data)
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        position = 0
        while (found := _LINE(data, position)) is not None:
            line, position = found[1], found.end()
            self._after_cr = found[2] == b"\r" and position == len(data)
            if self._tail:
                line = bytes(self._tail) + line
                self._tail.clear()
            self._line(line, events)
        self._tail += data[position:]
        self._bound(len(self._tail))

    def _without_mark(self, data: bytes) -> bytes:
        """One byte order mark before everything else is no part of the stream; it may come in pieces. No event is
        shorter than a mark."""
        start = bytes(self._tail) + data
        self._tail.clear()
        if len(start) < len(BOM):
            self._tail += start
            return b""
        self._at_start = False
        return start.removeprefix(BOM)

    def _bound(self, more: int) -> None:
        if self._size + more > self._most:
            raise EventTooLarge(f"an event has more than {self._most} bytes")

    def _line(self, line: bytes, events: list[Event | Aside]) -> None:
        if not line:
            self._dispatch(events)
            return
        self._bound(len(line))
        name, colon, value = line.partition(b":")
        if colon and value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._type = value
        elif name == b"id":
            if b"\0" not in value:
                self._id = value
        elif name == b"retry" and value.isdigit() and len(value) <= MAX_RETRY_DIGITS:
            self._retry = int(value)
        elif colon and not name and self._asides:
            events.append(Aside(value))

    def _dispatch(self, events: list[Event | Aside]) -> None:
        """An empty line. A block without data is no event; what it says of id and retry holds all the same, so it is
        kept for the next one, or given by itself."""
        data, type_, id_, retry = self._data, self._type, self._id, self._retry
        if data:
            events.append(Event(b"\n".join(data), type_, id_, retry))
            self._data, self._id, self._retry = [], None, None
        elif self._asides and (id_ is not None or retry is not None):
            events.append(Aside(None, id_, retry))
            self._id = self._retry = None
        self._type = b""
        self._size = 0

    def __repr__(self) -> str:
        return f"EventReader({self._size + len(self._tail)} bytes)"
