"""Header blocks that come: HEADERS and CONTINUATION put together, decoded, judged, and reported as heads and trailers.

Whatever becomes of a block, it passes the decoder first (RFC 9113 4.3). One that does not touch the dynamic table is
remembered with its meaning, until one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dataplane.http.h2 import budget, frames
from dataplane.http.h2.budget import MAX_CONTINUATIONS
from dataplane.http.h2.errors import (
    ENHANCE_YOUR_CALM,
    FRAME_SIZE_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    ConnectionFailure,
    StreamFailure,
)
from dataplane.http.h2.events import Interim, OversizedRequest, Request, RequestHead, Response, ResponseHead, Trailers
from dataplane.http.h2.frames import END_HEADERS, END_STREAM, LONG, PADDED, PRIORITIZED, STREAM_BITS
from dataplane.http.h2.hpack import BlockDecoder
from dataplane.http.h2.rules import HeadReader, Regular, TooLarge
from dataplane.http.h2.sending import Sending
from dataplane.http.h2.states import CLOSED, ERROR, HALF_CLOSED_REMOTE, NEXT, OPEN, RECEIVE, RECEIVE_END
from dataplane.http.h2.streams import Stream
from dataplane.http.statuses import BODILESS, SWITCHING
from gatewright.kept_errors import again, kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.http.h2.hpack import Field
    from dataplane.http.h2.settings import Settings

_LONG = LONG.unpack_from
_LEAST_BLOCK_LIMIT = 65_536
"""Bytes of a header block, encoded or decoded, that end the connection; more where four heads of the limit are more.
Between the limit of a head and this a stream alone is refused."""
_REMEMBERED = 16
_REMEMBERED_SIZE = 2048
"""Blocks of a connection whose meaning is remembered, and bytes of each, decoded."""
_MAX_INTERIMS = 100
"""Interim responses to one request."""
_ORDINARY_FIELDS = 16
_FIELDS_PER_FRAME = 4
_SIZE_PER_FRAME = 512
_REFUSED_COST = 64
"""What a head costs: as much as one frame more for each so many fields above the ordinary number, and for each so many
bytes, decoded; one that is refused, of which the bytes were not counted, as so many frames more."""


_Meaning: TypeAlias = RequestHead | ResponseHead | StreamFailure | TooLarge
"""Of a header block: a head, or why it is none."""


def padding_of(data: bytes, start: int, length: int) -> int:
    """How many bytes of padding a frame has at its end (6.1, 6.2)."""
    if not length:
        raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
    if data[start] >= length:
        raise ConnectionFailure(PROTOCOL_ERROR, "Padding")
    return data[start]


class _Assembling:
    """A header block of which not all frames have come."""

    __slots__ = ("dependent", "ends", "parts", "size", "stream")

    def __init__(self, stream: int, ends: bool, dependent: bool, part: bytes) -> None:
        self.stream = stream
        self.ends = ends
        self.dependent = dependent
        self.parts = [part]
        self.size = len(part)


class IncomingHeads(Sending):
    """State of header blocks, and the reading of them."""

    __slots__ = ("_assembling", "_block_limit", "_cost", "_decoder", "_heads", "_remembered", "_trailing")

    def __init__(self, settings: Settings, server: bool, clock: Callable[[], float]) -> None:
        super().__init__(settings, server, clock)
        self._cost = 0
        """Of heads that were decoded, in frames; `Receiving` takes it off its limit."""
        self._block_limit = max(_LEAST_BLOCK_LIMIT, 4 * settings.max_header_size)
        self._decoder = BlockDecoder(self._block_limit)
        self._heads = HeadReader(
            server, settings.max_header_size, settings.max_headers, server and settings.connect_protocol
        )
        self._remembered: dict[bytes, RequestHead | ResponseHead] = {}
        """Blocks that did not touch the dynamic table, and what they mean until one does: then it is emptied."""
        self._trailing: dict[bytes, Regular] = {}
        """The same of trailers."""
        self._assembling: _Assembling | None = None
        """A header block of several frames (6.10)."""

    # --- which stream

    def _is_idle(self, number: int) -> bool:
        """5.1.1: neither end has opened it."""
        if number & 1:
            return number > self.last_stream if self._server else number >= self._next_stream
        return True

    def _absent(self, number: int) -> None:
        """A frame on a stream that is not open: an error (5.1), or what was under way when we reset or left it out."""
        if self._is_idle(number):
            raise ConnectionFailure(PROTOCOL_ERROR, "IdleStream")
        if number not in self._lately_reset and number <= self._last_taken:
            raise ConnectionFailure(STREAM_CLOSED, "ClosedStream")
        self._budget.charge(budget.STALE)

    def _peer_ended(self, stream: Stream) -> None:
        stream.state = NEXT[stream.state][RECEIVE_END]
        if stream.state == CLOSED:
            self._ended(stream)

    # --- HEADERS and CONTINUATION (6.2, 6.10)

    def _headers(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if not number:
            raise ConnectionFailure(PROTOCOL_ERROR, "StreamNumber")
        if flags & PADDED:
            end -= padding_of(data, start, end - start)
            start += 1
        dependent = False
        if flags & PRIORITIZED:
            if end - start < 5:
                raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
            dependent = _LONG(data, start)[0] & STREAM_BITS == number
            start += 5
        if flags & END_HEADERS:
            self._block(number, data[start:end], flags & END_STREAM != 0, dependent)
        else:
            self._assembling = _Assembling(number, flags & END_STREAM != 0, dependent, data[start:end])

    def _continuation(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        block = self._assembling
        if block is None:
            raise ConnectionFailure(PROTOCOL_ERROR, "Continuation")
        block.parts.append(data[start:end])
        block.size += end - start
        if len(block.parts) > MAX_CONTINUATIONS + block.size // frames.MIN_FRAME_SIZE:
            raise ConnectionFailure(ENHANCE_YOUR_CALM, "Continuation")
        if block.size > self._block_limit:
            raise ConnectionFailure(ENHANCE_YOUR_CALM, "HeaderBlock")
        if flags & END_HEADERS:
            self._assembling = None
            self._block(number, b"".join(block.parts), block.ends, block.dependent)

    def _block(self, number: int, block: bytes, ends: bool, dependent: bool) -> None:
        """A whole header block. Whatever becomes of it, it has passed the decoder (4.3)."""
        stream = self.streams.get(number)
        if stream is None:
            if self._is_idle(number):
                self._open(number, block, ends, dependent)
                return
            self._decode(block)
            self._absent(number)
            return
        if stream.head_received or self._server:
            known = self._trailing.get(block)
            fields = self._decode(block) if known is None else None
            if dependent or NEXT[stream.state][RECEIVE_END if ends else RECEIVE] == ERROR:
                self._judge(stream, ends, dependent)
            if not ends:
                raise StreamFailure(PROTOCOL_ERROR, "Trailers")
            self._trailers(stream, block, known, fields)
            return
        head = self._remembered.get(block) or self._meaning(block)
        if dependent or NEXT[stream.state][RECEIVE_END if ends else RECEIVE] == ERROR:
            self._judge(stream, ends, dependent)
        self._response(stream, head, ends)

    def _judge(self, stream: Stream, ends: bool, dependent: bool) -> None:
        """Refuse a HEADERS frame for its state or its priority."""
        if NEXT[stream.state][RECEIVE_END if ends else RECEIVE] == ERROR:
            raise StreamFailure(STREAM_CLOSED, "ClosedStream")
        if dependent:
            raise StreamFailure(PROTOCOL_ERROR, "Priority")

    def _decode(self, block: bytes) -> list[Field]:
        fields = self._decoder.decode(block)
        if len(fields) > _ORDINARY_FIELDS:
            self._cost += (len(fields) - _ORDINARY_FIELDS) // _FIELDS_PER_FRAME
        if self._decoder.changed:
            self._remembered.clear()
            self._trailing.clear()
        return fields

    def _meaning(self, block: bytes) -> _Meaning:
        """What a block means that is not remembered. A failure is to be raised when the frame's turn comes."""
        fields = self._decode(block)
        try:
            head = self._heads.request(fields) if self._server else self._heads.response(fields)
        except (TooLarge, StreamFailure) as failure:
            self._cost += _REFUSED_COST
            return kept(failure)
        self._cost += len(head.block) // _SIZE_PER_FRAME
        if not self._decoder.changed and len(head.block) <= _REMEMBERED_SIZE:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[block] = head
        return head

    def _open(self, number: int, block: bytes, ends: bool, dependent: bool) -> None:
        """A new stream of the peer's."""
        if not self._server or not number & 1:
            raise ConnectionFailure(PROTOCOL_ERROR, "StreamNumber")  # 5.1.1, 8.4
        head = self._remembered.get(block) or self._meaning(block)
        self.last_stream = number
        if number > self._last_taken:
            self._budget.charge(budget.STALE)
            return
        if len(self.streams) >= self.settings.max_streams:
            raise StreamFailure(REFUSED_STREAM, "StreamLimit")
        if isinstance(head, StreamFailure):
            raise again(head)
        stream = Stream(number, self.peer.initial_window, self._receive_initial)
        if dependent:
            raise StreamFailure(PROTOCOL_ERROR, "Priority")
        stream.state = HALF_CLOSED_REMOTE if ends else OPEN
        stream.head_received = True
        if isinstance(head, TooLarge):
            self._budget.charge(budget.OVERSIZED)
            stream.discards = True
            self.streams[number] = stream
            self._events.append(OversizedRequest(stream, head.low, head.asked))
            return
        assert isinstance(head, RequestHead)
        if head.length >= 0 and head.method != b"CONNECT":
            if ends and head.length:
                raise StreamFailure(PROTOCOL_ERROR, "ContentLength")
            stream.expected = head.length
        self.streams[number] = stream
        self._events.append(Request(stream, head, ends))

    def _response(self, stream: Stream, head: _Meaning, ends: bool) -> None:
        """The head of a response."""
        if isinstance(head, StreamFailure):
            raise again(head)
        if isinstance(head, TooLarge):
            raise StreamFailure(ENHANCE_YOUR_CALM, "HeadersTooLarge")
        assert isinstance(head, ResponseHead)
        status = head.status
        if status < 200:
            stream.interims += 1
            if ends or status == SWITCHING:
                raise StreamFailure(PROTOCOL_ERROR, "Interim")
            if stream.interims > _MAX_INTERIMS:
                raise StreamFailure(ENHANCE_YOUR_CALM, "Interim")
            self._events.append(Interim(stream, head))
            return
        stream.head_received = True
        if stream.to_head or status in BODILESS:
            stream.expected = 0  # RFC 9110 6.4.1: whatever its length says
        elif head.length >= 0 and not stream.tunnel:
            if ends and head.length:
                raise StreamFailure(PROTOCOL_ERROR, "ContentLength")
            stream.expected = head.length
        self._events.append(Response(stream, head, ends))
        if ends:
            self._peer_ended(stream)

    def _trailers(self, stream: Stream, block: bytes, meaning: Regular | None, fields: list[Field] | None) -> None:
        """`meaning`: what the block is remembered to mean; else `fields`, what it says."""
        if stream.expected > 0:
            raise StreamFailure(PROTOCOL_ERROR, "ContentLength")
        if meaning is None:
            try:
                meaning = self._heads.trailers(fields or [])
            except TooLarge:
                raise StreamFailure(ENHANCE_YOUR_CALM, "HeadersTooLarge") from None
            if not self._decoder.changed and len(meaning.block) <= _REMEMBERED_SIZE:
                if len(self._trailing) >= _REMEMBERED:
                    self._trailing.clear()
                self._trailing[block] = meaning
        if not stream.discards:
            self._events.append(Trailers(stream, meaning.block, meaning.never_indexed))
        following = stream.state = NEXT[stream.state][RECEIVE_END]
        if following == CLOSED:
            self._ended(stream)
