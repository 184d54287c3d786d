"""One call (`chain.calls.Call`), over HTTP/1.1 and HTTP/2 alike: its answer whole, in parts, or poured as it comes.

One object, and a Future only while somebody waits. What was received and not taken is bounded: the endpoint is stopped.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallAnswer, CallFailed
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN
from dataplane.upstream import connecting, outgoing
from dataplane.upstream.calls.sending import Sending
from dataplane.upstream.versions import is_grpc
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.upstream.calls.sending import Sends
    from dataplane.upstream.lease import BackendPlan

BUFFER: Final = 65_536
"""Bytes of the answer that wait for `receive` before the endpoint is stopped."""
IN_PARTS: Final = -1


class Call(Sending):
    """A call under way, from `Calls.open` to its end or `cancel`."""

    __slots__ = (
        "_error",
        "_is_blocked",
        "_is_sent",
        "_most",
        "_parts",
        "_reader",
        "_request",
        "_size",
        "_taker",
        "_writer",
        "is_idempotent",
        "trailers",
    )

    def __init__(
        self,
        calls: Sends,
        plan: BackendPlan,
        request: CallRequest,
        idempotent: bool = False,
        sends_more: bool = False,
        length: int = UNKNOWN,
    ) -> None:
        """`length`: of the content, where it `sends_more` than the request has; else that is all."""
        body = request.body
        if not sends_more:
            length = len(body)
        super().__init__(
            calls, plan, request.method, request.target, outgoing.of_call(request, plan, length), body, length
        )
        self.is_idempotent = idempotent
        self.trailers = b""
        self._request = request
        self._error: CallFailed | None = None
        """Why it ended before its end."""
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._most = IN_PARTS
        """Bytes that the whole answer may have, once somebody waits for that."""
        self._taker: Callable[[bytes], None] | None = None
        self._is_sent = not sends_more
        """The request has ended."""
        self._is_blocked = False
        self._reader: Any = None
        self._writer: Any = None
        """Futures of who waits for the answer, and in `send`."""

    @property
    def is_grpc(self) -> bool:
        return is_grpc(b"\r\n" + self._request.headers.lower())

    # --- for the caller: the request

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

    async def _ready(self) -> Upstream:
        """Wait until the endpoint takes more."""
        while self.up is None or self._is_blocked:
            self._raise()
            if self.is_over:
                raise CallFailed("lost", f"{self.where()}: the answer ended before the request")
            self._writer = self.calls.make_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._is_sent:
            raise RuntimeError("the request has ended")
        return self.up

    # --- for the caller: the answer

    async def head(self) -> CallAnswer:
        while self.head_of_answer is None:
            self._raise()
            await self._read()
        head = self.head_of_answer
        return CallAnswer(head.status, Head(head.block, head.low), b"")

    async def receive(self) -> bytes:
        while not self._parts:
            self._raise()
            if self.is_over:
                return b""
            await self._read()
        data = self._parts.popleft()
        before, self._size = self._size, self._size - len(data)
        if before >= BUFFER > self._size:
            self.hold(False)
        return data

    async def whole(self, most: int) -> CallAnswer:
        try:
            self._take_whole(most)
            while not self.is_over:
                await self._read()
            self._raise()
        except CallFailed as error:
            if self.head_of_answer is not None:
                error.status = self.head_of_answer.status
            raise
        finally:
            self.cancel()
        head = self.head_of_answer
        assert head is not None  # it came before the end
        return CallAnswer(head.status, Head(head.block, head.low), b"".join(self._parts))

    def _take_whole(self, most: int) -> None:
        self._most = most
        head = self.head_of_answer
        if self._error is None and (self._size > most or (head is not None and head.length > most)):
            self._too_large()
        elif self._size >= BUFFER:
            self.hold(False)

    async def pour(self, taker: Callable[[bytes], None]) -> None:
        self._flush(taker)
        self._taker = taker
        try:
            while not self.is_over:
                await self._read()
            self._raise()
        finally:
            self._taker = None
        self._flush(taker)

    def _flush(self, taker: Callable[[bytes], None]) -> None:
        parts, was_held = tuple(self._parts), self._size >= BUFFER
        self._parts.clear()
        self._size = 0
        if was_held:
            self.hold(False)
        for part in parts:  # the taker may hold again
            taker(part)

    def hold(self, held: bool) -> None:
        if self.up is not None:
            if held:
                self.up.pause()
            else:
                self.up.resume()

    def cancel(self) -> None:
        if not self.is_over:
            self.fail(CallFailed("lost", f"{self.where()}: given up"))

    async def _read(self) -> None:
        self._reader = self.calls.make_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _raise(self) -> None:
        if self._error is not None:
            raise again(self._error)

    # --- as a holder and a consumer

    def lease_ready(self, up: Upstream) -> None:
        up.begin(self.consumer, self.block, self.body, self.length != UNKNOWN)
        _wake(self._writer)

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        connecting.leave_endpoint(self)  # as of a client's request: what follows may take days
        if head.length > self._most != IN_PARTS:
            self._too_large()
            return
        self.upstream_content(first, end)
        if self._most == IN_PARTS:
            _wake(self._reader)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._taker is not None and not end:
            if data:
                self._taker(data)
            return
        if data:
            self._parts.append(data)
            self._size += len(data)
        if self._size > self._most != IN_PARTS:
            self._too_large()
        elif end:
            self._ended()
        elif self._most == IN_PARTS:
            if self._size >= BUFFER:
                self.hold(True)
            _wake(self._reader)

    def upstream_trailers(self, lines: bytes) -> None:
        self.trailers = lines
        self._ended()

    def upstream_blocked(self) -> None:
        self._is_blocked = True

    def upstream_drained(self) -> None:
        self._is_blocked = False
        _wake(self._writer)

    def fail(self, error: CallFailed) -> None:
        self._error = error
        self.failure = error.cause
        self._parts.clear()
        self._end()

    def _too_large(self) -> None:
        self.fail(CallFailed("too_large", f"{self.where()}: the answer has more than {self._most} bytes"))

    def _ended(self) -> None:
        self.up = None
        self._end()

    def _end(self) -> None:
        self.over()
        status = 0 if self.head_of_answer is None else self.head_of_answer.status
        outcome = self.failure or f"{status // 100}xx"
        self.calls.called(self.plan.key, outcome, self.calls.clock() - self.started)
        _wake(self._reader)
        _wake(self._writer)

    def __repr__(self) -> str:
        return f"Call({self.plan.key}, {self._error!r})"


def _wake(future: Any) -> None:
    if future is not None and not future.done():
        future.set_result(None)
