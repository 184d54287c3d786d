"""Calls whose content flows both ways (`chain.calls.CallStream`), over HTTP/1.1 and HTTP/2 alike.

One object, and a Future only while somebody waits. What was received and not taken is bounded: the endpoint is stopped.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallAnswer, CallFailed
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN
from dataplane.upstream import connecting, lease
from dataplane.upstream.asking import Asking, block_of

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.upstream.calls import HttpCalls

BUFFER: Final = 65_536
"""Bytes of the answer that wait for `receive` before the endpoint is stopped."""


class StreamedCall(Asking):
    """A call under way, from `Calls.stream` to its end or `cancel`."""

    __slots__ = ("_is_blocked", "_is_over", "_is_sent", "_parts", "_reader", "_size", "_writer", "error", "trailers")

    def __init__(self, calls: HttpCalls, key: str, request: CallRequest, seconds: float) -> None:
        super().__init__(calls, key, request, seconds, UNKNOWN)
        self.trailers = b""
        self.error: CallFailed | None = None
        """Why it ended before its end."""
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._is_over = False
        """The answer is here whole."""
        self._is_sent = False
        """The request has ended."""
        self._is_blocked = False
        self._reader: Any = None
        self._writer: Any = None
        """Futures of who waits in `head` or `receive`, and in `send`."""

    # --- for the caller

    async def send(self, data: bytes, end: bool = False) -> None:
        up = await self._ready()
        self.is_repeatable = False
        self._is_sent = end
        if data or end:
            up.content(data, end)

    async def end(self, trailers: bytes = b"") -> None:
        up = await self._ready()
        self.is_repeatable = False
        self._is_sent = True
        if trailers:
            up.trailers(trailers)
        else:
            up.content(b"", True)

    async def head(self) -> CallAnswer:
        while self.head_of_answer is None:
            self._raise()
            await self._read()
        head = self.head_of_answer
        return CallAnswer(head.status, Head(head.block, head.low), b"")

    async def receive(self) -> bytes:
        while not self._parts:
            if self._is_over:
                return b""
            self._raise()
            await self._read()
        data = self._parts.popleft()
        before, self._size = self._size, self._size - len(data)
        if before >= BUFFER > self._size and self.up is not None:
            self.up.resume()
        return data

    def cancel(self) -> None:
        if not self._is_over and self.error is None:
            self.fail(CallFailed("lost", f"{self.where()}: given up"))

    async def _ready(self) -> Upstream:
        """Wait until the endpoint takes more."""
        while self.up is None or self._is_blocked:
            self._raise()
            if self._is_over:
                raise CallFailed("lost", f"{self.where()}: the answer ended before the request")
            self._writer = self.calls.make_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._is_sent:
            raise RuntimeError("the request has ended")
        return self.up

    async def _read(self) -> None:
        self._reader = self.calls.make_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _raise(self) -> None:
        if self.error is not None:
            raise CallFailed(self.error.cause, str(self.error))

    # --- as a holder and a consumer

    def lease_ready(self, up: Upstream) -> None:
        up.begin(self, block_of(self.request, self.plan, UNKNOWN), self.request.body, False)
        _wake(self._writer)

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        connecting.settle(self)  # as of a client's request: what follows may take days
        self.upstream_content(first, end)
        _wake(self._reader)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if data:
            self._parts.append(data)
            self._size += len(data)
        if end:
            self._end()
        elif self._size >= BUFFER and self.up is not None:
            self.up.pause()
        _wake(self._reader)

    def upstream_trailers(self, lines: bytes) -> None:
        self.trailers = lines
        self._end()
        _wake(self._reader)

    def upstream_blocked(self) -> None:
        self._is_blocked = True

    def upstream_drained(self) -> None:
        self._is_blocked = False
        _wake(self._writer)

    def wake(self, now: float) -> None:
        """The deadline of the head."""
        if self.head_of_answer is None and self.error is None:
            self.fail(self.too_late())

    def fail(self, error: CallFailed) -> None:
        self.error = error
        self._parts.clear()
        lease.release(self)
        lease.uncount(self)
        _wake(self._reader)
        _wake(self._writer)

    def _end(self) -> None:
        self.up = None
        self._is_over = True
        lease.release(self)
        lease.uncount(self)
        _wake(self._writer)

    def __repr__(self) -> str:
        return f"StreamedCall({self.key}, {self.error!r})"


def _wake(future: Any) -> None:
    if future is not None and not future.done():
        future.set_result(None)
