"""HTTP/2 on the wire, written and read by hand: what tests send to a codec, and what they look for in its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from dataplane.http.h2 import frames
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import Event
from dataplane.http.h2.settings import Settings

GET = ((b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a.example"), (b":path", b"/"))
POST = ((b":method", b"POST"), *GET[1:])
OK = ((b":status", b"200"),)


def literal(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A header block of literals without indexing, by RFC 7541 6.2.2: any octets, and no table is touched."""
    return b"".join([b"\x00" + _string(name) + _string(value) for name, value in fields])


def _string(octets: bytes) -> bytes:
    size = len(octets)
    if size < 0x7F:
        return bytes((size,)) + octets
    size -= 0x7F
    number = b"\x7f"
    while size >= 0x80:
        number += bytes((0x80 | size & 0x7F,))
        size >>= 7
    return number + bytes((size,)) + octets


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return frames.header(kind, flags, stream, len(payload)) + payload


def headers(stream: int, fields: Iterable[tuple[bytes, bytes]], end: bool = True, flags: int = 0) -> bytes:
    """HEADERS with END_HEADERS."""
    flags |= frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frame(frames.HEADERS, flags, stream, literal(fields))


def data(stream: int, content: bytes = b"", end: bool = False) -> bytes:
    return frame(frames.DATA, frames.END_STREAM if end else 0, stream, content)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def parse(octets: bytes) -> list[Frame]:
    """Frames that a codec wrote; they are whole."""
    found, at = [], len(frames.PREFACE) if octets.startswith(frames.PREFACE) else 0
    while at < len(octets):
        word, flags, stream = frames.HEADER.unpack_from(octets, at)
        end = at + 9 + (word >> 8)
        assert end <= len(octets), "a frame is cut off"
        found.append(Frame(word & 0xFF, flags, stream, octets[at + 9 : end]))
        at = end
    return found


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


OPENING = frame(frames.SETTINGS) + frames.SETTINGS_ACK
"""A peer's SETTINGS, and its acknowledgement of ours."""


def settled(settings: Settings, server: bool, clock: Callable[[], float]) -> Connection:
    """A codec whose peer has said hello; nothing of that is left in it."""
    codec = Connection(settings, server, clock)
    codec.receive((frames.PREFACE if server else b"") + OPENING)
    codec.take()
    return codec


def server(settings: Settings | None = None, clock: Callable[[], float] | None = None) -> Connection:
    return settled(settings or Settings(), True, clock or Clock())


def client(settings: Settings | None = None, clock: Callable[[], float] | None = None) -> Connection:
    return settled(settings or Settings(), False, clock or Clock())


def only(events: list[Event], kind: type) -> Event:
    """The one event, which is of this kind."""
    assert [type(event) for event in events] == [kind], events
    return events[0]
