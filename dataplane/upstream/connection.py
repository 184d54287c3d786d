"""One HTTP/1.1 connection to an endpoint: bytes out, a response head and body bytes in, to whoever consumes them.

This is an asyncio protocol without a Task. It frames responses (RFC 9112 section 6), and llhttp reads along: what the
two do not agree on is not a response. It knows nothing of the client; its `consumer` does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import httptools

from dataplane.http.chunked import BadChunk, ChunkedReader

if TYPE_CHECKING:
    from dataplane.upstream.endpoint import Endpoint

MAX_HEAD = 65_536
MAX_INFORMATIONAL = 16
"""1xx heads before a final one: an endless row of them would keep a request open for ever."""

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?").fullmatch
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*").fullmatch

IDLE, HEAD, LENGTH, CHUNKED, UNTIL_CLOSE, TUNNEL, CLOSED = range(7)
"""What the next byte from the endpoint belongs to."""


class Consumer(Protocol):
    """Who takes a response. After `upstream_end` or `upstream_lost` it hears no more of this exchange."""

    raw_chunks: bool
    """Wants chunked bodies as framed bytes; otherwise their content."""

    def upstream_head(self, status: int, data: bytes, eol: int, end: int, low: bytes) -> None:
        """`data[:eol]` is the status line, `data[eol:end + 2]` the header block, `low` that block in lower case."""

    def upstream_body(self, data: bytes) -> None: ...

    def upstream_end(self) -> None: ...

    def upstream_lost(self, cause: str, fresh: bool) -> None:
        """The response cannot be had (whole). `fresh`: this was the connection's first exchange."""

    def upstream_paused(self, paused: bool) -> None:
        """The endpoint takes no more bytes (or takes them again)."""


class UpstreamConnection:
    """Use: `begin(consumer, head)`, then `write` for more body. One exchange at a time."""

    __slots__ = (
        "consumer",
        "endpoint",
        "feed",
        "framing",
        "fresh",
        "head_request",
        "idle_since",
        "informational",
        "keep",
        "left",
        "reader",
        "request_done",
        "state",
        "tail",
        "transport",
        "whole",
        "write",
    )

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.consumer: Consumer | None = None
        self.transport: Any = None
        self.write: Any = None
        self.feed: Any = None
        self.state = IDLE
        self.fresh = True
        self.keep = True
        self.head_request = False
        self.request_done = True
        """The request was sent whole: only then can the connection carry another one."""
        self.tail = b""
        self.left = 0
        self.reader: ChunkedReader | None = None
        self.framing = LENGTH
        self.whole = False
        self.informational = 0
        self.idle_since = 0.0

    # --- what the proxy does with it

    def begin(self, consumer: Consumer, head: bytes, is_head: bool) -> None:
        """Send a request's first bytes; its response goes to `consumer`. `is_head`: that response has no body."""
        self.consumer = consumer
        self.state = HEAD
        self.head_request = is_head
        self.keep = True
        self.idle_since = 0.0
        self.write(head)

    def release(self) -> None:
        """The consumer is gone: whatever is still on the way cannot be told from the next response."""
        self.consumer = None
        self.close()

    def close(self) -> None:
        self.state = CLOSED
        if self.transport is not None:
            self.transport.abort()

    @property
    def started(self) -> bool:
        """Bytes of the response to the present request were seen."""
        return self.state != HEAD or self.tail != b"" or self.informational > 0

    # --- what the event loop does with it

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.write = transport.write
        transport.set_write_buffer_limits(high=65_536)
        self.feed = httptools.HttpResponseParser(self).feed_data

    def on_message_complete(self) -> None:
        self.whole = True

    def data_received(self, data: bytes) -> None:
        state = self.state
        if state == HEAD:
            self._head(self.tail + data if self.tail else data)
        elif state == TUNNEL or state == UNTIL_CLOSE:
            self.consumer.upstream_body(data)  # type: ignore[union-attr]
        elif state == LENGTH or state == CHUNKED:
            self._body(data)
        else:
            self._forget()
            self.close()  # bytes that nobody asked for (RFC 9112 section 9.2)

    def eof_received(self) -> bool:
        consumer = self.consumer
        if self.state == TUNNEL and consumer is not None:
            consumer.upstream_end()
            return True  # the other direction of a tunnel may go on
        return False

    def connection_lost(self, error: Exception | None) -> None:
        state, self.state = self.state, CLOSED
        consumer, self.consumer = self.consumer, None
        self._forget()
        if consumer is None:
            return
        if state == UNTIL_CLOSE and error is None:
            consumer.upstream_end()
        else:
            consumer.upstream_lost("reset" if error is not None else "closed", self.fresh)

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
                return self._bad("response head is too large")
            self.tail = data
            return None
        self.tail = b""
        eol = data.find(b"\r\n")
        if _STATUS_LINE(data, 0, eol) is None:
            return self._bad("malformed status line")
        status = int(data[9:12])
        low = data[eol : end + 2].lower()
        body = end + 4
        if status < 200 and status != 101:
            return self._informational(data, body)
        why = self._frame(status, low, data.startswith(b"HTTP/1.0"))
        if why:
            return self._bad(why)
        if not self._valid(data, body):
            return self._bad("malformed response head")
        consumer = self.consumer
        consumer.upstream_head(status, data, eol, end, low)  # type: ignore[union-attr]
        if self.consumer is not consumer:  # the head ended the exchange: refused upgrade, lost client
            return None
        self.state = self.framing
        if len(data) > body:
            self._body(data[body:])
        elif not self.left:
            self._complete()
        return None

    def _informational(self, data: bytes, body: int) -> None:
        """1xx: only 100 answers something that we ask for, and the client has had its own from us by then."""
        self.informational += 1
        if self.informational > MAX_INFORMATIONAL:
            return self._bad("too many informational responses")
        if not _is_head(data[:body]):
            return self._bad("malformed response head")
        if len(data) > body:
            self._head(data[body:])
        return None

    def _frame(self, status: int, low: bytes, old: bool) -> str:
        """Set framing, `left` and `keep` of a response (RFC 9112 section 6.3). Answers what is wrong with it, or ""."""
        self.left = -1
        p = low.find(b"\r\nconnection:")
        if p >= 0:
            value = low[p + 13 : low.find(b"\r\n", p + 2)]
            if b"close" in value or (old and b"keep-alive" not in value):
                self.keep = False
        elif old:
            self.keep = False
        coding = low.find(b"\r\ntransfer-encoding:")
        length = low.find(b"\r\ncontent-length:")
        if self.head_request or status in (204, 304):
            self.framing, self.left = LENGTH, 0
            return ""
        if status == 101:
            self.framing = TUNNEL
            return ""
        if coding >= 0:
            value = low[coding + 20 : low.find(b"\r\n", coding + 2)].strip(b" \t")
            if length >= 0 or value != b"chunked" or low.find(b"\r\ntransfer-encoding:", coding + 2) >= 0 or old:
                return "ambiguous framing"
            self.framing = CHUNKED
            self.reader = ChunkedReader(decode=not self.consumer.raw_chunks)  # type: ignore[union-attr]
            return ""
        if length >= 0:
            match = _LENGTH(low, length + 17, low.find(b"\r\n", length + 2))
            if match is None or low.find(b"\r\ncontent-length:", length + 2) >= 0:
                return "ambiguous framing"
            self.framing, self.left = LENGTH, int(match[1])
            return ""
        self.framing, self.keep = UNTIL_CLOSE, False
        return ""

    def _valid(self, data: bytes, body: int) -> bool:
        """Let llhttp judge the head. A response that is here whole goes through the connection's own parser, which then
        stands at the next message; for any other, feeding the body along would cost more than a parser for the head."""
        if self.framing != LENGTH or self.head_request or len(data) < body + self.left:
            return _is_head(data[:body])
        self.whole = False
        try:
            self.feed(data if len(data) == body + self.left else data[: body + self.left])
        except httptools.HttpParserError:
            return False
        return self.whole

    def _body(self, data: bytes) -> None:
        consumer: Any = self.consumer
        if self.state == LENGTH:
            left = self.left
            count = len(data)
            if count < left:
                self.left = left - count
                consumer.upstream_body(data)
                return
            if left:
                consumer.upstream_body(data if count == left else data[:left])
            if count > left:
                self.keep = False  # more bytes than the response has: the connection cannot be trusted
            self._complete()
        elif self.state == CHUNKED:
            self._chunks(data)
        elif data:
            consumer.upstream_body(data)

    def _chunks(self, data: bytes) -> None:
        try:
            out, used = self.reader.feed(data)  # type: ignore[union-attr]
        except BadChunk as error:
            self._bad(str(error))
            return
        if out:
            self.consumer.upstream_body(out)  # type: ignore[union-attr]
        if used >= 0:
            if used < len(data):
                self.keep = False
            self._complete()

    def _complete(self) -> None:
        """The response is whole: give the connection back, then tell the consumer (who may begin anew on it)."""
        consumer, self.consumer = self.consumer, None
        self.reader = None
        if self.keep and self.request_done and not self.endpoint.closed and self.state != CLOSED:
            self.state = IDLE
            self.fresh = False
            self.informational = 0
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
            consumer.upstream_lost(why, True)

    def _forget(self) -> None:
        try:
            self.endpoint.idle.remove(self)
        except ValueError:
            return  # it was in use


def _is_head(head: bytes) -> bool:
    try:
        httptools.HttpResponseParser(_NOBODY).feed_data(head)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return False
    return True


_NOBODY = object()
