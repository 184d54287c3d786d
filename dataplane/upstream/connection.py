"""One HTTP/1.1 connection to an endpoint: bytes out, a response head and body bytes in, to whoever consumes them.

This is an asyncio protocol without a Task. It frames responses and knows nothing of the client; its `consumer` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.http.chunked import BadChunk, ChunkedReader
from dataplane.net.writes import Gathering
from dataplane.upstream import response_head
from dataplane.upstream.response_head import CHUNKED, LENGTH, NOTHING, TUNNEL, UNTIL_CLOSE, ResponseHead

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.net.writes import Writes
    from dataplane.upstream.endpoint import Endpoint

MAX_HEAD = 65_536
MAX_INFORMATIONAL = 16
"""1xx heads before a final one: an endless row of them would keep a request open for ever."""

IDLE, GATHERED, HEAD, CLOSED = 10, 11, 12, 13
"""What the next byte from the endpoint belongs to, beside a body framed as in `response_head`. GATHERED: a request is
begun but not written yet, so whatever comes is no answer to it."""


UNSENT = "closed before it was used"
"""Cause of a loss: no byte of the request was written."""


class Consumer(Protocol):
    """Who takes a response. After `upstream_end` or `upstream_lost` it hears no more of this exchange."""

    raw_chunks: bool
    """Wants chunked bodies as framed bytes; otherwise their content."""

    def upstream_head(self, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
        """`first` is what came of the body with the head (to go out in the same write)."""

    def upstream_interim(self, head: ResponseHead) -> None:
        """A 1xx other than 100 and 101 (RFC 9110 15.2); the final response is still to come."""

    def upstream_body(self, data: bytes) -> None: ...

    def upstream_end(self) -> None: ...

    def upstream_lost(self, cause: str, stale: bool) -> None:
        """The response cannot be had (whole). `stale`: the connection had been idle, and nothing of a response came:
        most likely the endpoint had closed it before it saw the request."""

    def upstream_paused(self, paused: bool) -> None:
        """The endpoint takes no more bytes (or takes them again)."""


class UpstreamConnection(Gathering):
    """Use: `begin(consumer, head)`, then `write` for more body or for a tunnel. One exchange at a time."""

    __slots__ = (
        "consumer",
        "endpoint",
        "fresh",
        "idle_since",
        "informational",
        "keep",
        "known",
        "left",
        "on_close",
        "paused",
        "reader",
        "request_done",
        "state",
        "tail",
        "to_head",
    )

    def __init__(self, endpoint: Endpoint, writes: Writes, on_close: Callable[[], None] = lambda: None) -> None:
        super().__init__(writes)
        self.endpoint = endpoint
        self.on_close = on_close
        self.consumer: Consumer | None = None
        self.state = IDLE
        self.fresh = True
        self.keep = True
        self.to_head = False
        self.request_done = True
        """The request was sent whole: only then can the connection carry another one."""
        self.tail = b""
        self.left = 0
        self.paused = False
        self.reader: ChunkedReader | None = None
        self.known = NOTHING
        self.informational = 0
        self.idle_since = 0.0

    # --- what the proxy does with it

    def begin(self, consumer: Consumer, data: bytes, to_head: bool) -> None:
        """Send a request's first bytes; its response goes to `consumer`. `to_head`: that response has no body."""
        self.consumer = consumer
        self.state = GATHERED
        self.to_head = to_head
        self.idle_since = 0.0
        self.write(data)

    def flush(self) -> None:
        if self.state == GATHERED:
            self.state = HEAD
        super().flush()

    def write_eof(self) -> None:
        """Nothing more will be written."""
        self.flush()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def end(self) -> None:
        """Nothing more will be written or read: close when what was written is out."""
        self.consumer = None
        self.flush()
        self.state = CLOSED
        self.transport.close()

    def pause(self) -> None:
        """Read no more until `resume`: the consumer cannot pass on what comes."""
        if not self.paused and self.state != CLOSED:
            self.paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.paused and self.state != CLOSED:
            self.paused = False
            self.transport.resume_reading()

    def content(self, first: bytes) -> tuple[bytes, ChunkedReader]:
        """From now on hand on the content of a chunked body, instead of its chunks. `first`: the chunks that came with
        its head. Answers their content, and the reader, which knows the trailers when the body has ended."""
        reader = self.reader
        assert reader is not None  # of a chunked body
        reader.decode = True
        return ChunkedReader(decode=True).feed(first)[0], reader

    def release(self) -> None:
        """The consumer is gone: whatever is still on the way cannot be told from the next response."""
        self.consumer = None
        self.close()

    def park(self) -> None:
        """Nobody needs it now: keep it for the next request."""
        if self.state == IDLE and not self.endpoint.closed:
            self.fresh = False  # the endpoint may have closed it by the time that it is used
            self.endpoint.idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        self.state = CLOSED
        self.queued = b""
        if self.transport is not None:
            self.transport.abort()

    # --- what the event loop does with it

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=65_536)

    def data_received(self, data: bytes) -> None:
        state = self.state
        if state == HEAD:
            self._head(self.tail + data if self.tail else data)
        elif state < IDLE:
            out, done = self._take(data)
            consumer = self.consumer
            if out and consumer is not None:
                consumer.upstream_body(out)
            if done and self.consumer is consumer:
                self._complete()
        else:
            self._unasked()

    def _unasked(self) -> None:
        """Bytes that nobody asked for (RFC 9112 section 9.2): the connection cannot be trusted."""
        gathered = self.state == GATHERED
        consumer, self.consumer = self.consumer, None
        self._forget()
        self.close()
        if gathered and consumer is not None:
            consumer.upstream_lost(UNSENT, True)

    def eof_received(self) -> bool:
        if self.state == TUNNEL and self.consumer is not None:
            self.consumer.upstream_end()
            return True  # the other direction of a tunnel may go on
        if self.state == IDLE:
            self._forget()  # now: `connection_lost` comes a turn later, and a request might take it before
        return False

    def connection_lost(self, error: Exception | None) -> None:
        state, self.state = self.state, CLOSED
        consumer, self.consumer = self.consumer, None
        self._forget()
        self.on_close()
        if consumer is None:
            return
        if state == UNTIL_CLOSE and error is None:
            consumer.upstream_end()
        elif state == GATHERED:
            consumer.upstream_lost(UNSENT, True)
        else:
            stale = state == HEAD and not self.fresh and not self.tail and not self.informational
            consumer.upstream_lost("closed" if error is None else "reset", stale)

    def pause_writing(self) -> None:
        if self.consumer is not None:
            self.consumer.upstream_paused(True)

    def resume_writing(self) -> None:
        if self.consumer is not None:
            self.consumer.upstream_paused(False)

    # --- reading a response

    def _head(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > MAX_HEAD:
                self._bad("response head is too large")
            self.tail = data
            return
        self.tail = b""
        raw = data[: end + 2]
        head: ResponseHead | str = self.known
        if raw != self.known.raw or self.to_head != self.known.to_head:
            head = response_head.read(raw, self.to_head)
            if isinstance(head, str):
                self._bad(head)
                return
            if head.status < 200 and head.framing != TUNNEL:
                self._informational(head, data[end + 4 :])
                return
            self.known = head
        consumer: Any = self.consumer
        self.keep = head.keep  # type: ignore[union-attr]
        framing = self.state = head.framing  # type: ignore[union-attr]
        self.left = head.length  # type: ignore[union-attr]
        if framing == CHUNKED:
            self.reader = ChunkedReader(decode=not consumer.raw_chunks)
        first, done = self._take(data[end + 4 :])
        if self.consumer is None:  # the body is malformed: that was told
            return
        consumer.upstream_head(self, head, first)
        if done and self.consumer is not None:  # the head may have ended the exchange: refused upgrade, lost client
            self._complete()

    def _informational(self, head: ResponseHead, rest: bytes) -> None:
        """1xx: passed on, but 100, which answers us: the client has had its own from us by then."""
        self.informational += 1
        if self.informational > MAX_INFORMATIONAL:
            self._bad("too many informational responses")
            return
        if head.status != 100:
            self.consumer.upstream_interim(head)  # type: ignore[union-attr]
        if rest and self.state == HEAD:
            self._head(rest)

    def _take(self, data: bytes) -> tuple[bytes, bool]:
        """(what to hand on of body bytes, whether the response ends with them)."""
        state = self.state
        if state == LENGTH:
            left = self.left = self.left - len(data)
            if left < 0:
                self.keep = False  # more bytes than the response has: the connection cannot be trusted
                return data[:left], True
            return data, left == 0
        if state == CHUNKED and data:
            try:
                out, used = self.reader.feed(data)  # type: ignore[union-attr]
            except BadChunk as error:
                self._bad(str(error))
                return b"", False
            if 0 <= used < len(data):
                self.keep = False
            return out, used >= 0
        return data, False

    def _complete(self) -> None:
        """The response is whole: give the connection back, then tell the consumer (who may begin anew on it)."""
        consumer, self.consumer = self.consumer, None
        self.reader = None
        if self.keep and self.request_done and not self.endpoint.closed:
            self.state = IDLE
            self.fresh = False
            self.informational = 0
            if self.paused:
                self.resume()  # an idle connection that is not read would not notice that it was closed
            self.endpoint.idle.append(self)
        else:
            self.state = CLOSED
            self.transport.close()
        if consumer is not None:
            consumer.upstream_end()

    def _bad(self, why: str) -> None:
        consumer, self.consumer = self.consumer, None
        self.close()
        if consumer is not None:
            consumer.upstream_lost(why, False)

    def _forget(self) -> None:
        try:
            self.endpoint.idle.remove(self)
        except ValueError:
            return  # it was in use
