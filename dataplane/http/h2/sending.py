"""The outgoing half of a connection: content as the peer's windows allow, resets, acknowledgements.

`outgoing_heads` has what is below, `receiving` is the subclass that reads, `connection` has the laws.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dataplane.http.h2 import frames
from dataplane.http.h2.errors import Misuse
from dataplane.http.h2.events import Drained
from dataplane.http.h2.frames import DATA, END_STREAM, HEADER
from dataplane.http.h2.lines import fields_of, marked
from dataplane.http.h2.outgoing_heads import OutgoingHeads
from dataplane.http.h2.states import CLOSED, ERROR, NEXT, SEND, SEND_END
from dataplane.http.messages import NO_NAMES

if TYPE_CHECKING:
    from dataplane.http.h2.events import Event
    from dataplane.http.h2.streams import Stream

_SMALL = 1024
"""Bytes up to which parts that wait are put together."""
_REMEMBERED_RESETS = 1000
"""Streams that we reset and for which frames may still be under way (RFC 9113 5.4.2)."""


class Sending(OutgoingHeads):
    """What a connection sends behind its heads."""

    __slots__ = ()

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
        fields = marked(fields_of(block), never_indexed)
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
        most = min(stream.send_window, self._send_window, self.peer.frame_size)
        assert stream.waiting_parts is not None  # something waits
        data = _cut(stream.waiting_parts, most)
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
        owed = self.owed + size
        if self._surplus or owed * 2 >= settings.connection_window:
            self._give_back(size)
        else:
            self.owed = owed

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
        self.owed += size
        if self.owed * 2 >= self.settings.connection_window and not self.failed:
            self._out.append(frames.window_update(0, self.owed))
            self.receive_window += self.owed
            self.owed = 0


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
