"""What both halves of a connection know, and heads that go out: encoded, and framed. Content is `sending`'s."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.http.h2 import frames
from dataplane.http.h2.budget import MAX_UNSENT_REPLIES, Budget
from dataplane.http.h2.encoder import BlockEncoder, unindexed
from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, ConnectionFailure, Misuse
from dataplane.http.h2.frames import END_HEADERS, END_STREAM, HEADER, HEADERS, MAX_STREAM, PREFACE
from dataplane.http.h2.lines import fields_of, last_field, marked, request_fields_of
from dataplane.http.h2.settings import DEFAULT_WINDOW, PeerSettings, announcement
from dataplane.http.h2.states import CLOSED, ERROR, NEXT, SEND, SEND_END
from dataplane.http.h2.streams import Stream
from dataplane.http.messages import NO_NAMES
from dataplane.http.statuses import SWITCHING

if TYPE_CHECKING:
    from dataplane.http.h2.encoder import Key
    from dataplane.http.h2.events import Event
    from dataplane.http.h2.hpack import Field
    from dataplane.http.h2.settings import Settings

_STATUS = [(b":status", b"%d" % status, False) for status in range(600)]


class OutgoingHeads:
    """State of a connection, and the heads that it sends."""

    __slots__ = (
        "_budget",
        "_encoder",
        "_events",
        "_is_paused",
        "_last_taken",
        "_lately_reset",
        "_next_stream",
        "_out",
        "_queue",
        "_receive_initial",
        "_send_window",
        "_server",
        "_surplus",
        "_unsent_replies",
        "failed",
        "going_away",
        "last_stream",
        "owed",
        "peer",
        "receive_window",
        "settings",
        "streams",
    )

    def __init__(self, settings: Settings, server: bool, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.peer = PeerSettings()
        self.streams: dict[int, Stream] = {}
        self.failed = False
        self.going_away = False
        self.last_stream = 0
        """Server: the highest stream that the client opened."""
        self._server = server
        self._budget = Budget(clock, of_client=server)
        self._encoder = BlockEncoder()
        self._events: list[Event] = []
        self._next_stream = 1
        self._lately_reset: dict[int, None] = {}
        self._last_taken = MAX_STREAM
        """Server: streams above it are ignored, after GOAWAY."""

        # flow control (RFC 9113 5.2)
        self._send_window = DEFAULT_WINDOW
        self._queue: deque[Stream] = deque()
        """Streams that have content, and a window of their own for it."""
        self._is_paused = False
        self._unsent_replies = 0
        self._receive_initial = max(DEFAULT_WINDOW, settings.stream_window)
        """A new stream's window: until the peer has acknowledged our SETTINGS it may use the default (6.9.2)."""
        self.receive_window = max(DEFAULT_WINDOW, settings.connection_window)
        self._surplus = max(0, DEFAULT_WINDOW - settings.connection_window)
        """The connection's window cannot begin lower than the default: so much of it is not given again (6.9.2)."""
        self.owed = 0

        opening = frames.settings(announcement(settings, server))
        if settings.connection_window > DEFAULT_WINDOW:
            opening += frames.window_update(0, settings.connection_window - DEFAULT_WINDOW)
        self._out: list[bytes | memoryview] = [opening if server else PREFACE + opening]

    # --- out

    def take(self) -> bytes:
        """All bytes that are to be written; b"" when there are none."""
        out = self._out
        if not out:
            return b""
        self._out = []
        return b"".join(out)

    def _reply(self, frame: bytes) -> None:
        """Send a frame that the peer's frame asks for; while it does not read, not without end."""
        if self._is_paused:
            self._unsent_replies += 1
            if self._unsent_replies > MAX_UNSENT_REPLIES:
                raise ConnectionFailure(ENHANCE_YOUR_CALM, "HeldReplies")
        self._out.append(frame)

    # --- heads

    def send_response(
        self, stream: Stream, status: int, block: bytes, end: bool, never_indexed: frozenset[bytes] = NO_NAMES
    ) -> None:
        """A final response head (200 to 599). `block` as in `heads.Head`; names may have upper case, fields that belong
        to one HTTP/1 connection are left out.

        Raises `lines.BadLine` (a ValueError) when a line of it is no field; nothing is sent then.
        """
        if stream.state == CLOSED:
            return
        if stream.head_sent or not 200 <= status < 600:
            raise Misuse(f"{stream}: status {status} out of order")
        if never_indexed:
            self._send_head(stream, [_STATUS[status], *marked(fields_of(block), never_indexed)], end)
        else:  # mostly
            key = (status, block)
            encoded = self._encoder.blocks.get(key)
            if encoded is None:
                self._send_head(stream, [_STATUS[status], *fields_of(block)], end, key)
            else:
                self._send_block(stream, encoded, end)
        stream.head_sent = True

    def send_interim(
        self, stream: Stream, status: int, block: bytes, never_indexed: frozenset[bytes] = NO_NAMES
    ) -> None:
        """A response head of 1xx, any number of them before the final one; never 101 (RFC 9113 8.6)."""
        if stream.state == CLOSED:
            return
        if stream.head_sent or not 100 <= status < 200 or status == SWITCHING:
            raise Misuse(f"{stream}: status {status} out of order")
        self._send_head(stream, [_STATUS[status], *marked(fields_of(block), never_indexed)], False)

    def can_open(self) -> int:
        """Client: how many streams may be opened now: the peer's limit less those open; 0 after GOAWAY."""
        if self.going_away or self.failed or self._server or self._next_stream > MAX_STREAM:
            return 0
        limit, asked = self.settings.max_local_streams, self.peer.max_streams
        if asked is not None and asked < limit:
            limit = asked
        left = limit - len(self.streams)
        return left if left > 0 else 0

    def send_request(
        self,
        method: bytes,
        scheme: bytes,
        authority: bytes,
        path: bytes,
        block: bytes,
        end: bool,
        protocol: bytes = b"",
        never_indexed: frozenset[bytes] = NO_NAMES,
    ) -> Stream:
        """Open a stream with a request head; only while `can_open`, else Misuse. Pseudo-headers are checked by the
        caller.

        `host` lines of the block are left out. A plain CONNECT has scheme and path b"". `protocol` (extended CONNECT)
        only when `peer.connect_protocol`. `te: trailers` passes, no other `te`. Raises `lines.BadLine`.
        """
        if not self.can_open():
            raise Misuse("no stream may be opened")
        if protocol and not self.peer.connect_protocol:
            raise Misuse("the peer has not announced extended CONNECT")
        if path and not protocol and not never_indexed:
            encoded = self._usual_request(method, scheme, authority, path, block)
        else:
            fields = _pseudo_fields(method, scheme, authority, path, protocol)
            encoded = self._encoder.encode(fields + marked(request_fields_of(block), never_indexed))
        stream = Stream(self._next_stream, self.peer.initial_window, self._receive_initial)
        self._next_stream += 2
        self._budget.streams += 1
        stream.to_head = method == b"HEAD"
        stream.tunnel = method == b"CONNECT"
        stream.head_sent = True
        self.streams[stream.id] = stream
        self._send_block(stream, encoded, end)
        return stream

    def _usual_request(self, method: bytes, scheme: bytes, authority: bytes, path: bytes, block: bytes) -> bytes:
        """The head of a request, of parts that repeat and two that do not: the path, and the last line."""
        encoder = self._encoder
        blocks = encoder.blocks
        last = block.rfind(b"\r\n", 0, -2) + 2
        asked, lines = (method, scheme, authority), (block[:last],)
        own = last_field(block[last:-2]) if last > 1 else None
        beginning, rest = blocks.get(asked), blocks.get(lines)
        if beginning is None or rest is None:
            fields = request_fields_of(lines[0] if last > 1 else block)  # raises, if it does, before a table changes
            if beginning is None:
                pseudo = [(b":method", method, False), (b":scheme", scheme, False), (b":authority", authority, False)]
                beginning = encoder.piece(asked, pseudo)
                rest = blocks.get(lines)
            if rest is None:
                rest = encoder.piece(lines, fields)
        beginning += unindexed(b":path", path) + rest
        return encoder.whole(beginning if own is None else beginning + encoder[own])

    def _send_head(self, stream: Stream, fields: list[Field], end: bool, key: Key | None = None) -> None:
        """`key`: what the fields were made of, where they may come again."""
        if NEXT[stream.state][SEND] == ERROR:
            raise Misuse(f"{stream}: sending after the end")  # before a table changes
        encoder = self._encoder
        block = encoder.encode(fields) if key is None else encoder.whole(encoder.piece(key, fields))
        self._send_block(stream, block, end)

    def _send_block(self, stream: Stream, block: bytes, end: bool) -> None:
        """A head or trailers, encoded."""
        following = NEXT[stream.state][SEND_END if end else SEND]
        if following == ERROR:
            raise Misuse(f"{stream}: sending after the end")
        stream.state = following
        size, frame_size = len(block), self.peer.frame_size
        if size <= frame_size:
            flags = END_HEADERS | END_STREAM if end else END_HEADERS
            self._out += (HEADER.pack(size << 8 | HEADERS, flags, stream.id), block)
        else:
            self._out.append(frames.headers(stream.id, block, end, frame_size))
        if following == CLOSED:
            self._ended(stream)

    def _ended(self, stream: Stream) -> None:
        """Both directions ran to their end; what the consumer has not acknowledged stays owed."""
        if self._server:
            self._budget.streams += 1
        del self.streams[stream.id]


def _pseudo_fields(method: bytes, scheme: bytes, authority: bytes, path: bytes, protocol: bytes) -> list[Field]:
    """Of a CONNECT, plain or extended, or of a request with fields for no table."""
    fields: list[Field] = [(b":method", method, False)]
    if path:
        fields += ((b":scheme", scheme, False), (b":authority", authority, False), (b":path", path, True))
    else:
        fields.append((b":authority", authority, False))
    if protocol:
        fields.append((b":protocol", protocol, False))
    return fields
