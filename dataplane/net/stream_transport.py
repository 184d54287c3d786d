"""A stream as a connection: asyncio's transport by shape, over whatever carries bytes both ways.

What a CONNECT carries is served so (`proxy/request/inner`), and so is what passes through a tunnel that we opened.
Whatever a protocol does with a socket it does with this, TLS and further tunnels included. What comes while the
protocol does not read is kept; its carrier is asked to pause meanwhile, so that is no more than was on its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any


class StreamTransport(ABC):
    """`call_soon` is the loop's. Made before its protocol is there: what comes until `open` is kept.

    A subclass says how bytes leave (`_give`), how the other side is stopped (`_hold`, `_release`) and what it hears of
    the end (`_closed`); the carrier of the stream calls `received`, `block`, `unblock` and `lost`.
    """

    __slots__ = (
        "_call_soon",
        "_is_blocked",
        "_is_closing",
        "_is_paused",
        "_kept",
        "_owes_end",
        "_protocol",
        "_said_end",
    )

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self._call_soon = call_soon
        self._protocol: Any = None  # asyncio's protocol, by shape
        self._kept = b""
        """What came and was not wanted yet,"""
        self._owes_end = False
        """and the end behind it."""
        self._is_paused = True
        self._is_blocked = False
        """The other side takes no more now."""
        self._said_end = False
        """The protocol sends no more."""
        self._is_closing = False

    def open(self) -> None:
        """The protocol is there: give it what has come."""
        self.resume_reading()

    # --- what a subclass does

    @abstractmethod
    def _give(self, data: bytes, end: bool) -> None:
        """Send; nothing when the other side is gone."""

    @abstractmethod
    def _hold(self) -> None:
        """Ask the other side to send no more for now."""

    @abstractmethod
    def _release(self) -> None:
        """It may go on."""

    @abstractmethod
    def _closed(self, in_order: bool) -> None:
        """The protocol has closed it: what was written has left; or has broken it off. Called once, unless it is lost
        before."""

    # --- from its carrier

    def received(self, data: bytes, end: bool) -> None:
        if self._is_closing:
            return
        if self._is_paused or self._kept:
            self._kept += data
            self._owes_end = self._owes_end or end
            return
        if data:
            self._protocol.data_received(data)
        if end:
            self._end()

    def _end(self) -> None:
        if not self._is_closing and not self._protocol.eof_received():
            self.close()

    def block(self) -> None:
        """The other side takes no more."""
        if not self._is_blocked and not self._is_closing and self._protocol is not None:
            self._is_blocked = True
            self._protocol.pause_writing()

    def unblock(self) -> None:
        if self._is_blocked and not self._is_closing:
            self._is_blocked = False
            self._protocol.resume_writing()

    def lost(self, error: Exception | None) -> None:
        """It is gone. Nothing when it was before."""
        if not self._is_closing:
            self._is_closing = True
            self._call_soon(lambda: self._lost(error))

    def _lost(self, error: Exception | None) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(error)

    # --- from the protocol (asyncio's transport by shape)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def write(self, data: bytes) -> None:
        if data and not self._said_end and not self._is_closing:
            self._give(bytes(data), False)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._said_end and not self._is_closing:
            self._said_end = True
            self._give(b"", True)

    def close(self) -> None:
        """All that was written has left."""
        self._leave(True)

    def abort(self) -> None:
        self._leave(False)

    def _leave(self, in_order: bool) -> None:
        if not self._is_closing:
            self.lost(None)
            self._closed(in_order)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._hold()

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._kept or self._owes_end:
                self._call_soon(self._deliver)  # not within the protocol's own call
            self._release()

    def _deliver(self) -> None:
        if self._is_paused or self._is_closing:
            return
        data, self._kept = self._kept, b""
        if data:
            self._protocol.data_received(data)
        if self._owes_end and not self._is_paused and not self._kept:
            self._owes_end = False
            self._end()

    def is_reading(self) -> bool:
        return not self._is_paused

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:  # noqa: B027  by shape
        """Nothing is kept here of what is written."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # as asyncio has it
        """There is no socket."""
        return default

    def __repr__(self) -> str:
        return f"{type(self).__name__}(closing={self._is_closing})"
