"""One direction of a WebSocket: bytes as they come, until somebody asks for the next message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dataplane.backends.terminating.contract import MOST_AHEAD
from dataplane.chain.turns import AT_A_TIME, NEXT_TURN
from dataplane.http import websocket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.backends.terminating.contract import Services
    from dataplane.chain.filter import Future
    from dataplane.http.websocket import Message


class Pump:
    """`address`: the client's, for whom memory is taken; `most`: bytes of a message; `hold`: the sender is to wait,
    or may go on."""

    def __init__(
        self, services: Services, address: str, is_client: bool, most: int, hold: Callable[[bool], None]
    ) -> None:
        self._services = services
        self._address = address
        self._hold = hold
        self._reader = websocket.Reader(is_client, most)
        self._read: Iterator[Message | None] = iter(())
        """Messages of what was fed last."""
        self._waiting: list[bytes] = []
        self._size = 0
        """Bytes of `_waiting`."""
        self._claimed = 0
        """Bytes of the worker's memory that the part of a message takes."""
        self._is_held = False
        self.is_over = False
        """No more comes."""
        self._waits: Future | None = None
        self._began = 0.0
        """Of CPU time: the present turn."""

    def put(self, data: bytes, end: bool) -> None:
        if data:
            self._waiting.append(data)
            self._size += len(data)
        self.is_over = self.is_over or end
        if self._size > MOST_AHEAD and not self._is_held and not end:
            self._is_held = True
            self._hold(True)
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)

    async def next(self) -> Message | None:
        """The next message; None: there is no more. Raises `websocket.Broken`."""
        while True:
            for message in self._read:
                if message is not None:
                    return message
                await self._pace()
            self._claim()
            await self._pace()
            data = await self._received()
            if not data:
                return None
            self._read = self._reader.feed(data)

    async def _pace(self) -> None:
        if time.thread_time() - self._began > AT_A_TIME:
            await NEXT_TURN
            self._began = time.thread_time()

    async def _received(self) -> bytes:
        while not self._size and not self.is_over:
            self._waits = self._services.make_future()
            try:
                await self._waits
            finally:
                self._waits = None
            self._began = time.thread_time()
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        if self._is_held:
            self._is_held = False
            self._hold(False)
        return data

    def _claim(self) -> None:
        more = self._reader.held - self._claimed
        if more < 0:
            self._services.body_memory.free(-more, self._address)
        elif more and not self._services.body_memory.take(more, self._address):
            raise websocket.Broken(websocket.TRY_LATER, "there is no memory for a message of this size")
        self._claimed += more

    def drop(self) -> None:
        """It is not read any more."""
        self._services.body_memory.free(self._claimed, self._address)
        self._claimed = self._size = 0
        self._waiting.clear()

    def __repr__(self) -> str:
        return f"Pump({self._reader}, {self._size} bytes wait)"
