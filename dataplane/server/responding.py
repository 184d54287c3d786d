"""The response side of a downstream HTTP/1.1 connection: what the endpoint sends, how it is framed for this client, and
how an exchange ends.

`Connection` (the request side) inherits from `Responding`; the two are one object on the hot path. As the consumer of
its exchange's upstream connection it hears the `upstream_*` methods. Responses that wait for steps are in
`held_responses`, what follows a 101 in `tunnel`, our own answers in `own_answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.http import chunked
from dataplane.http.heads import Head
from dataplane.http.statuses import SWITCHING
from dataplane.net.writes import Gathering
from dataplane.proxy import attempts
from dataplane.proxy.finish import finish
from dataplane.server import held_responses, own_answers, tunnel
from dataplane.server.states import CLOSED, HELD, LINGER, READ_HEAD, TUNNELLING, UPSTREAM
from dataplane.upstream import balance
from dataplane.upstream.response_head import CHUNKED, UNTIL_CLOSE

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context
    from dataplane.server.held_responses import Late
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.response_head import ResponseHead


class Responding(Gathering):
    """State that both sides share, and the response side's methods."""

    __slots__ = (
        "bind",
        "buffer",
        "claimed",
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
        self.claimed = 0
        """Bytes of the worker's room (`http/body.Room`) that the body of the present request takes."""
        self.keep = True
        """Another request may follow the present one."""
        self.half_closed = False
        """The client sends no more."""
        self.request_done = True
        """The present request is here whole."""
        self.raw_chunks = True
        """The client speaks HTTP/1.1: chunks of the endpoint's pass as they are."""
        self.encode: bool | chunked.ChunkedReader = False
        """The response body has to be chunked by us; a reader knows the trailers to send behind it."""
        self.upgrade = b""
        """The protocol that the client asked to switch to."""
        self.late: Late | None = None
        """What is not passed on yet of the response, because response steps read its body or wait."""
        self.up_ended = False
        """The endpoint sends no more into the tunnel."""
        self.waiting: Any = None
        """What request steps of this exchange, or of one before, wait in: it can be cancelled."""
        self.paused = 0
        """Why the client is not read now (bits of `states`)."""
        self.write_paused = False
        """The client reads slower than the endpoint sends."""
        self.idle_since = 0.0
        """When the last exchange ended, or the present head or close began (monotonic)."""

    # --- answers of our own

    reply = own_answers.reply
    failed = own_answers.failed
    give_up = own_answers.give_up

    switch = tunnel.switch

    # --- the request side's part (`Connection`)

    if TYPE_CHECKING:

        def arm(self, moment: float) -> None: ...

        def take_next(self) -> None: ...

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
            tunnel.begin(self, x, head, first)
            return
        route, target, gateway = x.policies.chain.response, x.target_plan.chain.response, x.listener.chain.response
        undecided = x.retries is not None and not x.retries.decided
        if route is None and target is None and gateway is None and not undecided:
            plan = x.listener.access_log
            if plan is not None and plan.reads_headers:
                x.response = Head(head.block, head.low)
            self.send_head(x, head.line, head.block, head.framing, first)
            return
        x.response = Head(head.block, head.low)
        reads = x.policies.chain.response_body or x.target_plan.chain.response_body or x.listener.chain.response_body
        if reads or undecided:
            held_responses.hold(self, x, up, head, first)
        else:
            held_responses.respond(self, x, head, first)

    def send_head(self, x: Exchange, line: bytes, block: bytes, framing: int, first: bytes) -> None:
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
            held_responses.keep(self, self.exchange, self.late, data)
            return
        self.exchange.response_bytes += len(data)
        self.write(chunked.encode(data) if self.encode else data)

    def upstream_end(self) -> None:
        x = self.exchange
        if self.late is not None:
            held_responses.end(self, x, self.late)
            return
        if self.state == TUNNELLING:
            tunnel.endpoint_ended(self, x)
            return
        x.up = None
        if self.encode:
            self.write(chunked.LAST if self.encode is True else chunked.last(self.encode.trailers))
        self.complete(x)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        x = self.exchange
        self.late = None
        if self.state == TUNNELLING and cause == "closed":
            tunnel.endpoint_closed(self, x)
        elif x.replied:
            x.up = None
            self.give_up(x, "UpstreamFailed")
        else:
            attempts.lost(x, self.context, cause, stale)

    def upstream_paused(self, paused: bool) -> None:
        if paused:
            self.pause_reading(UPSTREAM)
        else:
            self.resume_reading(UPSTREAM)

    # --- ends

    def complete(self, x: Exchange) -> None:
        """The response is whole: record it, then the next request or the end of the connection."""
        self.exchange = None
        self.encode = False
        self.idle_since = finish(x, self.context)
        if self.claimed:
            self.unclaim()
        if not self.keep or not self.request_done:
            self._hang_up()
            return
        self.state = READ_HEAD
        if self.paused:
            self.resume_reading(HELD | UPSTREAM)
        if self.buffer or self.half_closed:
            self.take_next()

    def abandon(self, x: Exchange, reason: str) -> None:
        """The exchange ends without (the whole of) its response."""
        self.detach(x)
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.cancel()  # what a step asks of other services is for nobody
        x.reason = reason
        self.exchange = None
        finish(x, self.context)
        self.unclaim()
        if x.body is not None:
            x.body.fail()

    def unclaim(self) -> None:
        """The body that took room is kept no longer."""
        self.context.room.free(self.claimed)
        self.claimed = 0

    def detach(self, x: Exchange) -> None:
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

    def pause_reading(self, why: int) -> None:
        if not self.paused:
            self.transport.pause_reading()
        self.paused |= why

    def resume_reading(self, why: int) -> None:
        if self.paused & why:
            self.paused &= ~why
            if not self.paused and self.state != CLOSED:
                self.transport.resume_reading()
