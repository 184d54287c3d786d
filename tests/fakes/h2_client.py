"""A client of HTTP/2 for a proxy in memory that sends frames as they stand in the test, and reads what comes.

    client = FrameClient(MemoryProxy())
    client.send(headers(1, GET))
    assert client.take() == [Said("head", 1, 200, end=True)]

What it reads are values (`Said`), acknowledgements and window updates left out unless a test asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dataplane.http.h2.frames import (
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from dataplane.http.h2.hpack import BlockDecoder
from tests.fakes.dates import shown_fields
from tests.fakes.h2_wire import OPENING, Frame, parse
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

_NAMES = {DATA: "data", HEADERS: "head", RST_STREAM: "reset", GOAWAY: "goaway", PING: "ping"}
_QUIET = (SETTINGS, WINDOW_UPDATE)


@dataclass
class Said:
    """One frame of the proxy's. `value`: a status (of trailers 0), content, an error code; of GOAWAY its code, with the
    last stream as `stream`; of PING its bytes."""

    kind: str
    stream: int
    value: int | bytes
    end: bool = False
    headers: dict[bytes, bytes] = field(default_factory=dict, compare=False)


class FrameClient:
    def __init__(self, proxy: MemoryProxy, opening: bytes = OPENING, transport: FakeTransport | None = None) -> None:
        self.proxy = proxy
        self.transport = transport or proxy.connect()
        self._decoder = BlockDecoder(1 << 20)
        self.windows: dict[int, int] = {0: 65_535}
        """What the proxy still takes: of the connection (0), and of each stream beside its first window."""
        if opening:
            self.send(PREFACE + opening)
            self.take()

    @property
    def open(self) -> bool:
        return self.transport.open

    @property
    def is_ended(self) -> bool:
        """The proxy has said all that it will say."""
        return self.transport.eof or not self.transport.open

    def send(self, *frames: bytes) -> None:
        """In one piece."""
        self.transport.send(b"".join(frames))

    def take(self) -> list[Said]:
        """What came since the last look."""
        return [self._said(each) for each in self.frames() if each.kind not in _QUIET]

    def frames(self) -> list[Frame]:
        """The same as frames, of each kind; window updates are counted."""
        found = parse(self.transport.take())
        for each in found:
            if each.kind == WINDOW_UPDATE:
                self.windows[each.stream] = self.windows.get(each.stream, 0) + int.from_bytes(each.payload)
        return found

    def _said(self, frame: Frame) -> Said:
        end = bool(frame.flags & END_STREAM)
        value: int | bytes = frame.payload
        stream, headers = frame.stream, {}
        if frame.kind == HEADERS:
            fields = [(name, content) for name, content, _ in self._decoder.decode(frame.payload)]
            headers = {name: content for name, content in shown_fields(fields) if name != b":status"}
            value = int(dict(fields).get(b":status", b"0"))
        elif frame.kind == RST_STREAM:
            value = int.from_bytes(frame.payload)
        elif frame.kind == GOAWAY:
            stream, value = int.from_bytes(frame.payload[:4]), int.from_bytes(frame.payload[4:8])
        elif frame.kind == PING:
            end = False
        return Said(_NAMES.get(frame.kind, str(frame.kind)), stream, value, end, headers)
