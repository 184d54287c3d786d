"""The outgoing half of a connection: heads, content as the peer's windows allow, resets, acknowledgements.

State that both halves have is made here; `receiving` is the subclass that reads. `connection` has the laws.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.http.h2 import frames
from dataplane.http.h2.budget import MAX_UNSENT_REPLIES, Budget
from dataplane.http.h2.encoder import BlockEncoder, unindexed
from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, NO_ERROR, ConnectionFailure, Misuse
from dataplane.http.h2.events import Drained
from dataplane.http.h2.frames import DATA, END_HEADERS, END_STREAM, HEADER, HEADERS, MAX_STREAM, PREFACE
from dataplane.http.h2.lines import fields_of, last_field, request_fields_of
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
_SMALL = 1024
"""Bytes up to which parts that wait are put together."""
_REMEMBERED_RESETS = 1000
"""Streams that we reset and for which frames may still be under way (RFC 9113 5.4.2)."""


class Sending:
    """State of a connection, and what it sends."""

    __slots__ = (
        "_budget",
        "_encoder",
        "_events",
        "_is_paused",
        "_last_taken",
        "_lately_reset",
        "_next_stream",
        "_out",
        "_owed",
        "_queue",
        "_receive_initial",
        "_receive_window",
        "_send_window",
        "_server",
        "_surplus",
        "_unsent_replies",
        "failed",
        "going_away",
        "last_stream",
        "peer",
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
        self._budget = Budget(clock)
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
        self._receive_window = max(DEFAULT_WINDOW, settings.connection_window)
        self._surplus = max(0, DEFAULT_WINDOW - settings.connection_window)
        """The connection's window cannot begin lower than the default: so much of it is not given again (6.9.2)."""
        self._owed = 0

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

    def pause_writing(self) -> None:
        """The transport takes no more."""
        self._is_paused = True

    def resume_writing(self) -> list[Event]:
        """It does again: what waited goes on (`Drained` events)."""
        self._is_paused = False
        if self.failed:
            return []
        self._unsent_replies = 0
        self._pump()
        events, self._events = self._events, []
        return events

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
            self._send_head(stream, [_STATUS[status], *_marked(fields_of(block), never_indexed)], end)
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
        self._send_head(stream, [_STATUS[status], *_marked(fields_of(block), never_indexed)], False)

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
            encoded = self._encoder.encode(fields + _marked(request_fields_of(block), never_indexed))
        stream = Stream(self._next_stream, self.peer.initial_window, self._receive_initial)
        self._next_stream += 2
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

    def _advance(self, stream: Stream, end: bool) -> None:
        following = NEXT[stream.state][SEND_END if end else SEND]
        if following == ERROR:
            raise Misuse(f"{stream}: sending after the end")
        stream.state = following

    # --- content

    def send_content(self, stream: Stream, data: bytes, end: bool) -> int:
        """Bytes of a body; b"" without `end` sends nothing. Answers how many bytes of the stream wait for a window."""
        if stream.state == CLOSED:
            return 0
        if not stream.head_sent or stream.waiting_end:
            raise Misuse(f"{stream}: content out of order")
        size = len(data)
        if not size and not end:
            return stream.waiting
        if not stream.waiting:
            if not size or (  # an end alone needs no window, also where that is below zero
                size <= stream.send_window
                and size <= self._send_window
                and size <= self.peer.frame_size
                and not self._is_paused
            ):
                following = NEXT[stream.state][SEND_END if end else SEND]
                if following == ERROR:
                    raise Misuse(f"{stream}: sending after the end")
                stream.state = following
                self._send_window -= size
                stream.send_window -= size
                self._budget.frames += 1
                self._out += (HEADER.pack(size << 8 | DATA, END_STREAM if end else 0, stream.id), data)
                if following == CLOSED:
                    self._ended(stream)
                return 0
            if NEXT[stream.state][SEND] == ERROR:
                raise Misuse(f"{stream}: sending after the end")
        if size:
            if stream.waiting_parts is None:
                stream.waiting_parts = deque()
            _gather(stream.waiting_parts, data)
            stream.waiting += size
        stream.waiting_end = end
        self._enqueue(stream)
        self._pump(stream)
        return stream.waiting

    def send_trailers(self, stream: Stream, block: bytes, never_indexed: frozenset[bytes] = NO_NAMES) -> None:
        """Trailer fields, behind what waits; they end the stream. Raises `lines.BadLine`."""
        if stream.state == CLOSED:
            return
        if not stream.head_sent or stream.waiting_end:
            raise Misuse(f"{stream}: trailers out of order")
        encoded = None if stream.waiting or never_indexed else self._encoder.blocks.get(block)
        if encoded is not None:
            self._send_block(stream, encoded, True)
            return
        fields = _marked(fields_of(block), never_indexed)
        if stream.waiting:
            stream.waiting_end = True
            stream.waiting_trailers = fields or None
        elif fields:
            self._send_head(stream, fields, True, None if never_indexed else block)
        else:  # 8.1: a head without fields would be none
            self.send_content(stream, b"", True)

    def _enqueue(self, stream: Stream) -> None:
        if stream.waiting and stream.send_window > 0 and not stream.queued:
            stream.queued = True
            self._queue.append(stream)

    def _pump(self, caller: Stream | None = None) -> None:
        """Send what waits, one frame for each stream in turn. `caller` learns by its answer that nothing waits."""
        queue = self._queue
        while queue and self._send_window > 0 and not self._is_paused:
            stream = queue.popleft()
            stream.queued = False
            if (
                stream.state == CLOSED or stream.send_window <= 0
            ):  # reset, or closed by SETTINGS: queued again when it opens
                continue
            self._send_waiting(stream)
            if stream.waiting:
                self._enqueue(stream)
            elif stream is not caller:
                self._events.append(Drained(stream))

    def _send_waiting(self, stream: Stream) -> None:
        """One DATA frame of what waits, and what ends the stream behind the last."""
        room = min(stream.send_window, self._send_window, self.peer.frame_size)
        assert stream.waiting_parts is not None  # something waits
        data = _cut(stream.waiting_parts, room)
        size = len(data)
        stream.waiting -= size
        stream.send_window -= size
        self._send_window -= size
        self._budget.frames += 1
        last = stream.waiting_end and not stream.waiting
        end = last and stream.waiting_trailers is None
        self._advance(stream, end)
        self._out += (HEADER.pack(size << 8 | DATA, END_STREAM if end else 0, stream.id), data)
        if end:
            if stream.state == CLOSED:
                self._ended(stream)
        elif last and stream.waiting_trailers is not None:
            self._send_head(stream, stream.waiting_trailers, True)

    # --- the end of a stream

    def _ended(self, stream: Stream) -> None:
        """Both directions ran to their end; what the consumer has not acknowledged stays owed."""
        self._budget.streams += 1
        del self.streams[stream.id]

    def _abandon(self, stream: Stream) -> None:
        """Both directions are over before their end: nothing more is sent, and its part of our window is free."""
        stream.state = CLOSED
        self.streams.pop(stream.id, None)
        stream.waiting_parts = None
        stream.waiting = 0
        if stream.unread:
            self._give_back(stream.unread)
            stream.unread = 0

    def reset(self, stream: Stream, code: int) -> None:
        """End a stream in both directions; what waits is dropped, what was not acknowledged is given back. A server
        that has sent a whole response resets with NO_ERROR to stop the rest of the request (RFC 9113 8.1)."""
        was_open = stream.state != CLOSED
        self._abandon(stream)
        if was_open and not self.failed:
            self._remember_reset(stream.id)
            self._out.append(frames.rst_stream(stream.id, code))

    def _remember_reset(self, number: int) -> None:
        lately = self._lately_reset
        if len(lately) >= _REMEMBERED_RESETS:
            del lately[next(iter(lately))]
        lately[number] = None

    # --- windows that we open

    def acknowledge(self, stream: Stream, size: int) -> None:
        """The consumer took `size` bytes of content. After a reset: nothing, all was given back."""
        if size > stream.unread:
            if stream.state == CLOSED:
                return
            raise Misuse(f"{stream}: {size} bytes acknowledged, {stream.unread} reported")
        stream.unread -= size
        settings = self.settings
        owed = stream.owed + size
        if owed * 2 >= settings.stream_window:
            self._open_window(stream, size)
        else:  # mostly
            stream.owed = owed
        owed = self._owed + size
        if self._surplus or owed * 2 >= settings.connection_window:
            self._give_back(size)
        else:
            self._owed = owed

    def _open_window(self, stream: Stream, size: int) -> None:
        """The stream's part of what was consumed; nothing when the peer has ended it."""
        stream.owed += size
        if stream.owed * 2 >= self.settings.stream_window and stream.receives:
            self._out.append(frames.window_update(stream.id, stream.owed))
            stream.receive_window += stream.owed
            stream.owed = 0

    def _give_back(self, size: int) -> None:
        """Open the connection's window by what was consumed."""
        if self._surplus:
            swallowed = min(self._surplus, size)
            self._surplus -= swallowed
            size -= swallowed
        self._owed += size
        if self._owed * 2 >= self.settings.connection_window and not self.failed:
            self._out.append(frames.window_update(0, self._owed))
            self._receive_window += self._owed
            self._owed = 0

    # --- the connection

    def ping(self, opaque: bytes) -> None:
        """PING with eight bytes; the answer is `Pong`."""
        if not self.failed:
            self._out.append(frames.ping(opaque))

    def announce_drain(self) -> None:
        """Server: GOAWAY with the highest stream number (RFC 9113 6.8): streams under way are still taken. `goaway`
        follows at least one round trip later (a `ping` measures it)."""
        if not self.failed and not self.going_away:
            self._out.append(frames.goaway(MAX_STREAM, NO_ERROR))

    def goaway(self, code: int, debug: bytes = b"") -> None:
        """GOAWAY with the last stream that was taken; later ones are ignored, open ones go on."""
        if self.failed:
            return
        self.going_away = True
        self._last_taken = min(self._last_taken, self.last_stream)  # 6.8: it never grows
        self._out.append(frames.goaway(self._last_taken, code, debug))


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


def _marked(fields: list[Field], never_indexed: frozenset[bytes]) -> list[Field]:
    """Fields that a table may not have stay out of ours too (RFC 7541 6.2.3)."""
    if not never_indexed:
        return fields
    return [(name, value, secret or name in never_indexed) for name, value, secret in fields]


def _gather(parts: deque[bytes | memoryview], data: bytes) -> None:
    """Append; many small parts would take far more memory than their bytes."""
    if parts and len(parts[-1]) + len(data) <= _SMALL:
        parts[-1] = bytes(parts[-1]) + data
    else:
        parts.append(data)


def _cut(parts: deque[bytes | memoryview], size: int) -> bytes | memoryview:
    """Take at most `size` bytes off the front; without copying, however long a part is."""
    first = parts[0]
    if len(first) > size:
        view = memoryview(first)
        parts[0] = view[size:]
        return view[:size]
    parts.popleft()
    return first
