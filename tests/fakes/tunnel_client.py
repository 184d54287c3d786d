"""Clients that ask for a tunnel by CONNECT, of HTTP/1.1 and HTTP/2, with one interface: no socket, frames by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import h11

from dataplane.http.h2.frames import RST_STREAM, WINDOW_UPDATE
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import data, frame, headers
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

CONNECT_ERROR = 0xA
_LOCAL = ("198.51.100.1", 8080)

Pairs = Iterable[tuple[bytes, bytes]]


class TunnelClient(Protocol):
    """One request for a tunnel. What is read is what came until now."""

    status: int | None
    headers: dict[bytes, bytes]
    got: bytes
    """Content: of the tunnel, or of the answer that refuses it."""
    is_ended: bool
    """The proxy sends no more."""
    is_reset: bool

    def send(self, content: bytes) -> None: ...

    def end(self) -> None: ...

    def leave(self) -> None:
        """The connection, or the stream, is lost."""

    def block(self) -> None:
        """Take no more for now."""

    def unblock(self) -> None: ...

    def look(self) -> TunnelClient:
        """Read what came."""

    @property
    def is_read(self) -> bool:
        """The proxy takes what is sent."""


class Http1Tunnel:
    def __init__(
        self,
        proxy: MemoryProxy,
        target: bytes,
        early: bytes = b"",
        extra: Pairs = (),
        transport: FakeTransport | None = None,
    ) -> None:
        self.transport = transport or proxy.connect(port=8080, local=_LOCAL)
        self._wire = h11.Connection(h11.CLIENT)
        head = self._wire.send(h11.Request(method="CONNECT", target=target, headers=[(b"Host", target), *extra]))
        assert head is not None
        self._wire.send(h11.EndOfMessage())
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.got = b""
        self.is_ended = self.is_reset = False
        self.transport.send(head + early)
        self.look()

    def send(self, content: bytes) -> None:
        self.transport.send(content)
        self.look()

    def end(self) -> None:
        self.transport.half_close()
        self.look()

    def leave(self) -> None:
        self.transport.lose()

    def block(self) -> None:
        self.transport.protocol.pause_writing()

    def unblock(self) -> None:
        self.transport.protocol.resume_writing()

    @property
    def is_read(self) -> bool:
        return self.transport.reading

    def look(self) -> Http1Tunnel:
        octets = self.transport.take()
        if self.status is None and octets:
            self._wire.receive_data(octets)
            octets = self._read()
        self.got += octets
        self.is_reset = self.transport.aborted
        self.is_ended = not self.is_reset and (self.transport.eof or not self.transport.open)
        return self

    def _read(self) -> bytes:
        """The answer's head, and what follows it."""
        body = b""
        while True:
            event = self._wire.next_event()
            if isinstance(event, h11.Response):
                self.status, self.headers = event.status_code, dict(event.headers)
                if 200 <= event.status_code < 300:
                    return self._wire.trailing_data[0]
            elif isinstance(event, h11.Data):
                body += event.data
            elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
                return body


class Http2Tunnel:
    """`client`: with a connection of its own; `stream`: of it."""

    def __init__(
        self,
        proxy: MemoryProxy,
        target: bytes,
        early: bytes = b"",
        extra: Pairs = (),
        transport: FakeTransport | None = None,
        client: FrameClient | None = None,
        stream: int = 1,
    ) -> None:
        self.client = client or FrameClient(proxy, transport=transport or proxy.connect(port=8080, local=_LOCAL))
        self.stream = stream
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.got = b""
        self.is_ended = self.is_reset = False
        self.code: int | None = None
        """Of the RST_STREAM that came."""
        fields = ((b":method", b"CONNECT"), (b":authority", target), *extra)
        self.client.send(headers(stream, fields, end=False), *([data(stream, early)] if early else []))
        self.look()

    def send(self, content: bytes) -> None:
        pieces = [content[at : at + 16_384] for at in range(0, len(content), 16_384)]
        self.client.send(*(data(self.stream, piece) for piece in pieces))
        self.look()

    def end(self) -> None:
        self.client.send(data(self.stream, end=True))
        self.look()

    def leave(self) -> None:
        self.client.send(frame(RST_STREAM, 0, self.stream, (8).to_bytes(4)))

    def block(self) -> None:
        self.client.transport.protocol.pause_writing()

    def unblock(self) -> None:
        self.client.transport.protocol.resume_writing()

    @property
    def is_read(self) -> bool:
        """Content is acknowledged."""
        before = self.client.windows.get(self.stream, 0)
        self.send(b"." * 40_000)
        return self.client.windows.get(self.stream, 0) > before

    def grant(self, size: int) -> None:
        """Open the windows of connection and stream."""
        for stream in (0, self.stream):
            self.client.send(frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4)))
        self.look()

    def look(self) -> Http2Tunnel:
        for each in self.client.take():
            if each.stream != self.stream:
                continue
            if each.kind == "head" and isinstance(each.value, int):
                self.status, self.headers = each.value, each.headers
            elif each.kind == "data" and isinstance(each.value, bytes):
                self.got += each.value
            elif each.kind == "reset" and isinstance(each.value, int):
                self.code = each.value
                self.is_reset = each.value != 0
            self.is_ended = self.is_ended or each.end or each.kind == "reset"
        return self
