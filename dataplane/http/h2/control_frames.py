"""Frames that are small and whole: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, and PUSH_PROMISE, which
no peer may send here. Each is a handler of `receiving`'s table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.h2 import budget, frames
from dataplane.http.h2.errors import (
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    ConnectionFailure,
    StreamFailure,
)
from dataplane.http.h2.events import GoAway, Pong, Reset, SettingsAcknowledged, SettingsChanged
from dataplane.http.h2.frames import ACK, LONG, MAX_WINDOW, STREAM_BITS, TWO_LONGS
from dataplane.http.h2.incoming_heads import IncomingHeads

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.http.h2.settings import Settings

_LONG = LONG.unpack_from
_TWO_LONGS = TWO_LONGS.unpack_from
_MAX_DEBUG = 1024
"""Bytes of a GOAWAY's debug data that are reported."""


class ControlFrames(IncomingHeads):
    """Handlers: (bytes, where the payload begins, where it ends, flags, stream)."""

    __slots__ = ("acknowledged", "greeted")

    def __init__(self, settings: Settings, server: bool, clock: Callable[[], float]) -> None:
        super().__init__(settings, server, clock)
        self.greeted = False
        self.acknowledged = False

    def _priority(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        """6.3: checked, without effect."""
        if not number:
            raise ConnectionFailure(PROTOCOL_ERROR, "IdleStream")
        self._budget.charge(budget.PRIORITY)
        wrong = end - start != 5
        if wrong or _LONG(data, start)[0] & STREAM_BITS == number:
            code, reason = (FRAME_SIZE_ERROR, "FrameSize") if wrong else (PROTOCOL_ERROR, "Priority")
            if number in self.streams:
                raise StreamFailure(code, reason)
            raise ConnectionFailure(code, reason)  # an idle stream cannot be reset (6.4)

    def _rst_stream(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if end - start != 4:
            raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
        if self._is_idle(number):
            raise ConnectionFailure(PROTOCOL_ERROR, "IdleStream")
        stream = self.streams.get(number)
        if stream is None:
            self._budget.charge(budget.STALE)
            return
        if self._server:
            self._budget.charge(budget.RESET)
        (code,) = _LONG(data, start)
        self._abandon(stream)
        self._events.append(Reset(stream, code, False, code == REFUSED_STREAM and not stream.head_received, ""))

    def _settings(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if number:
            raise ConnectionFailure(PROTOCOL_ERROR, "StreamNumber")
        length = end - start
        if length % 6 or (flags & ACK and length):
            raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
        if flags & ACK:
            self._acknowledged()
            return
        self.greeted = True
        self._budget.charge(budget.SETTINGS, 1 + length // (6 * budget.SETTINGS_AT_ONCE))
        before = self.peer.initial_window
        self.peer.apply(data[start:end], not self._server)
        self._encoder.limit_table(self.peer.header_table_size)
        self._reply(frames.SETTINGS_ACK)
        self._events.append(SettingsChanged())
        if self.peer.initial_window != before:
            self._shift_windows(self.peer.initial_window - before)

    def _shift_windows(self, by: int) -> None:
        """6.9.2: a new initial size changes what every open stream may send; it may become negative."""
        for stream in self.streams.values():
            stream.send_window += by
            if stream.send_window > MAX_WINDOW:
                raise ConnectionFailure(FLOW_CONTROL_ERROR, "WindowOverflow")
            self._enqueue(stream)
        self._pump()

    def _acknowledged(self) -> None:
        """Our SETTINGS are in force: windows below the default may be relied on from here."""
        if not self.acknowledged:
            self.acknowledged = True
            by = self.settings.stream_window - self._receive_initial
            self._receive_initial += by
            for stream in self.streams.values():
                stream.receive_window += by
            self._events.append(SettingsAcknowledged())
        else:
            self._budget.charge(budget.SETTINGS)

    def _push_promise(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        raise ConnectionFailure(PROTOCOL_ERROR, "PushPromise")  # 8.4: we have disabled it, and a client never sends one

    def _ping(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if number:
            raise ConnectionFailure(PROTOCOL_ERROR, "StreamNumber")
        if end - start != 8:
            raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
        self._budget.charge(budget.PING)
        if flags & ACK:
            self._events.append(Pong(data[start:end]))
        else:
            self._reply(frames.ping(data[start:end], ACK))

    def _goaway(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if number:
            raise ConnectionFailure(PROTOCOL_ERROR, "StreamNumber")
        if end - start < 8:
            raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
        self._budget.charge(budget.SETTINGS)
        last, code = _TWO_LONGS(data, start)
        last &= STREAM_BITS
        self.going_away = True
        self._events.append(GoAway(last, code, data[start + 8 : min(end, start + 8 + _MAX_DEBUG)]))
        if not self._server:
            for stream in [stream for stream in self.streams.values() if stream.id > last]:
                self._abandon(stream)
                self._events.append(Reset(stream, REFUSED_STREAM, False, not stream.head_received, ""))

    def _window_update(self, data: bytes, start: int, end: int, flags: int, number: int) -> None:
        if end - start != 4:
            raise ConnectionFailure(FRAME_SIZE_ERROR, "FrameSize")
        self._budget.charge(budget.WINDOW_UPDATE)
        increment = _LONG(data, start)[0] & STREAM_BITS
        if not number:
            if not increment:
                raise ConnectionFailure(PROTOCOL_ERROR, "WindowUpdate")
            self._send_window += increment
            if self._send_window > MAX_WINDOW:
                raise ConnectionFailure(FLOW_CONTROL_ERROR, "WindowOverflow")
            self._pump()
            return
        stream = self.streams.get(number)
        if stream is None:
            if self._is_idle(number):
                raise ConnectionFailure(PROTOCOL_ERROR, "IdleStream")
            return  # 5.1: under way when the stream was closed
        if not increment:
            raise StreamFailure(PROTOCOL_ERROR, "WindowUpdate")
        stream.send_window += increment
        if stream.send_window > MAX_WINDOW:
            raise StreamFailure(FLOW_CONTROL_ERROR, "WindowOverflow")
        if stream.waiting:
            self._enqueue(stream)
            self._pump()
