"""What a CONNECT carries as a connection of its own: a socket's place between an exchange and the protocol of the bind
that it addressed.

Towards the exchange it is a `carriers.Upstream`, towards the protocol asyncio's transport by shape. Whatever a listener
does with connections it does with this one, TLS and further tunnels included. What comes while the protocol does not
read is kept; the exchange is asked to pause meanwhile, so that is no more than was on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataplane.carriers import Consumer, Sleeper


class InnerConnection:
    """`call_soon` is the loop's. Made before the bind's protocol is there: what comes until `open` is kept."""

    __slots__ = (
        "_call_soon",
        "_consumer",
        "_is_blocked",
        "_is_closing",
        "_is_paused",
        "_kept",
        "_owes_end",
        "_protocol",
        "_said_end",
    )
    is_shared = False

    def __init__(self, consumer: Consumer, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self._consumer: Consumer | None = consumer
        self._call_soon = call_soon
        self._protocol: Any = None
        self._kept = b""
        """What came and was not wanted yet,"""
        self._owes_end = False
        """and the end behind it."""
        self._is_paused = True
        self._is_blocked = False
        """The client takes no more now."""
        self._said_end = False
        """The protocol sends no more."""
        self._is_closing = False

    def open(self) -> None:
        """The protocol is there: give it what has come."""
        self.resume_reading()

    # --- from the exchange (`carriers.Upstream`)

    def begin(self, consumer: Consumer, block: bytes, first: bytes, end: bool) -> None:
        raise RuntimeError("a tunnel carries no request")  # who opens one does not ask

    def content(self, data: bytes, end: bool) -> None:
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

    def trailers(self, lines: bytes) -> None:
        self.content(b"", True)

    def _end(self) -> None:
        if not self._is_closing and not self._protocol.eof_received():
            self.close()

    def pause(self) -> None:
        if not self._is_blocked and not self._is_closing and self._protocol is not None:
            self._is_blocked = True
            self._protocol.pause_writing()

    def resume(self) -> None:
        if self._is_blocked and not self._is_closing:
            self._is_blocked = False
            self._protocol.resume_writing()

    def reset(self) -> None:
        """The client's connection, or stream, is gone."""
        self._over(ConnectionResetError("the tunnel was reset"))

    def discard(self) -> Sleeper | None:
        self.reset()
        return None

    def _over(self, error: Exception | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._consumer = None
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
        if self._consumer is not None and data and not self._said_end:
            self._consumer.upstream_content(bytes(data), False)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._consumer is not None and not self._said_end:
            self._said_end = True
            self._consumer.upstream_content(b"", True)

    def close(self) -> None:
        """All that was written has left for the client, whose carrier sends it before its own end."""
        consumer = self._consumer
        self._over(None)
        if consumer is not None:
            consumer.upstream_lost("closed", False)

    def abort(self) -> None:
        consumer = self._consumer
        self._over(None)
        if consumer is not None:
            consumer.upstream_lost("reset", False)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            if self._consumer is not None:
                self._consumer.upstream_blocked()

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._kept or self._owes_end:
                self._call_soon(self._deliver)  # not within the protocol's own call
            if self._consumer is not None:
                self._consumer.upstream_drained()

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

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept here of what is written."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # Any: as asyncio has it
        """There is no socket."""
        return default

    def __repr__(self) -> str:
        return f"InnerConnection(closing={self._is_closing})"
