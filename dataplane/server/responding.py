"""The response side of a downstream HTTP/1.1 connection: what the endpoint answers, what we answer, and how it ends.

`Connection` (the request side) inherits from `Responding`; the two are one object on the hot path. As the consumer of
its exchange's upstream connection it hears the `upstream_*` methods.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.http import chunked
from dataplane.http.body import Gone, gather
from dataplane.http.heads import Head
from dataplane.http.statuses import BODILESS, SWITCHING
from dataplane.net.writes import Gathering
from dataplane.proxy import attempts, responses
from dataplane.proxy.finish import finish
from dataplane.proxy.reply_head import head_of, status_line
from dataplane.upstream import balance
from dataplane.upstream.response_head import CHUNKED, LENGTH, UNTIL_CLOSE

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.proxy.context import Context
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.response_head import ResponseHead

log = logging.getLogger("dataplane.server")

READ_HEAD, READ_BODY, WAIT, TUNNELLING, LINGER, CLOSED = range(6)
"""What the next byte from the client is: of a head; of a body; of the next request (kept); of a tunnel; unwanted."""

PIPELINED, HELD, UPSTREAM = 1, 2, 4
"""Reasons to stop reading from the client, as bits."""


class Late:
    """A response that is not passed on yet: steps read its body, or wait."""

    __slots__ = ("ended", "head", "limit", "pieces", "reader", "size")

    def __init__(self, head: ResponseHead, limit: int = -1) -> None:
        self.head = head
        self.limit = limit
        """Bytes that are held before the steps run without them; -1: steps are under way."""
        self.pieces: list[bytes] = []
        self.size = 0
        self.ended = False
        self.reader: chunked.ChunkedReader | None = None
        """Of a body in chunks whose content is held, and which leaves in chunks again."""

    def take(self) -> bytes:
        """What is here of the body, removed."""
        pieces, self.pieces = self.pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Responding(Gathering):
    """State that both sides share, and the response side's methods."""

    __slots__ = (
        "bind",
        "buffer",
        "context",
        "encode",
        "exchange",
        "half_closed",
        "idle_since",
        "keep",
        "late",
        "paused",
        "raw_chunks",
        "request_done",
        "state",
        "up_ended",
        "upgrade",
        "waiting",
        "write_paused",
    )

    def __init__(self, context: Context, bind: str) -> None:
        super().__init__(context.writes)
        self.context = context
        self.bind = bind
        self.state = READ_HEAD
        self.exchange: Any = None
        """The Exchange under way, or None between requests."""
        self.buffer = b""
        """Bytes from the client that are not looked at yet."""
        self.keep = True
        self.half_closed = False
        self.request_done = True
        self.raw_chunks = True
        self.encode: bool | chunked.ChunkedReader = False
        """The response body has to be chunked by us; a reader knows the trailers to send behind it."""
        self.upgrade = b""
        """The protocol that the client asked to switch to."""
        self.late: Late | None = None
        """What is not passed on yet of the response, because response steps read its body or wait."""
        self.up_ended = False
        """The endpoint sends no more into the tunnel."""
        self.waiting: Any = None
        """The Task in which request steps of this exchange, or of one before, wait."""
        self.paused = 0
        self.write_paused = False
        self.idle_since = 0.0

    # --- from the endpoint

    def upstream_head(self, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        x = self.exchange
        attempts.settle(x)
        if x.retries is not None and attempts.refuses(x, self.context, up, head):
            return  # it is tried again
        if x.out and not x.attempt:  # it was sent in one piece: the client's own pace is not in the figure
            balance.observe(x.endpoint, self.context.clock() - x.started)
        status = x.status = head.status
        x.out = b""
        if self.write_paused:
            up.pause()
        if status == SWITCHING:
            self._switch(x, up, head, first)
            return
        route, target, gateway = x.policies.chain.response, x.target_plan.chain.response, x.listener.chain.response
        undecided = x.retries is not None and not x.retries.decided
        if route is None and target is None and gateway is None and not undecided:
            plan = x.listener.access_log
            if plan is not None and plan.reads_headers:
                x.response = Head(head.block, head.low)
            self._send_head(x, head.line, head.block, head.framing, first)
            return
        x.response = Head(head.block, head.low)
        reads = x.policies.chain.response_body or x.target_plan.chain.response_body or x.listener.chain.response_body
        if reads or undecided:
            self._hold(x, up, head, first)
        else:
            self._respond(x, head, first)

    def _respond(self, x: Exchange, head: ResponseHead, first: bytes) -> None:
        """Run the response steps, and send what they made of the response. `first`: what there is of its body."""
        if x.retries is not None and not x.retries.decided and attempts.refuses_body(x, self.context):
            self.late = None
            return
        try:
            rest = responses.run_fast(x)
        except Exception as error:  # a step's bug must end in an answer
            self.failed(x, error)
            return
        if rest is None:
            self._answer(x, head, first)
        elif isinstance(rest, Reply):
            self.reply(x, rest)
        else:
            self.late = self.late or Late(head)
            self.late.pieces = [first]
            if x.up is not None:
                x.up.pause()
            self.context.spawn(self._respond_later(x, head, rest))

    async def _respond_later(self, x: Exchange, head: ResponseHead, rest: Coroutine[Any, Any, Reply | None]) -> None:
        """The general path of response steps: what arrives of the body meanwhile is held, the endpoint not read."""
        try:
            reply = await rest
        except Exception as error:  # a step's bug must end in an answer
            self.failed(x, error)
            return
        if x.ended or x.replied:  # answered otherwise meanwhile: what is held now is of a later exchange
            return
        if reply is not None:
            self.reply(x, reply)
            return
        self._answer(x, head, self.late.take())  # type: ignore[union-attr]  # it is there while steps wait
        if x.up is not None and not self.write_paused:
            x.up.resume()

    def _answer(self, x: Exchange, head: ResponseHead, first: bytes) -> None:
        """Send a response on which all steps have run, and what there is of its body."""
        late, self.late = self.late, None
        ended = late is not None and late.ended
        line, block, framing = head.line, x.response.block, head.framing  # type: ignore[union-attr]  # as steps had it
        if x.status != head.status or x.answer_changed:
            line = status_line(x.status)
            other = responses.other(x, head.status)
            if other is not None:
                block, first = other
                framing = LENGTH
                if not ended and head.status not in BODILESS and x.method != b"HEAD":
                    self._detach(x)  # what the endpoint still sends is for nobody
                    ended = True
        if late is not None and framing == CHUNKED and late.reader is not None:
            self.encode = late.reader
        self._send_head(x, line, block, framing, first)
        if ended:
            self.upstream_end()
        elif late is not None and self.write_paused:
            x.up.pause()

    # --- responses that are held for the steps that read their body

    @property
    def is_holding(self) -> bool:
        """A response is read to be held: how fast the client reads does not matter yet."""
        return self.late is not None and self.late.limit >= 0

    def _hold(self, x: Exchange, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        """Read the body to its end before the steps run; at once when it has none, has no end, or is too large."""
        limit = responses.most_held(x)
        if x.method == b"HEAD" or head.status in BODILESS or responses.is_stream(x):
            x.answer_body = b"" if head.status == 204 else None
        elif head.framing == LENGTH and head.length > limit:
            x.answer_over = True
        else:
            late = self.late = Late(head, limit)
            if head.framing == CHUNKED and self.raw_chunks:
                first, late.reader = up.content(first)
            up.resume()
            self._keep(late, first)
            return
        self._respond(x, head, first)

    def _keep(self, late: Late, data: bytes) -> None:
        """More of a response that is not passed on yet."""
        gather(late.pieces, data)
        late.size += len(data)
        if 0 <= late.limit < late.size:
            self.exchange.answer_over = True
            self._held(late)

    def _held(self, late: Late) -> None:
        """All that is held of a response is here: run the steps."""
        x = self.exchange
        late.limit = -1
        data = late.take()
        if not x.answer_over:
            x.answer_body = data
        self._respond(x, late.head, data)

    def _send_head(self, x: Exchange, line: bytes, block: bytes, framing: int, first: bytes) -> None:
        """Write a response head, framed for this client, and what is there of the body."""
        x.replied = True
        if self.context.draining or not self.request_done:
            self.keep = False
        if framing == UNTIL_CLOSE and self.raw_chunks:
            self.encode = True
            block += b"transfer-encoding: chunked\r\n"
        elif not self.raw_chunks:
            block = self._head_for_old(block, framing)
        if not self.keep:
            block += b"connection: close\r\n"
        x.response_bytes = len(first)
        if self.encode and first:
            first = chunked.encode(first)
        self.write(b"".join((line, block, b"\r\n", first)))

    def _head_for_old(self, block: bytes, framing: int) -> bytes:
        """HTTP/1.0 knows no chunks (RFC 9112 section 6.1) and keeps connections only when told."""
        head = Head(block)
        head.remove(b"transfer-encoding")
        block = head.block
        if framing in (CHUNKED, UNTIL_CLOSE):
            self.keep = False
        return block + b"connection: keep-alive\r\n" if self.keep else block

    def upstream_interim(self, head: ResponseHead) -> None:
        if self.raw_chunks:  # an HTTP/1.0 client would take it for the response
            self.write(b"".join((head.line, head.block, b"\r\n")))

    def upstream_body(self, data: bytes) -> None:
        if self.late is not None:
            self._keep(self.late, data)
            return
        self.exchange.response_bytes += len(data)
        self.write(chunked.encode(data) if self.encode else data)

    def upstream_end(self) -> None:
        x = self.exchange
        if self.late is not None:
            self.late.ended = True
            x.up = None  # it carries the next request of anybody now
            if self.is_holding:
                self._held(self.late)
            return
        if self.state == TUNNELLING:
            self._tunnel_half_ended(x)
            return
        x.up = None
        if self.encode:
            self.write(chunked.LAST if self.encode is True else chunked.last(self.encode.trailers))
        self._finish(x)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        x = self.exchange
        self.late = None
        if self.state == TUNNELLING and cause == "closed":
            x.up = None
            self.flush()
            self.transport.close()
        elif x.replied:
            # a part of the response is out: only a broken connection tells the client that the rest is missing
            x.up = None
            self._abandon(x, "UpstreamFailed")
            self.transport.abort()
        else:
            attempts.lost(x, self.context, cause, stale)

    def upstream_paused(self, paused: bool) -> None:
        if paused:
            self._pause(UPSTREAM)
        else:
            self._resume(UPSTREAM)

    def _switch(self, x: Exchange, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        """101: from here on bytes pass both ways as they are (RFC 9110 section 7.8)."""
        if not self.upgrade or head.upgrade.lower() != self.upgrade.lower():
            self.reply(x, made("UpgradeFailed", f"upstream switched to {head.upgrade!r}"))
            return
        x.replied = True
        x.deadline = float("inf")
        self.state = TUNNELLING
        self.keep = False
        upgrade = b"connection: upgrade\r\nupgrade: %b\r\n\r\n" % head.upgrade
        x.response_bytes = len(first)
        self.write(b"".join((head.line, head.block, upgrade, first)))
        if self.buffer:
            data, self.buffer = self.buffer, b""
            x.body_bytes += len(data)
            up.write(data)
        self._resume(PIPELINED)

    def _tunnel_half_ended(self, x: Exchange) -> None:
        """The endpoint sends no more; the client may. When neither does, nothing else would end the two connections."""
        self.up_ended = True
        self.flush()
        if self.half_closed:
            up, x.up = x.up, None
            up.end()
            self.transport.close()
        elif self.transport.can_write_eof():
            self.transport.write_eof()

    # --- answers of our own

    def reply(self, x: Exchange, reply: Reply) -> None:
        """End the exchange with an answer of ours."""
        self._detach(x)
        self.late = None
        x.status, x.reason, x.detail = reply.status, reply.reason, reply.detail
        line, block = head_of(reply)
        if reply.close:
            self.keep = False
        x.response = Head(block)
        x.answer_body, x.answer_changed, x.answer_over = reply.body, False, False
        x.replied = True  # no deadline or lost connection may answer a second time
        if x.body is not None:
            x.body.fail()  # a step may still wait for the rest
        try:
            rest = responses.run(x)
        except Exception as error:  # the answer is made already: send it without that step's part
            log.error("response step failed in %r", x, exc_info=error)
            rest = None
        if rest is None:
            self._send_reply(x, reply, line)
        elif isinstance(rest, Reply):
            self.reply(x, rest)
        else:
            self.context.spawn(self._reply_later(x, reply, line, rest))

    async def _reply_later(
        self, x: Exchange, reply: Reply, line: bytes, rest: Coroutine[Any, Any, Reply | None]
    ) -> None:
        other = None
        try:
            other = await rest
        except Exception as error:  # the answer is made already: send it without that step's part
            log.error("response step failed in %r", x, exc_info=error)
        if x.ended:
            return
        if other is not None:
            self.reply(x, other)
        else:
            self._send_reply(x, reply, line)

    def _send_reply(self, x: Exchange, reply: Reply, line: bytes) -> None:
        body, block = b"" if x.method == b"HEAD" else reply.body, x.response.block  # type: ignore[union-attr]
        if x.status != reply.status or x.answer_changed:
            line = status_line(x.status)
            block, body = responses.other(x, reply.status) or (block, body)
        x.response_bytes = len(body)
        if self.context.draining or not self.request_done:
            self.keep = False
        connection = b"" if self.keep else b"connection: close\r\n"
        if self.keep and not self.raw_chunks:
            connection = b"connection: keep-alive\r\n"
        self.write(b"".join((line, block, connection, b"\r\n", body)))
        self._finish(x)

    def failed(self, x: Exchange, error: Exception) -> None:
        """A bug of ours in the life of an exchange."""
        if isinstance(error, Gone) and (x.ended or x.replied):
            return  # a step was told that it waits for nothing
        log.error("internal error in %r", x, exc_info=error)
        if x.ended:
            return
        if x.replied:
            self._abandon(x, "InternalError")
            self.transport.abort()
        else:
            self.reply(x, made("InternalError", repr(error)))

    def expired(self, x: Exchange, reason: str) -> None:
        """A deadline of the exchange passed."""
        if x.replied:
            self._abandon(x, reason)
            self.transport.abort()
        else:
            self.reply(x, made(reason))

    # --- ends

    def _finish(self, x: Exchange) -> None:
        """The response is whole: record it, then the next request or the end of the connection."""
        self.exchange = None
        self.encode = False
        self.idle_since = finish(x, self.context)
        if not self.keep or not self.request_done:
            self._hang_up()
            return
        self.state = READ_HEAD
        if self.paused:
            self._resume(HELD | UPSTREAM)
        if self.buffer or self.half_closed:
            self._next()

    def _abandon(self, x: Exchange, reason: str) -> None:
        """The exchange ends without (the whole of) its response."""
        self._detach(x)
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.cancel()  # what a step asks of other services is for nobody
        x.reason = reason
        self.exchange = None
        finish(x, self.context)
        if x.body is not None:
            x.body.fail()

    def _detach(self, x: Exchange) -> None:
        """Let go of the upstream side."""
        attempts.settle(x)
        up, x.up = x.up, None
        if up is not None:
            up.release()

    def _hang_up(self) -> None:
        """Close so that our last bytes arrive: while the client may still be sending, read on for a moment."""
        self.flush()
        if self.request_done or self.transport.is_closing():
            self.transport.close()
            if self.write_paused and self.state != CLOSED:  # closed only when the client has read what is unsent
                self.arm(self.idle_since + self.context.limits.idle_timeout)
            self.state = CLOSED
            return
        self.state = LINGER
        if self.paused:
            self.paused = 0
            self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.idle_since = self.context.clock()
        self.arm(self.idle_since + self.context.limits.linger)

    # --- flow control towards the client's sending

    def _pause(self, why: int) -> None:
        if not self.paused:
            self.transport.pause_reading()
        self.paused |= why

    def _resume(self, why: int) -> None:
        if self.paused & why:
            self.paused &= ~why
            if not self.paused and self.state != CLOSED:
                self.transport.resume_reading()

    # --- the request side's part (`Connection`)

    def arm(self, moment: float) -> None:
        raise NotImplementedError

    def _next(self) -> None:
        raise NotImplementedError
