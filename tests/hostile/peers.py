"""Far ends of the wires of `world`: what each sends, how fast, and how fast it reads. Nothing here is measured.

They write bytes by hand: hostile ones have to, and polite ones need little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import Content, Request, Trailers
from dataplane.http.h2.frames import HEADERS, PREFACE
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_wire import OPENING

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD_END: Final = b"\r\n\r\n"


class Peer:
    """Sends what `source` gives, piece by piece; drops what it gets.

    `reads`: bytes that it takes in each turn; None: all. `piece`: bytes of one read of the worker (0: as many as fit),
    `pieces`: reads in each turn (0: as often as there is more).
    """

    def __init__(
        self,
        source: Iterator[bytes],
        reads: int | None = None,
        piece: int = 0,
        pieces: int = 0,
    ) -> None:
        self.source = source
        self.reads, self.piece, self.pieces = reads, piece, pieces

    def more(self) -> bytes:
        """What it sends next; b"": nothing now."""
        return next(self.source, b"")

    def got(self, data: bytes) -> None:
        """Bytes came."""


class Endpoint(Peer):
    """Answers each whole request with `ok`: as HTTP/1.1, or as HTTP/2."""

    def __init__(self, is_http1: bool, answer: bytes = OK) -> None:
        super().__init__(iter(()))
        self._out: list[bytes] = []
        self._answer = answer
        self._tail = b""
        self._left = 0
        self._is_chunked = False
        self._codec = None if is_http1 else Connection(Settings(), True, lambda: 0.0)

    def more(self) -> bytes:
        if self._codec is not None:
            self._out.append(self._codec.take())
        out, self._out = b"".join(self._out), []
        return out

    def got(self, data: bytes) -> None:
        if self._codec is not None:
            self._got_frames(self._codec, data)
            return
        data = self._tail + data
        while data:
            data, is_short = self._read(data)
            if is_short:
                break
        self._tail = data

    def _read(self, data: bytes) -> tuple[bytes, bool]:
        """(what is left, whether more has to come before it goes on)."""
        if self._is_chunked:
            at = data.find(b"0\r\n\r\n")
            if at < 0:
                return data[-4:], True
            self._is_chunked = False
            self._out.append(self._answer)
            return data[at + 5 :], False
        if self._left:
            took = min(self._left, len(data))
            self._left -= took
            if not self._left:
                self._out.append(self._answer)
            return data[took:], False
        end = data.find(HEAD_END)
        if end < 0:
            return data, True
        head = data[:end].lower() + b"\r\n"
        _, found, length = head.partition(b"\r\ncontent-length:")
        self._is_chunked = b"\r\ntransfer-encoding: chunked" in head
        self._left = int(length.partition(b"\r\n")[0]) if found else 0
        if not self._left and not self._is_chunked:
            self._out.append(self._answer)
        return data[end + 4 :], False

    def _got_frames(self, codec: Connection, data: bytes) -> None:
        found = codec.receive(data)
        while codec.has_more:
            found += codec.receive(b"")
        for event in found:
            if isinstance(event, Content):
                codec.acknowledge(event.stream, len(event.data))
            if isinstance(event, Request | Content | Trailers) and getattr(event, "end", True):
                codec.send_response(event.stream, 200, b"\r\ncontent-length: 2\r\n", False)
                codec.send_content(event.stream, b"ok", True)


class Hostile1(Peer):
    """An endpoint of HTTP/1.1 that sends `script()` for each request head that it gets."""

    def __init__(self, script: Callable[[], Iterator[bytes]], piece: int = 0, pieces: int = 0) -> None:
        super().__init__(iter(()), piece=piece, pieces=pieces)
        self._script = script
        self._due = 0

    def got(self, data: bytes) -> None:
        self._due += data.count(HEAD_END)

    def more(self) -> bytes:
        while True:
            for data in self.source:
                return data
            if not self._due:
                return b""
            self._due -= 1
            self.source = self._script()


class Hostile2(Peer):
    """An endpoint of HTTP/2 that sends `script(stream)` for each request, one after the other."""

    def __init__(self, script: Callable[[int], Iterator[bytes]], piece: int = 0, pieces: int = 0) -> None:
        super().__init__(iter((OPENING,)), piece=piece, pieces=pieces)
        self._script = script
        self._streams: list[int] = []
        self._tail = b""
        self._greeted = False

    def got(self, data: bytes) -> None:
        data = self._tail + data
        if not self._greeted and len(data) >= len(PREFACE):
            data, self._greeted = data[len(PREFACE) :], True
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3]):
            if data[3] == HEADERS:
                self._streams.append(int.from_bytes(data[5:9]))
            data = data[9 + int.from_bytes(data[:3]) :]
        self._tail = data

    def more(self) -> bytes:
        while True:
            for data in self.source:
                return data
            if not self._streams:
                return b""
            self.source = self._script(self._streams.pop(0))
