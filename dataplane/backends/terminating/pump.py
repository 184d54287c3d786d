"""The events of an answer: one loop for code that reads, changes or passes them.

Thousands may come in one piece, and each may be asked about: they are read in slices, and others are served in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dataplane.http.sse import Aside, Event, EventReader

if TYPE_CHECKING:
    from dataplane.backends.terminating.contract import Answer, Pours

SLICE: Final = 16_384
"""Bytes that are looked at in one turn of the loop..."""
LINES: Final = 1024
"""...with so many ends of lines at most, or `SHORT` bytes: each line costs a microsecond, however short it is."""
SHORT: Final = SLICE // 16
MANY: Final = 64
"""Events of them."""

Change = Callable[["Event | Aside"], "bytes | Awaitable[bytes]"]


class EventPump:
    """Events of one call, and what is beside them: comments, by which servers keep a stream alive, and blocks without
    data. `most`: bytes of one event."""

    __slots__ = ("_call", "_count", "_data", "_events", "_reader", "_start", "size")

    def __init__(self, call: Pours, most: int) -> None:
        self._call = call
        self._reader = EventReader(most)
        self._events: deque[Event | Aside] = deque()
        self._data = b""
        self._start = 0
        """Of `_data`, from where it was not read yet."""
        self._count = 0
        """Events since the last turn."""
        self.size = 0
        """Bytes that came so far."""

    async def next(self) -> Event | Aside | None:
        """None: there are no more. Raises `CallFailed` where the answer breaks off, and `EventTooLarge`."""
        while not self._events:
            if not await self._read():
                return None
        self._count += 1
        if self._count >= MANY:
            self._count = 0
            await asyncio.sleep(0)
        return self._events.popleft()

    async def event(self) -> Event | None:
        """The same without what is beside events."""
        while (found := await self.next()) is not None:
            if isinstance(found, Event):
                return found
        return None

    async def _read(self) -> bool:
        """Read more; whether there was any."""
        if self._start >= len(self._data):
            self._data, self._start = await self._call.receive(), 0
            self.size += len(self._data)
            if not self._data:
                return False
        elif self._start:
            await asyncio.sleep(0)
        end = self._end()
        self._events.extend(self._reader.feed_all(self._data[self._start : end]))
        self._start = end
        return True

    def _end(self) -> int:
        """Of the next slice."""
        data, start, size = self._data, self._start, SLICE
        while size > SHORT and data.count(b"\n", start, start + size) + data.count(b"\r", start, start + size) > LINES:
            size //= 2
        return start + size


async def pumped(call: Pours, change: Change, out: Answer, most: int) -> None:
    """Give what `change` makes of each event of a call (b"": it is left out), until there are no more. Raises
    `CallFailed`, `EventTooLarge` and what `change` does."""
    pump = EventPump(call, most)
    while (event := await pump.next()) is not None:
        made = change(event)
        out.give(made if isinstance(made, bytes) else await made)
        if out.is_paused:
            await out.ready()
