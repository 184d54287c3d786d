"""Stages on the content of a response: between its upstream, or an answer that is here whole, and the client.

They are installed by response steps, each as soon as its step's turn has come, and stand in `DelayedResponse` from then
to the end of the response. Until the head leaves, what left the last of them is gathered, a little of it. A body that
was buffered for a step passes a stage as a whole: the steps outside read what came out.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from dataplane.http.body import TooLarge, gather
from dataplane.http.messages import UNKNOWN
from dataplane.http.rules import WHOLE_BODY
from dataplane.http.statuses import BODILESS, RESET_CONTENT, SWITCHING
from dataplane.proxy import grpc_calls
from dataplane.proxy.response.delayed import DelayedResponse
from dataplane.proxy.steps import response_steps
from dataplane.proxy.steps.stages import Row, strip
from dataplane.streams import DESCRIBED
from dataplane.upstream import lease

if TYPE_CHECKING:
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.exchange import StreamHook
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.steps.stages import Place

BUG: Final = "InternalError"
"""Reason of the answer to a bug in Gatewright. No stage sees it: the bug may be a stage's."""


class ResponseStages(Row):
    """From the upstream to the client."""

    __slots__ = ("_is_out", "_pieces", "_size", "ended", "lines")

    def __init__(self, x: ActiveExchange) -> None:
        super().__init__(x)
        self._pieces: list[bytes] = []
        """What left the last stage before the head did."""
        self._size = 0
        self._is_out = False
        """The head has left."""
        self.ended = False
        self.lines = b""
        """Trailers that left the last stage before the head did."""

    def begin(self, line: bytes, block: bytes, first: bytes, end: bool, lines: bytes) -> None:
        """The response steps have run: send the head, and all that has left the last stage. `first`, `end`, `lines`:
        what there is of the content and its end that no stage has seen yet."""
        x = self.x
        self.take(first, end, lines)
        if self.is_over:  # a stage failed
            return
        x.replied = self._is_out = True
        data, down = self.taken(), x.down
        x.response_bytes = len(data)
        if self.ended:
            if self.lines:
                down.head(line, block, UNKNOWN, data, False)
                self._trailers(self.lines)
            else:
                block += b"content-length: %d\r\n" % len(data)
                down.head(line, block, len(data), data, True)
            self._complete()
            return
        down.head(line, block, UNKNOWN, data, False)
        if self.is_over:
            return
        if down.is_blocked:
            self.block()
        else:
            self.unblock()
        if not self._source_is_paused:  # it may have been stopped before there were stages
            self.resume_outside()

    def taken(self) -> bytes:
        """What was gathered, removed."""
        pieces, self._pieces = self._pieces, []
        self._size = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _complete(self) -> None:
        x = self.x
        x.delayed_response = None
        self.cancel()
        x.complete()

    # --- as `Row`

    def give(self, data: bytes, end: bool, lines: bytes) -> None:
        x = self.x
        if not self._is_out:
            self._gather(data, end)
            self.lines = lines
            return
        x.response_bytes += len(data)
        if not end:
            x.down.content(data, False)
            return
        if lines:
            if data:
                x.down.content(data, False)
            self._trailers(lines)
        else:
            x.down.content(data, True)
        self._complete()

    def _trailers(self, lines: bytes) -> None:
        grpc_calls.ended(self.x, lines)  # a stage may have changed what a call ends with
        self.x.down.trailers(lines)

    def _gather(self, data: bytes, end: bool) -> None:
        if data:
            gather(self._pieces, data)
            self._size += len(data)
        self.ended = end
        if self._size >= self.x.context.limits.content_buffer:
            self.block()

    def drop_source(self) -> None:
        lease.release(self.x)

    def pause_outside(self) -> None:
        if self.x.up is not None:
            self.x.up.pause()

    def resume_outside(self) -> None:
        if self.x.up is not None:
            self.x.up.resume()


class WholeBody(Row):
    """One stage that a whole body passes. Its source is here already."""

    __slots__ = ("_done", "_limit", "_pieces", "_size", "ended", "is_too_large", "lines")

    def __init__(self, x: ActiveExchange, limit: int) -> None:
        super().__init__(x)
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._done: Future | None = None
        self.ended = self.is_too_large = False
        self.lines = b""
        """Trailers that left the stage."""

    def give(self, data: bytes, end: bool, lines: bytes) -> None:
        self.lines = lines
        if data:
            gather(self._pieces, data)
            self._size += len(data)
        if self._size > self._limit:
            self._pieces.clear()
            self.is_too_large = True
        if end or self.is_too_large:
            self.ended = True
            self._wake()

    def fail(self, error: Exception) -> None:
        """The code that installs the stage raises it."""
        if self._error is None and not self.is_over:
            self._error = error
            self._wake()

    def answer(self, reply: Reply, place: Place) -> None:
        """The code that installs the stage answers it."""
        self._answer = reply
        self._wake()

    def _wake(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    async def wait(self) -> Reply | None:
        """Until the stage has given its end; then as `outcome`."""
        try:
            if not self.has_outcome:
                self._done = self.x.context.make_future()
                await self._done
            return self.outcome()
        finally:
            self.cancel()

    @property
    def has_outcome(self) -> bool:
        return self.ended or self._error is not None or self._answer is not None

    def outcome(self) -> Reply | None:
        """What came out is the body now, unless the stage answers. Raises `TooLarge`, and what the stage raised."""
        x, error = self.x, self._error
        self.cancel()
        if error is not None:
            self._error = None
            try:
                raise error
            finally:
                del error  # see `gatewright/kept_errors`
        if self.is_too_large:
            raise TooLarge
        if self._answer is not None:
            return self._answer
        x.response_body, x.response_body_changed = b"".join(self._pieces), True
        delayed = x.delayed_response
        if delayed is not None:
            delayed.staged, delayed.trailers = x.response_body, self.lines
            if self.lines:
                grpc_calls.ended(x, self.lines)
        return None

    def drop_source(self) -> None:
        """It has come already."""

    pause_outside = resume_outside = drop_source


def install(x: ActiveExchange, hook: StreamHook) -> Awaitable[Reply | None] | Reply | None:
    """As `Exchange.stream_response`."""
    head = x.response
    if head is None or x.status == SWITCHING or x.reason == BUG:
        return None
    if x.method == b"HEAD" or x.status in BODILESS or x.status == RESET_CONTENT:
        strip(head, DESCRIBED)  # there is no content, but what its head would say
        return None
    if x.response_body is not None:
        return _whole(x, hook, x.response_body)
    delayed = x.delayed_response
    known = None if delayed is None else delayed.stages
    row = known if isinstance(known, ResponseStages) else ResponseStages(x)
    place = row.add(hook)
    if place is None:
        return None
    strip(head, DESCRIBED)
    if delayed is None:
        delayed = x.delayed_response = DelayedResponse(None)
    if delayed.stages is None:
        delayed.stages = row
        lines, data, ended, delayed.ended = delayed.trailers, delayed.take(), delayed.ended, False
        if x.up is not None:
            x.up.resume()  # it was stopped while steps waited
    else:
        lines, data, ended = row.lines, row.taken(), row.ended
        row.ended, row.lines = False, b""
    return row.install(place, data, ended, lines if ended else b"")


def _whole(x: ActiveExchange, hook: StreamHook, body: bytes) -> Awaitable[Reply | None] | Reply | None:
    row = WholeBody(x, max(2 * len(body), response_steps.most_buffered(x), x.may_hold(WHOLE_BODY)))
    place = row.add(hook)
    if place is None:
        return None
    assert x.response is not None  # the caller has looked
    strip(x.response, DESCRIBED)
    delayed = x.delayed_response
    is_as_it_came = delayed is not None and (not x.response_body_changed or delayed.staged is body)
    place.take(body, True, delayed.trailers if delayed is not None and is_as_it_came else b"")
    return row.outcome() if row.has_outcome else row.wait()
