"""The incoming half of a connection: frames, and content against its windows and lengths.

Each kind of frame has a row in `_HANDLERS`; sizes are checked before anything is kept (RFC 9113 4.2). DATA is handed on
as it comes, all other frames when they are whole. `connection` has the laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dataplane.http.h2 import budget, frames
from dataplane.http.h2.control_frames import ControlFrames
from dataplane.http.h2.errors import (
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    ConnectionFailure,
    StreamFailure,
)
from dataplane.http.h2.events import (
    Content,
    Failed,
    Refused,
    Reset,
)
from dataplane.http.h2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    HEADER_SIZE,
    HEADERS,
    PADDED,
    PREFACE,
    SETTINGS,
    STREAM_BITS,
    WHOLE,
)
from dataplane.http.h2.incoming_heads import padding_of
from dataplane.http.h2.states import CLOSED, ERROR, NEXT, RECEIVE, RECEIVE_END
from dataplane.http.h2.streams import Stream
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.http.h2.events import Event
    from dataplane.http.h2.settings import Settings

_HEADER = frames.HEADER.unpack_from
_SETTINGS = bytes((SETTINGS,))


class Receiving(ControlFrames):
    """State of what comes, and the reading of it."""

    __slots__ = (
        "_data_end",
        "_data_left",
        "_data_stream",
        "_preface_left",
        "_rest",
        "_skip",
        "has_more",
        "unused",
    )

    def __init__(self, settings: Settings, server: bool, clock: Callable[[], float]) -> None:
        super().__init__(settings, server, clock)
        self.has_more = False
        self.unused = 0
        self._rest = b""
        """The beginning of a frame."""
        self._preface_left = PREFACE if server else b""

        # a DATA frame of which a part has come
        self._data_stream: Stream | None = None
        self._data_left = 0
        self._data_end = False
        self._skip = 0
        """Bytes behind these that are skipped: padding, frames of unknown kinds."""

    # --- frames

    @property
    def is_amid(self) -> bool:
        """A frame that is kept until it is whole, or a header block of several frames, has begun."""
        return bool(self._rest or self._preface_left) or self._assembling is not None

    def receive(self, data: bytes, limit: int = 1000) -> list[Event]:
        """Read what came: at most `limit` frames, the rest is kept (`has_more`). Heads count for more than one."""
        if self.failed:
            return []
        if self._rest:
            data = self._rest + data
            self._rest = b""
        try:
            at = self._begin(data)
            at = self._frames(data, at, limit)
            if at < len(data):
                self._rest = data[at:]
                if not self.greeted:
                    self._check_beginning(self._rest)
        except ConnectionFailure as failure:
            self._fail(failure)
        events, self._events = self._events, []
        return events

    def _begin(self, data: bytes) -> int:
        """What stands before the first frame header: the preface, or the rest of a frame that was begun."""
        at, size = 0, len(data)
        if self._preface_left:
            at = min(len(self._preface_left), size)
            if data[:at] != self._preface_left[:at]:
                raise ConnectionFailure(PROTOCOL_ERROR, "Preface")
            self._preface_left = self._preface_left[at:]
        if self._data_left and at < size:
            end = min(size, at + self._data_left)
            self._data_left -= end - at
            if self._data_stream is not None:
                self._report(self._data_stream, data[at:end], self._data_end and not self._data_left)
            at = end
        if self._skip and not self._data_left:
            skipped = min(self._skip, size - at)
            self._skip -= skipped
            at += skipped
        return at

    def _frames(self, data: bytes, at: int, limit: int) -> int:
        """Read frames from `at` on; where the first one begins that was not read."""
        size, frame_size = len(data), self.settings.frame_size
        self.has_more = False
        self.unused = limit
        while size - at >= HEADER_SIZE:
            if self._cost:  # of the head before
                limit = self.unused = max(0, limit - self._cost)
                self._cost = 0
            if not limit:
                self.has_more = True
                return at
            limit -= 1
            word, flags, number = _HEADER(data, at)
            kind, length, number = word & 0xFF, word >> 8, number & STREAM_BITS
            start = at + HEADER_SIZE
            end = start + length
            if length > frame_size:
                raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
            if self._assembling is not None or not self.greeted:
                self._check_order(kind, flags, number)
            if end > size:
                if kind > CONTINUATION or (kind == DATA and start < size):
                    self._skip = end - size
                elif length > self._block_limit and kind != DATA:
                    raise ConnectionFailure(ENHANCE_YOUR_CALM, "HeldFrame")  # it would be kept until it is whole
                else:
                    return at
                at = size
            else:
                at = end
            self.unused = limit
            try:
                if kind == HEADERS and number and flags | END_STREAM == WHOLE:  # mostly: nothing but a block
                    self._block(number, data[start:end], flags & END_STREAM != 0, False)
                elif kind <= CONTINUATION:
                    _HANDLERS[kind](self, data, start, end, flags, number)
                else:
                    self._budget.charge(budget.UNKNOWN)  # 5.5
            except StreamFailure as failure:
                self._fail_stream(number, failure)
        return at

    def _check_beginning(self, data: bytes) -> None:
        """Of the first frame, of which a part has come: it has to be SETTINGS (3.4), and no peer's are so long that
        their length takes three bytes. What speaks another protocol is known by its first byte."""
        if data[0] or data[3:4] not in (b"", _SETTINGS):
            raise ConnectionFailure(PROTOCOL_ERROR, "NoSettings")

    def _check_order(self, kind: int, flags: int, number: int) -> None:
        """Of a frame at the beginning of a connection, or amid a header block."""
        if self._assembling is not None and (kind != CONTINUATION or number != self._assembling.stream):
            raise ConnectionFailure(PROTOCOL_ERROR, "HeadersInterrupted")  # 6.10
        if not self.greeted and (kind != SETTINGS or flags & ACK):
            raise ConnectionFailure(PROTOCOL_ERROR, "NoSettings")  # 3.4

    def _fail(self, failure: ConnectionFailure) -> None:
        """RFC 9113 5.4.1: GOAWAY, and nothing after it."""
        last = min(self.last_stream, self._last_taken)
        self._out.append(frames.goaway(last, failure.code, failure.reason.encode()))
        self.failed = self.going_away = True
        self._remembered.clear()
        self._trailing.clear()
        for stream in self.streams.values():
            stream.state = CLOSED
            stream.waiting_parts = None
        self._events.append(Failed(failure.code, failure.reason))

    def _fail_stream(self, number: int, failure: StreamFailure) -> None:
        """RFC 9113 5.4.2: RST_STREAM, and an event for a stream that is known."""
        self._budget.charge(budget.RESET if failure.code == REFUSED_STREAM else budget.MALFORMED)
        self._reply(frames.rst_stream(number, failure.code))
        self._remember_reset(number)
        stream = self.streams.get(number)
        if stream is None:
            self._events.append(Refused(number, failure.reason))
        else:
            self._abandon(stream)
            self._events.append(Reset(stream, failure.code, True, False, failure.reason))

    # --- DATA (6.1)

    def _data(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        """A DATA frame, or the beginning of one. What is in order and wanted is done with here: nearly every one."""
        stream = self.streams.get(number)
        length = end - start
        if (
            stream is None
            or stream.receive_window < length
            or self.receive_window < length
            or not stream.head_received
            or stream.discards
            or flags & PADDED
            or end > len(data)
            or not length
        ):
            self._data_in_parts(data, start, end, flags, number)
            return
        ends = flags & END_STREAM != 0
        following = NEXT[stream.state][RECEIVE_END if ends else RECEIVE]
        if following == ERROR or (stream.expected >= 0 and not _fits(stream, length, ends)):
            self._data_in_parts(data, start, end, flags, number)
            return
        self.receive_window -= length
        stream.receive_window -= length
        stream.unread += length
        self._events.append(Content(stream, data[start:end], ends))
        if ends:
            stream.state = following
            if following == CLOSED:
                self._ended(stream)

    def _data_in_parts(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        """Any DATA frame: one with padding, one of which a part is missing, which is handed on when it comes, one that
        is empty, or that is wrong."""
        length, padding = end - start, 0
        if flags & PADDED:
            padding = padding_of(data, start, length)
            start += 1
        content = length - padding - (1 if flags & PADDED else 0)
        ends = flags & END_STREAM != 0
        self._data_stream = None
        size = len(data)
        if end > size:  # `_skip` has all that is missing, in the order content, padding
            self._data_left = max(0, end - padding - size)
            self._skip -= self._data_left
        stream = self._admit(number, length, content, ends)
        if stream is None:
            return
        if length > content:
            self._open_window(stream, length - content)
            self._give_back(length - content)
        if end > size and self._data_left:
            self._data_stream, self._data_end = stream, ends
            self._report(stream, data[start:size], False)
        else:
            self._report(stream, data[start : start + content], ends)

    def _admit(self, number: int, length: int, content: int, ends: bool) -> Stream | None:
        """Count a DATA frame against windows, state and content-length; None: it is dropped."""
        stream = self.streams.get(number)
        if stream is None and self._is_idle(number):
            raise ConnectionFailure(PROTOCOL_ERROR, "IdleStream")  # stream 0 is one
        self.receive_window -= length
        if self.receive_window < 0:
            raise ConnectionFailure(FLOW_CONTROL_ERROR, "ConnectionWindow")
        if stream is None:
            self._give_back(length)
            self._absent(number)
            return None
        failure = _judged(stream, length, content, ends)
        if failure is not None:
            self._give_back(length)
            raise again(failure)
        if not content and not ends:
            self._budget.charge(budget.EMPTY)
        stream.receive_window -= length
        stream.unread += content
        return stream

    def _report(self, stream: Stream, content: bytes, ends: bool) -> None:
        """Hand on content, unless the stream was reset in the middle of it."""
        if stream.state == CLOSED:
            return
        if not stream.discards:
            if content or ends:
                self._events.append(Content(stream, content, ends))
        elif content:
            self.acknowledge(stream, len(content))
        if ends:
            self._peer_ended(stream)


_Handler: TypeAlias = "Callable[[Receiving, bytes, int, int, int, int], None]"

_HANDLERS: tuple[_Handler, ...] = (
    Receiving._data,
    Receiving._headers,
    Receiving._priority,
    Receiving._rst_stream,
    Receiving._settings,
    Receiving._push_promise,
    Receiving._ping,
    Receiving._goaway,
    Receiving._window_update,
    Receiving._continuation,
)
"""By number of the frame's kind: (connection, bytes, where the payload begins, where it ends, flags, stream)."""


def _fits(stream: Stream, length: int, ends: bool) -> bool:
    """Whether so much more is as content-length said; it is counted then."""
    left = stream.expected - length
    if left < 0 or (ends and left):
        return False
    stream.expected = left
    return True


def _judged(stream: Stream, length: int, content: int, ends: bool) -> StreamFailure | None:
    """What is wrong with a DATA frame of a stream that is known."""
    if NEXT[stream.state][RECEIVE_END if ends else RECEIVE] == ERROR:
        return StreamFailure(STREAM_CLOSED, "ClosedStream")
    if not stream.head_received:
        return StreamFailure(PROTOCOL_ERROR, "NoHead")
    if length > stream.receive_window:
        return StreamFailure(FLOW_CONTROL_ERROR, "StreamWindow")
    if stream.expected >= 0:
        stream.expected -= content
        if stream.expected < 0 or (ends and stream.expected):
            return StreamFailure(PROTOCOL_ERROR, "ContentLength")
    return None
