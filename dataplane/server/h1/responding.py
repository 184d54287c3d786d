"""The response side of a downstream HTTP/1.1 connection: how what the exchange says is framed for this client
(`carriers.Downstream`), and what becomes of the connection when an exchange is over.

`Connection` (the request side) inherits from `Responding`; the two are one object on the hot path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.connect_rules import CONNECT
from dataplane.http.h1 import chunked, framing
from dataplane.http.messages import NO_NAMES
from dataplane.net.writes import Gathering
from dataplane.server.h1.states import (
    CLOSED,
    ENCODED,
    EXCHANGE,
    JOINED,
    LINGER,
    PIPELINED,
    PLAIN,
    READ_HEAD,
    TUNNELLING,
)
from dataplane.upstream.h1 import UpstreamConnection

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.proxy.context import Context
    from dataplane.proxy.exchange import CarriedExchange


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
        "is_blocked",
        "keep",
        "knows_chunks",
        "may_buffer",
        "paused",
        "request_done",
        "state",
        "stream_head",
    )
    never_indexed = NO_NAMES

    def __init__(self, context: Context, bind: str) -> None:
        super().__init__(context.writes)
        self.context = context
        self.bind = bind
        self.state = READ_HEAD
        self.exchange: CarriedExchange | None = None
        """The one under way; None between requests."""
        self.buffer = b""
        """Bytes from the client that are not looked at yet."""
        self.keep = True
        """Another request may follow the present one."""
        self.half_closed = False
        """The client sends no more."""
        self.request_done = True
        """The present request is here whole."""
        self.knows_chunks = True
        """The client speaks HTTP/1.1."""
        self.encode = PLAIN
        self.stream_head = b""
        """Header lines of a response without a length that has begun, while it lasts."""
        self.paused = 0
        """Why the client is not read now (bits of `states`)."""
        self.is_blocked = False
        """The client reads slower than the endpoint sends."""
        self.may_buffer = context.limits.content_buffer
        self.idle_since = 0.0
        """When the last exchange ended, or the present head or close began (monotonic)."""

    # --- the request side's part (`Connection`)

    if TYPE_CHECKING:

        def arm(self, moment: float) -> None: ...

        def take_next(self) -> int: ...

        def stream_begins(self, x: CarriedExchange) -> None: ...

    # --- from the exchange (`carriers.Downstream`)

    def never_index(self, names: frozenset[bytes]) -> None:
        """HTTP/1 has no tables."""

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        if self.context.draining or not self.request_done:
            self.keep = False
        if not line:
            line = framing.status_line(self.exchange.status)  # type: ignore[union-attr]  # it speaks
        if length < 0:
            self.stream_head = block
            if self.half_closed:
                self.stream_begins(self.exchange)  # type: ignore[arg-type]  # it speaks
            if self.knows_chunks:
                self.encode = ENCODED
                block += framing.CHUNKED_LINE
                first = framing.chunk(first, end)
            else:  # HTTP/1.0 knows no chunks (RFC 9112 section 6.1)
                self.keep = False
        if not self.keep:
            block += framing.CLOSE_LINE
        elif not self.knows_chunks:  # and keeps connections only when asked to
            block += b"connection: keep-alive\r\n"
        self.unsent = len(self.queued)
        self.write(b"".join((line, block, b"\r\n", first)))

    def take_back(self) -> bool:
        if self.unsent < 0:
            return False
        self.queued, self.unsent = self.queued[: self.unsent], -1
        self.encode = PLAIN
        self.stream_head = b""
        return True

    def content(self, data: bytes, end: bool) -> None:
        if self.encode == ENCODED:
            data = framing.chunk(data, end)
        self.write(data)
        if end and self.state == TUNNELLING:
            self.flush()
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def trailers(self, lines: bytes) -> None:
        if self.encode == ENCODED:
            self.write(chunked.last(lines))

    def interim(self, line: bytes, block: bytes) -> None:
        if self.knows_chunks:  # an HTTP/1.0 client would take it for the response
            self.write(b"".join((line, block, b"\r\n")))

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        x = self.exchange
        assert x is not None  # it speaks
        self.state = TUNNELLING
        self.keep = False
        if x.method == CONNECT:  # RFC 9110 9.3.6: the 2xx itself says so
            line, headers = framing.status_line(x.status), b""
        else:
            headers = framing.upgrade_lines(x.upgrade)
        self.write(b"".join((line, block, headers, b"\r\n", first)))
        if self.buffer:  # the client did not wait for the 101
            data, self.buffer = self.buffer, b""
            x.downstream_content(data, False)
        if self.half_closed:  # nor did it wait with its end
            x.downstream_content(b"", True)
        self.resume_reading(PIPELINED)

    def invite(self) -> None:
        self.write(framing.CONTINUE)

    def close_after(self) -> None:
        self.keep = False

    def pause(self) -> None:
        self.pause_reading(EXCHANGE)

    def resume(self) -> None:
        self.resume_reading(EXCHANGE)

    def join(self, up: Upstream) -> None:
        """Chunks of an endpoint that speaks HTTP/1.1 pass as they are."""
        if self.encode == ENCODED and type(up) is UpstreamConnection and up.hand_chunks(self):
            self.encode = JOINED

    def chunks(self, framed: bytes, size: int) -> None:
        """As `http/h1/chunked.TakesChunks`."""
        if self.exchange is not None:
            self.exchange.response_bytes += size
            self.write(framed)

    def over(self, now: float) -> None:
        self.exchange = None
        self.unsent = -1
        self.encode = PLAIN
        self.stream_head = b""
        self.idle_since = now
        if not self.keep or not self.request_done:
            self.hang_up()
            return
        self.state = READ_HEAD
        if self.paused:
            self.resume_reading(EXCHANGE)
        if self.buffer or self.half_closed:
            self.take_next()

    def reset(self, cause: str) -> None:
        self.exchange = None
        self.flush()  # what the log counts has left
        self.transport.abort()

    # --- the end of the connection

    def hang_up(self) -> None:
        """Close so that our last bytes arrive: while the client may still be sending, read on for a moment."""
        if self.request_done or self.transport.is_closing():
            self.flush_and_close()
            if self.is_blocked and self.state != CLOSED:  # closed only when the client has read what is unsent
                self.arm(self.idle_since + self.context.limits.idle_timeout)
            self.state = CLOSED
            return
        self.flush()
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
