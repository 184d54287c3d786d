"""The neighbours of a `TlsTransport`: a transport of bytes below it, a protocol above it; both note what they hear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataplane.tls.transport import TlsTransport


class Socket:
    """A transport of bytes whose far end is another one; what is written waits for `Pair.run`."""

    def __init__(self) -> None:
        self.protocol: Any = None
        self.sent: list[bytes] = []
        self.reading = True
        self.closing = self.ended = self.aborted = False
        self.high = 0

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: bytes) -> None:
        assert data and not self.closing and not self.ended
        self.sent.append(data)

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.sent))

    def get_extra_info(self, name: str) -> Any:
        return "peer" if name == "peername" else None


class Inner:
    """A protocol that notes what it hears; also the owner."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.data = b""
        self.keeps = False
        self.on_data: Callable[[], None] = lambda: None

    def secured(self, transport: TlsTransport) -> None:
        self.heard.append("secured")
        transport.set_protocol(self)

    def failed(self, transport: TlsTransport, reason: str) -> None:
        self.heard.append(reason)

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.on_data()

    def eof_received(self) -> bool:
        self.heard.append("eof")
        return self.keeps

    def connection_lost(self, error: Exception | None) -> None:
        self.heard.append(error if error is None else str(error))

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")
