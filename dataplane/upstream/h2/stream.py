"""One stream of a shared HTTP/2 connection as a carrier of one exchange (`carriers.Upstream`).

It translates between the codec's calls and events and its consumer; which bytes leave when is the connection's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.carriers import REFUSED, UNSENT
from dataplane.http.h2.errors import CANCEL
from dataplane.http.h2.lines import BadLine
from dataplane.http.h2.states import CLOSED
from dataplane.upstream.h2 import heads

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Sleeper
    from dataplane.http.h2 import events
    from dataplane.http.h2.connection import Connection
    from dataplane.http.h2.streams import Stream
    from dataplane.http.messages import ResponseHead
    from dataplane.upstream.endpoint import Pool

CONNECT_NOT_ALLOWED = "it does not allow extended CONNECT (RFC 8441), which an upgrade needs over HTTP/2"
LENT = -1
SEVERAL_PROTOCOLS = "an upgrade to one of several protocols cannot be sent over HTTP/2"
CONTENT_BEFORE_TUNNEL = "an upgrade with content cannot be sent over HTTP/2"


class Lender(Protocol):
    """Whose stream it is (`connection.SharedConnection`)."""

    endpoint: Pool
    codec: Connection
    scheme: bytes
    reserved: int
    """Streams that were lent and have not begun."""
    received: int
    """Pieces read."""
    is_scheduled: bool
    """It writes at the end of this turn."""

    @property
    def is_open(self) -> bool:
        """Streams may be begun."""

    def touch(self, size: int = 0) -> None:
        """There may be something to write, of which `size` bytes are content."""

    def translated(self, head: events.ResponseHead, end: bool, to_head: bool) -> ResponseHead:
        """As `heads.response_head`."""


class SharedStream:
    """Made by `SharedConnection.lend`, which reserves it until it has begun. Over when `consumer` is None."""

    __slots__ = ("blocked", "connection", "consumer", "key", "mark", "paused", "stream", "tunnel", "unread")

    is_shared = True

    def __init__(self, connection: Lender) -> None:
        self.connection = connection
        self.consumer: Consumer | None = None
        self.stream: Stream | None = None
        """None: it has not begun, and holds a place of the connection."""
        self.blocked = False
        """The endpoint takes no more of the request; the consumer knows."""
        self.paused = False
        self.unread = 0
        """Bytes that the consumer was given while it asked for no more: owed to the endpoint until it does."""
        self.tunnel = False
        self.key = b""
        """Of a WebSocket handshake that waits for its answer."""
        self.mark = LENT
        """What the connection had received when this began; before that `LENT`."""

    # --- from the consumer

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        connection = self.connection
        connection.reserved -= 1  # the place that was kept
        self.consumer = consumer
        self.mark = connection.received
        if not connection.is_open:
            self.lose(UNSENT, True)
            return
        try:
            if consumer.upgrade:
                why = self._upgrade(consumer, block, end)
            else:
                why = self._request(consumer, block, end and not first)
        except BadLine:
            why = "the request has a header line that HTTP/2 cannot carry"
        if why:
            self.lose(why, False)
            return
        assert self.stream is not None  # it was opened
        self.stream.owner = self
        if first and connection.codec.send_content(self.stream, first, end):
            self.blocked = True
            consumer.upstream_blocked()
        connection.touch(len(first))

    def _request(self, consumer: Consumer, block: bytes, end: bool) -> str:
        self.stream = self.connection.codec.send_request(
            consumer.method,
            self.connection.scheme,
            heads.authority_of(block),
            consumer.target,
            heads.with_te(consumer, block),
            end,
            b"",
            consumer.never_indexed,
        )
        return ""

    def _upgrade(self, consumer: Consumer, block: bytes, end: bool) -> str:
        """RFC 8441 4. Answers why it cannot be."""
        codec = self.connection.codec
        if not codec.peer.connect_protocol:
            return CONNECT_NOT_ALLOWED
        if b"," in consumer.upgrade:
            return SEVERAL_PROTOCOLS
        if consumer.length or not end:
            return CONTENT_BEFORE_TUNNEL
        lines, self.key = heads.connect_block(block)
        self.stream = codec.send_request(
            b"CONNECT",
            self.connection.scheme,
            heads.authority_of(block),
            consumer.target,
            lines,
            False,
            consumer.upgrade,
            consumer.never_indexed,
        )
        return ""

    def content(self, data: bytes, end: bool) -> None:
        consumer, stream = self.consumer, self.stream
        if consumer is None or stream is None:
            return
        connection = self.connection
        waiting = connection.codec.send_content(stream, data, end)
        connection.touch(len(data))
        if waiting and not self.blocked:
            self.blocked = True
            consumer.upstream_blocked()
        elif end and self.tunnel and stream.closed:
            self._over()

    def trailers(self, lines: bytes) -> None:
        consumer = self.consumer
        if consumer is None or self.stream is None:
            return
        try:
            self.connection.codec.send_trailers(self.stream, b"\r\n" + lines, consumer.never_indexed)
        except BadLine:
            self._fail("the request has a trailer line that HTTP/2 cannot carry")
        self.connection.touch()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        unread, self.unread = self.unread, 0
        if unread and self.stream is not None:
            self.connection.codec.acknowledge(self.stream, unread)
            self.connection.touch()

    def reset(self) -> None:
        connection, stream = self.connection, self.stream
        if self.mark == LENT:
            self.mark = 0
            connection.reserved -= 1
            connection.touch()
        elif stream is not None:
            self.consumer = None
            self._drop(stream)

    def discard(self) -> Sleeper | None:
        """The rest of the response costs the connection nothing: the stream alone is given up."""
        self.reset()
        return None

    # --- from the connection

    def got_head(self, head: events.ResponseHead, first: bytes, end: bool) -> None:
        consumer, stream = self.consumer, self.stream
        assert consumer is not None and stream is not None  # else it has no events
        if head.never_indexed:
            consumer.upstream_never_indexed(head.never_indexed)
        if consumer.upgrade:
            if head.status < 300:
                self.tunnel = True
                consumer.upstream_head(heads.switched(head, consumer.upgrade, self.key), b"", False)
                if first or end:
                    self._passed(first, end)
                return
            self.connection.codec.send_content(stream, b"", True)
        made = self.connection.translated(head, end and not first, stream.to_head)
        if end:
            self._over(len(first))
            consumer.upstream_head(made, first, True)
            return
        consumer.upstream_head(made, first, False)
        self._took(len(first))

    def got_interim(self, head: events.ResponseHead) -> None:
        if head.status != 100 and self.consumer is not None:  # 100 answers us: the client has had its own
            if head.never_indexed:
                self.consumer.upstream_never_indexed(head.never_indexed)
            self.consumer.upstream_interim(heads.response_head(head, False, True))

    def got_content(self, data: bytes, end: bool) -> None:
        self._passed(data, end)

    def _passed(self, data: bytes, end: bool) -> None:
        consumer, stream = self.consumer, self.stream
        if consumer is None or stream is None:
            return
        if end and not (self.tunnel and not stream.closed):  # of a tunnel one direction alone may end
            self._over(len(data))
            consumer.upstream_content(data, True)
            return
        consumer.upstream_content(data, end)
        self._took(len(data))

    def got_trailers(self, block: bytes, never_indexed: frozenset[bytes]) -> None:
        consumer = self.consumer
        if consumer is None or self.tunnel or block == b"\r\n":
            self._passed(b"", True)
            return
        if never_indexed:
            consumer.upstream_never_indexed(never_indexed)
        self._over()
        consumer.upstream_trailers(block[2:])

    def got_reset(self, reset: events.Reset) -> None:
        """RFC 9113 8.7: what the peer did nothing with may be sent again."""
        if reset.unprocessed:
            self.lose(REFUSED, True)
        else:
            self.lose(f"HTTP/2 stream error: {reset.reason}" if reset.local else "reset", False)

    def drained(self) -> None:
        if self.blocked and self.consumer is not None:
            self.blocked = False
            self.consumer.upstream_drained()

    def lose(self, cause: str, stale: bool) -> None:
        """The response cannot be had: report that to the consumer, which gets no further call."""
        consumer, self.consumer = self.consumer, None
        if self.stream is not None:
            self.stream.owner = None
        if consumer is not None:
            consumer.upstream_lost(cause, stale)

    # --- both

    def _took(self, size: int) -> None:
        """The consumer was given content: the endpoint may send more of it, unless there is to be a pause."""
        if self.consumer is None or not size:
            return  # a reset has given back all
        if self.paused:
            self.unread += size
        else:
            self.connection.codec.acknowledge(self.stream, size)  # type: ignore[arg-type]  # it has begun

    def _over(self, size: int = 0) -> None:
        """The response is whole, with `size` bytes that are not accounted for yet: the stream is free before anybody
        hears so. What there is still to send of the request is wanted no more (RFC 9113 8.1)."""
        stream = self.stream
        assert stream is not None  # it has begun
        self.consumer = None
        size, self.unread = size + self.unread, 0
        if size:
            self.connection.codec.acknowledge(stream, size)
        self._drop(stream)

    def _fail(self, cause: str) -> None:
        stream = self.stream
        assert stream is not None  # it has begun
        consumer, self.consumer = self.consumer, None
        self._drop(stream)
        if consumer is not None:
            consumer.upstream_lost(cause, False)

    def _drop(self, stream: Stream) -> None:
        stream.owner = None
        connection = self.connection
        if stream.state != CLOSED:
            connection.codec.reset(stream, CANCEL)
        if not connection.is_scheduled:
            connection.touch()

    def __repr__(self) -> str:
        return f"SharedStream({self.connection.endpoint.label}, {self.stream!r})"
