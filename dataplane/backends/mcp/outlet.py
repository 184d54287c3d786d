"""The upstream carrier of a request to MCP servers: it takes the request whole, and gives what `serving` answers.

`carriers.Upstream`. A message is bounded by what the listener lets be held; it takes room as other held bodies do.
What the client does not take stops whoever asks `ready`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from dataplane.backends.mcp import serving
from dataplane.chain.replies import made
from dataplane.http.dates import is_dated
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.http.rules import WHOLE_BODY
from dataplane.upstream.calls import Call

if TYPE_CHECKING:
    from dataplane.backends.mcp.answers import Answering
    from dataplane.backends.mcp.keep_alive import KeepAlive
    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.carriers import Consumer
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Work
    from dataplane.mcp.plans import McpPlan

_LINES: Final = {200: b"HTTP/1.1 200 OK", 202: b"HTTP/1.1 202 Accepted", 204: b"HTTP/1.1 204 No Content"}


class Outlet:
    """One request, and its answer."""

    is_shared = False

    def __init__(self, x: McpExchange, plan: McpPlan) -> None:
        self.x = x
        self.plan = plan
        self.block = b""
        """Header lines of the request, as its steps left them."""
        self.has_begun = False
        """The head of the answer is out."""
        self._consumer: Consumer | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._work: Work | None = None
        self._blocked: list[Future] = []
        """Of those who wait until the client takes more: several streams may be one."""
        self._is_paused = False
        self.keep_alive: float | None = None
        """Seconds of silence on a stream of events after which it gets a sign of life; None: none."""
        self._signs: KeepAlive | None = None
        self._poured: Call | None = None
        """Whose answer is given as it comes."""

    # --- the request (`carriers.Upstream`)

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self._consumer, self.block = consumer, block
        self.content(first, end)

    def content(self, data: bytes, end: bool) -> None:
        if self._consumer is None or self._work is not None:
            return
        if data and not self._held(data):
            return
        if end:
            self._work = self.x.work(self._run(b"".join(self._parts)))
            self._parts.clear()

    def _held(self, data: bytes) -> bool:
        x = self.x
        if self._size + len(data) > x.may_hold(WHOLE_BODY):
            x.reply(made("BodyTooLarge"))
            return False
        if not x.context.room.take(len(data)):
            x.reply(made("TooManyBodies"))
            return False
        self._size += len(data)
        self._parts.append(data)
        return True

    def trailers(self, lines: bytes) -> None:
        self.content(b"", True)

    def pause(self) -> None:
        self._is_paused = True
        if self._poured is not None:
            self._poured.hold(True)

    def resume(self) -> None:
        self._is_paused = False
        if self._poured is not None:
            self._poured.hold(False)
        for each in tuple(self._blocked):
            _wake(each)

    def reset(self) -> None:
        self._consumer = None
        if self._work is not None:
            self._work.cancel()
        self._free()  # here, since work that is cancelled before its first turn never runs its `finally`

    def discard(self) -> None:
        self.reset()

    async def _run(self, body: bytes) -> Reply | None:
        try:
            return await serving.serve(self, body)
        finally:
            self._free()

    def _free(self) -> None:
        self.x.context.room.free(self._size)
        self._size = 0
        self._parts.clear()

    # --- the answer

    @property
    def is_open(self) -> bool:
        """Somebody takes the rest of it."""
        return self._consumer is not None

    @property
    def is_paused(self) -> bool:
        """The client takes no more for now."""
        return self._is_paused

    def taken(self) -> None:
        """A server is asked now. Nothing, where the client waits for what it answers."""

    def give_up(self) -> None:
        """Nobody wants the answer any more, though the exchange is over (`legacy/client_posts`)."""
        if self._work is not None:
            self._work.cancel()

    async def ready(self) -> None:
        """Wait until the client takes more."""
        while self._is_paused and self._consumer is not None:
            blocked = self.x.context.make_future()
            self._blocked.append(blocked)
            try:
                await blocked
            finally:
                self._blocked.remove(blocked)

    def head(self, status: int, lines: bytes, length: int = UNKNOWN, first: bytes = b"", end: bool = False) -> None:
        """The answer begins; `lines`: its header lines."""
        self.has_begun = True
        if self._consumer is None:
            return
        size = b"" if length < 0 or status == _NO_CONTENT else b"content-length: %d\r\n" % length
        block = b"\r\n" + size + lines
        line = _LINES.get(status, b"HTTP/1.1 %d " % status)
        head = ResponseHead(status, line, block, None, length, is_dated(block.lower()))
        self._consumer.upstream_head(head, first, end)
        if self.keep_alive is not None and not end:
            self._keep_alive(self.keep_alive, block, first)

    def _keep_alive(self, seconds: float, block: bytes, first: bytes) -> None:
        head = Head(block)
        if is_stream(head) and head.get(b"content-encoding") is None:
            from dataplane.backends.mcp.keep_alive import KeepAlive  # few ask for it

            self._signs = KeepAlive(self, seconds)
            if first:
                self._signs.gave(first)

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        """All of the answer."""
        self.head(status, lines, len(body), body, True)

    def give(self, data: bytes) -> None:
        """More of its content."""
        if data and self._consumer is not None:
            if self._signs is not None:
                self._signs.gave(data)
            self._consumer.upstream_content(data, False)

    async def pour(self, call: Answering) -> None:
        """Give what is left of an answer. Raises `CallFailed`."""
        await self.ready()
        if not isinstance(call, Call):
            await give_all(self, call)
            return
        self._poured = call
        try:
            await call.pour(self.give)
        finally:
            self._poured = None

    def end(self) -> None:
        """There is no more."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.upstream_content(b"", True)

    def lost(self) -> None:
        """The rest of it cannot be had."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.upstream_lost("reset", False)

    def __repr__(self) -> str:
        return f"Outlet({'answering' if self.has_begun else 'taking'})"


_NO_CONTENT: Final = 204


class _Gives(Protocol):
    def give(self, data: bytes) -> None: ...

    async def ready(self) -> None: ...


async def give_all(out: _Gives, call: Answering) -> None:
    """The same in turns of the loop. Raises `CallFailed`."""
    while data := await call.receive():
        out.give(data)
        await out.ready()


def _wake(future: Future) -> None:
    if not future.done():
        future.set_result(None)
