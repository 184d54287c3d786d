"""Frames on the wire (RFC 9113 sections 4 and 6): numbers, structs, the writing of small frames. No state."""

from __future__ import annotations

from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 3.4: what a client sends first."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
WHOLE = END_HEADERS | END_STREAM
"""A header block that ends its stream, and no padding, no priority."""
PADDED = 0x8
PRIORITIZED = 0x20

HEADER = Struct(">IBI")
"""(length << 8 | kind, flags, stream): the nine bytes of a frame header; the stream's first bit is reserved."""
HEADER_SIZE = 9
SETTING = Struct(">HI")
LONG = Struct(">I")
TWO_LONGS = Struct(">II")
STREAM_BITS = 0x7FFFFFFF
"""Of four bytes, what a stream number or a window increment is; the first bit is reserved (4.1, 6.9)."""

MIN_FRAME_SIZE = 16_384
MAX_FRAME_SIZE = 16_777_215
MAX_WINDOW = 0x7FFFFFFF
MAX_STREAM = 0x7FFFFFFF

_SMALL = Struct(">IBII")
"""A frame whose payload is one number."""
_GOAWAY = Struct(">IBIII")
_PING = Struct(">IBI8s")


def header(kind: int, flags: int, stream: int, length: int) -> bytes:
    """The header of a frame with `length` bytes of payload."""
    return HEADER.pack(length << 8 | kind, flags, stream)


def settings(payload: bytes) -> bytes:
    return HEADER.pack(len(payload) << 8 | SETTINGS, 0, 0) + payload


SETTINGS_ACK = HEADER.pack(SETTINGS, ACK, 0)


def window_update(stream: int, increment: int) -> bytes:
    """`stream` 0: the window of the connection."""
    return _SMALL.pack(4 << 8 | WINDOW_UPDATE, 0, stream, increment)


def rst_stream(stream: int, code: int) -> bytes:
    return _SMALL.pack(4 << 8 | RST_STREAM, 0, stream, code)


def ping(opaque: bytes, flags: int = 0) -> bytes:
    return _PING.pack(8 << 8 | PING, flags, 0, opaque)


def goaway(last: int, code: int, debug: bytes = b"") -> bytes:
    return _GOAWAY.pack((8 + len(debug)) << 8 | GOAWAY, 0, 0, last, code) + debug


def headers(stream: int, block: bytes, end: bool, frame_size: int) -> bytes:
    """HEADERS, and CONTINUATION frames where the block is longer than one frame (6.10)."""
    flags = END_STREAM if end else 0
    size = len(block)
    if size <= frame_size:
        return HEADER.pack(size << 8 | HEADERS, flags | END_HEADERS, stream) + block
    parts = [HEADER.pack(frame_size << 8 | HEADERS, flags, stream), block[:frame_size]]
    for at in range(frame_size, size, frame_size):
        part = block[at : at + frame_size]
        last = END_HEADERS if at + frame_size >= size else 0
        parts += (HEADER.pack(len(part) << 8 | CONTINUATION, last, stream), part)
    return b"".join(parts)
