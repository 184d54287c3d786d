"""The upstream carrier of a request that a kind of backends ends itself: it takes the request whole, or as it comes,
and gives what is served. `contract` has the laws.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutine
from typing import TYPE_CHECKING, Final, Protocol

from dataplane.backends.terminating.contract import MOST_AHEAD
from dataplane.chain.chain import leave
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.body import BodyMemoryFull, TooLarge, gather
from dataplane.http.dates import is_dated
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.http.rules import WHOLE_BODY
from dataplane.upstream.calls import Call

if TYPE_CHECKING:
    from dataplane.backends.terminating.contract import Passing, Pours, Routed, Served
    from dataplane.backends.terminating.keep_alive import KeepAlive
    from dataplane.carriers import Consumer
    from dataplane.chain.filter import Future
    from dataplane.exchange import Work

Serve = Callable[["Terminator"], "Served"]

SMALL: Final = 16_384
"""Bytes of a request that takes no memory of the worker as long as nothing waits."""
_LINES: Final = {200: b"HTTP/1.1 200 OK", 202: b"HTTP/1.1 202 Accepted", 204: b"HTTP/1.1 204 No Content"}
_NO_CONTENT: Final = 204


class Terminator:
    """One try of a request, and its answer: `carriers.Upstream`, `contract.Answer` and `contract.Taker` in one object.

    `serve`: called once. `takes_whole`: when the request is here whole, else when its head is."""

    __slots__ = (
        "_claimed",
        "_consumer",
        "_is_here",
        "_is_paused",
        "_is_served",
        "_is_stopped",
        "_parts",
        "_passing",
        "_poured",
        "_read",
        "_reader",
        "_serve",
        "_signs",
        "_size",
        "_takes_whole",
        "_wait_for_client",
        "_work",
        "at_end",
        "block",
        "has_begun",
        "keep_alive",
        "trailer_lines",
        "x",
    )
    is_shared = False
    is_judged = False

    def __init__(self, x: Routed, serve: Serve, *, takes_whole: bool = True) -> None:
        self.x = x
        self.block = b""
        """Header lines of the request, as its steps left them."""
        self.trailer_lines = b""
        """Those that the request ended with."""
        self.has_begun = False
        """The head of the answer is out."""
        self.at_end: Callable[[], None] | None = None
        """Called when the request is served, or the answer is not wanted any more; once."""
        self.keep_alive: float | None = None
        """Seconds of silence on a stream of events after which it gets a sign of life; None: none."""
        self._serve: Serve | None = serve
        """None: it was called."""
        self._takes_whole = takes_whole
        self._consumer: Consumer | None = None
        self._parts: list[bytes] = []
        self._size = 0
        """Bytes of `_parts`."""
        self._claimed = 0
        """Bytes of the worker's memory that the request takes."""
        self._is_here = False
        """All of the request has come."""
        self._is_served = False
        """What is claimed is not given back any more."""
        self._work: Work | None = None
        self._reader: Future | None = None
        """Of who waits for more of the request."""
        self._is_stopped = False
        """The client was asked to send no more for now."""
        self._wait_for_client: list[Future] | None = None
        """Of those who wait until the client takes more: several streams may be one."""
        self._is_paused = False
        self._signs: KeepAlive | None = None
        self._poured: Call | None = None
        """Whose answer is given as it comes."""
        self._passing: Passing | None = None
        """Whom the request was handed on to."""
        self._read: Passing | None = None
        """The same where its answer is read: it may be over before anybody begins to."""

    # --- the request (`carriers.Upstream`)

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        self._consumer, self.block = consumer, block
        if not self._takes_whole:
            if first:
                self._parts.append(first)
                self._size = len(first)
            self._is_here = end
            self._begin()
        elif end and len(first) <= SMALL:  # most are: it takes memory as soon as something waits
            if first:
                if len(first) > self.x.may_hold(WHOLE_BODY):
                    self.x.reply(made("BodyTooLarge"))
                    return
                self._parts.append(first)
                self._size = len(first)
            self._is_here = True
            self._begin()
        elif not first or self._held(first):
            self._is_here = end
            if end:
                self._begin()

    def content(self, data: bytes, end: bool) -> None:
        if self._passing is not None:
            self._passing.more(data, end)
        elif self._consumer is None or self._is_here:
            return
        elif self._takes_whole:
            if data and not self._held(data):
                return
            self._is_here = end
            if end:
                self._begin()
        else:
            self._arrived(data, end)

    def trailers(self, lines: bytes) -> None:
        self.trailer_lines = lines
        if self._passing is not None:
            self._passing.ends(lines)
        else:
            self.content(b"", True)

    def _held(self, data: bytes) -> bool:
        x = self.x
        if self._size + len(data) > x.may_hold(WHOLE_BODY):
            x.reply(made("BodyTooLarge"))
            return False
        if not x.context.body_memory.take(len(data), x.peer):
            x.reply(made("TooManyBodies"))
            return False
        self._claimed += len(data)
        self._size += len(data)
        gather(self._parts, data)
        return True

    def hold(self, size: int) -> bool:
        """As `Answer.hold`."""
        if self._is_served or not self.x.context.body_memory.take(size, self.x.peer):
            return False
        self._claimed += size
        return True

    def _arrived(self, data: bytes, end: bool) -> None:
        if data:
            gather(self._parts, data)
            self._size += len(data)
        self._is_here = end
        if self._size >= MOST_AHEAD and not self._is_stopped and not end:
            self.hold_client(True)
        if self._reader is not None:
            _wake(self._reader)

    def _begin(self) -> None:
        """Serve the request, as soon as a turn has time for what takes unknown time: to read it, and to judge it."""
        turns = self.x.context.turns
        if turns.has_time():
            self._begin_now()
        elif self._has_capacity():
            turns.add(self, self.x.makers()[0])

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: this turn has time."""
        if self._consumer is not None:  # else it was given up
            self._begin_now()

    def _begin_now(self) -> None:
        turns, makers = self.x.context.turns, self.x.makers()
        self._serve_now()
        turns.has_gone_on(*makers)

    def _serve_now(self) -> None:
        serve, self._serve = self._serve, None
        assert serve is not None  # it is called once
        try:
            found = serve(self)
        except Exception as error:  # a bug in Gatewright must end in an answer
            self.x.failed(error)
            return
        if found is not None and not isinstance(found, Reply):
            self.run(found)
            return
        if self._passing is None:
            self.finish()
        if found is not None:
            self.x.reply(found)

    def run(self, served: Awaitable[Reply | None]) -> None:
        """As `Taker.run`."""
        if self._has_capacity():
            self._is_served = False
            self._work = self.x.work(self._run(served))
        elif iscoroutine(served):
            leave(served)

    def _has_capacity(self) -> bool:
        """What is here of the request takes memory of the worker from now on; otherwise it was answered."""
        missing = self._size - self._claimed if self._takes_whole else 0
        if missing and not self.x.context.body_memory.take(missing, self.x.peer):
            self.x.reply(made("TooManyBodies"))
            return False
        self._claimed += missing
        return True

    async def _run(self, served: Awaitable[Reply | None]) -> Reply | None:
        try:
            return await served
        except TooLarge:
            return made("BodyTooLarge")
        except BodyMemoryFull:
            return made("TooManyBodies")
        finally:
            if self._passing is None:
                self.finish()

    def finish(self) -> None:
        """As `Taker.finish`."""
        self._is_served = True
        self._free()
        self._passing = self._read = None
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            at_end()

    def _free(self) -> None:
        if self._claimed:
            self.x.context.body_memory.free(self._claimed, self.x.peer)
        self._claimed = self._size = 0
        self._parts.clear()

    def pause(self) -> None:
        self._is_paused = True
        self._hold(True)

    def resume(self) -> None:
        self._is_paused = False
        self._hold(False)
        for each in tuple(self._wait_for_client or ()):
            _wake(each)

    def _hold(self, held: bool) -> None:
        whose = self._poured if self._passing is None else self._passing
        if whose is not None:
            whose.hold(held)

    def reset(self) -> None:
        self._consumer = None
        if self._work is not None:
            self._work.cancel()
        for call in (self._passing, self._read):
            if call is not None:
                call.cancel()
        self.finish()  # here, since work that is cancelled before its first turn never runs its `finally`

    def discard(self) -> None:
        self.reset()

    # --- the request, for who serves it

    @property
    def whole_body(self) -> bytes | None:
        """All of the request's content, while it is kept; None: it is not here whole."""
        if not self._is_here:
            return None
        parts = self._parts
        if len(parts) > 1:
            parts[:] = [b"".join(parts)]
        return parts[0] if parts else b""

    def replace(self, data: bytes) -> None:
        """The request's content, which is here whole, is `data` from now on, for whom it is handed on to."""
        self._parts[:] = [data]
        self._size = len(data)

    async def body(self, most: int) -> bytes:
        """The request's content, whole, of at most `most` bytes. Raises `TooLarge` and `BodyMemoryFull`, which who
        serves may let pass: the client reads what they mean."""
        if self._takes_whole:
            if self._size > most:
                raise TooLarge
            return self.whole_body or b""
        parts: list[bytes] = []
        size = 0
        while data := await self.received():
            size += len(data)
            if size > most:
                raise TooLarge
            if not self.x.context.body_memory.take(len(data), self.x.peer):
                raise BodyMemoryFull
            self._claimed += len(data)
            gather(parts, data)
        return b"".join(parts)

    async def received(self) -> bytes:
        """More of the request's content; b"": there is no more."""
        while not self._parts and not self._is_here:
            self._reader = self.x.context.make_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._is_stopped:
            self.hold_client(False)
        return data

    def hold_client(self, held: bool) -> None:
        """As `Taker.hold_client`."""
        self._is_stopped = held
        if self._consumer is None:
            return
        if held:
            self._consumer.upstream_blocked()
        else:
            self._consumer.upstream_drained()

    # --- the answer

    @property
    def is_open(self) -> bool:
        """Somebody takes the rest of it."""
        return self._consumer is not None

    @property
    def is_paused(self) -> bool:
        """As `Answer.is_paused`."""
        return self._is_paused

    def give_up(self) -> None:
        """As `Answer.give_up`."""
        if self._work is not None:
            self._work.cancel()

    async def ready(self) -> None:
        """As `Answer.ready`."""
        while self._is_paused and self._consumer is not None:
            blocked = self.x.context.make_future()
            if self._wait_for_client is None:
                self._wait_for_client = []
            self._wait_for_client.append(blocked)
            try:
                await blocked
            finally:
                self._wait_for_client.remove(blocked)

    def head(self, status: int, lines: bytes, length: int = UNKNOWN, first: bytes = b"", end: bool = False) -> None:
        """As `Answer.head`."""
        size = b"" if length < 0 or status == _NO_CONTENT else b"content-length: %d\r\n" % length
        block = b"\r\n" + size + lines
        line = _LINES.get(status, b"HTTP/1.1 %d " % status)
        self.pass_head(ResponseHead(status, line, block, None, length, is_dated(block.lower())), first, end)

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        """As `Answer.whole`."""
        self.head(status, lines, len(body), body, True)

    def give(self, data: bytes) -> None:
        """As `Answer.give`."""
        if data and self._consumer is not None:
            if self._signs is not None:
                self._signs.gave(data)
            self._consumer.upstream_content(data, False)

    async def pour(self, call: Pours) -> None:
        """As `Answer.pour`."""
        await self.ready()
        if not isinstance(call, Call):
            await give_all(self, call)
            return
        self._poured = call
        try:
            await call.pour(self.give)
        finally:
            self._poured = None

    def end(self, trailers: bytes = b"") -> None:
        """As `Answer.end`."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        if trailers:
            consumer.upstream_trailers(trailers)
        else:
            consumer.upstream_content(b"", True)

    def lost(self, cause: str = "reset") -> None:
        """As `Answer.lost`."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.upstream_lost(cause, False)

    # --- what a call brings that the request was handed on to (`contract.Taker`)

    def carry(self, call: Passing) -> tuple[bytes, bool]:
        """As `Taker.carry`."""
        self._passing = call
        data, is_whole = b"".join(self._parts), self._is_here
        self._parts.clear()
        if not self._takes_whole:
            self._size = 0  # else its call holds it, and it goes on counting
        return data, is_whole

    def take_back(self) -> None:
        """As `Taker.take_back`."""
        self._read, self._passing = self._passing, None

    def pass_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """As `Taker.pass_head`."""
        self.has_begun = True
        consumer = self._consumer
        if consumer is None:
            return
        if end:
            self._consumer = None
        consumer.upstream_head(head, first, end)
        if self.keep_alive is not None and not end:
            self._keep_alive(self.keep_alive, head, first)

    def _keep_alive(self, seconds: float, answer: ResponseHead, first: bytes) -> None:
        if answer.length >= 0:
            return  # its bytes are counted
        head = Head(answer.block)
        if is_stream(head) and not head.is_coded:
            from dataplane.backends.terminating.keep_alive import KeepAlive  # few ask for it

            self._signs = KeepAlive(self, self.x.context.calls, seconds)
            if first:
                self._signs.gave(first)

    def pass_interim(self, head: ResponseHead) -> None:
        """As `Taker.pass_interim`."""
        if self._consumer is not None:
            self._consumer.upstream_interim(head)

    def never_index(self, names: frozenset[bytes]) -> None:
        """As `Taker.never_index`."""
        if self._consumer is not None:
            self._consumer.upstream_never_indexed(names)

    def __repr__(self) -> str:
        return f"Terminator({'answering' if self.has_begun else 'taking'})"


class Gives(Protocol):
    """Of `contract.Answer` what gives."""

    def give(self, data: bytes) -> None: ...

    async def ready(self) -> None: ...


async def give_all(out: Gives, call: Pours) -> None:
    """What is left of an answer, in turns of the loop. Raises `CallFailed`."""
    while data := await call.receive():
        out.give(data)
        await out.ready()


def _wake(future: Future) -> None:
    if not future.done():
        future.set_result(None)
