"""SETTINGS (RFC 9113 6.5): what we announce, what the peer announced, and which values are allowed.

`Settings` is configuration, made when a listener or a backend is built. `PeerSettings` is what one connection learned.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.http.h2.errors import FLOW_CONTROL_ERROR, PROTOCOL_ERROR, ConnectionFailure
from dataplane.http.h2.frames import MAX_FRAME_SIZE, MAX_WINDOW, MIN_FRAME_SIZE, SETTING

HEADER_TABLE_SIZE = 0x1
ENABLE_PUSH = 0x2
MAX_CONCURRENT_STREAMS = 0x3
INITIAL_WINDOW_SIZE = 0x4
FRAME_SIZE = 0x5
MAX_HEADER_LIST_SIZE = 0x6
ENABLE_CONNECT_PROTOCOL = 0x8
"""RFC 8441 3."""

DEFAULT_WINDOW = 65_535
"""RFC 9113 6.9.2: of a connection and, until SETTINGS say otherwise, of a stream."""

BOUNDS = {
    ENABLE_PUSH: (0, 1, PROTOCOL_ERROR),
    INITIAL_WINDOW_SIZE: (0, MAX_WINDOW, FLOW_CONTROL_ERROR),
    FRAME_SIZE: (MIN_FRAME_SIZE, MAX_FRAME_SIZE, PROTOCOL_ERROR),
    ENABLE_CONNECT_PROTOCOL: (0, 1, PROTOCOL_ERROR),
}
"""Setting -> (least, most, error code for others): RFC 9113 6.5.2, RFC 8441 3. What is not here may be any number."""

NEVER_INDEXED_ABOVE = 4096
"""Bytes of the table that we encode with, at most; a larger one that a peer offers costs memory for each connection."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How our side of a connection behaves; sizes in bytes. A server and a client may use one object for all
    connections."""

    max_streams: int = 100
    """Server: streams that a client may have open; more are refused (REFUSED_STREAM)."""
    stream_window: int = 65_536
    """Content of one stream that waits for its consumer."""
    connection_window: int = 524_288
    """Content of all streams of one connection that waits."""
    frame_size: int = MIN_FRAME_SIZE
    """Largest payload that the peer may send in one frame; `MIN_FRAME_SIZE` to `MAX_FRAME_SIZE`."""
    max_header_size: int = 16_384
    """Decoded fields, each with 32 bytes on top (RFC 9113 6.5.2); more is answered with 431, or resets the stream."""
    max_headers: int = 100
    """Field lines of one head, crumbs of cookies and pseudo-headers counted as one each."""
    connect_protocol: bool = True
    """Server: allow extended CONNECT (RFC 8441)."""
    max_local_streams: int = 100
    """Client: streams that we open at once before the peer has said how many it takes."""

    def __post_init__(self) -> None:
        if not MIN_FRAME_SIZE <= self.frame_size <= MAX_FRAME_SIZE:
            raise ValueError(f"frame_size must be from {MIN_FRAME_SIZE} to {MAX_FRAME_SIZE}, got {self.frame_size}")
        for name in ("stream_window", "connection_window"):
            if not 1 <= getattr(self, name) <= MAX_WINDOW:
                raise ValueError(f"{name} must be from 1 to {MAX_WINDOW}, got {getattr(self, name)}")


def announcement(settings: Settings, server: bool) -> bytes:
    """The payload of our SETTINGS."""
    pairs = [
        (INITIAL_WINDOW_SIZE, settings.stream_window),
        (FRAME_SIZE, settings.frame_size),
        (MAX_HEADER_LIST_SIZE, settings.max_header_size),
    ]
    if server:
        pairs.append((MAX_CONCURRENT_STREAMS, settings.max_streams))
        if settings.connect_protocol:
            pairs.append((ENABLE_CONNECT_PROTOCOL, 1))
    else:
        pairs.append((ENABLE_PUSH, 0))  # RFC 9113 8.4: then a PUSH_PROMISE is an error
    return b"".join([SETTING.pack(*pair) for pair in pairs])


@dataclass(slots=True)
class PeerSettings:
    """What the peer announced, or the defaults of RFC 9113 6.5.2."""

    header_table_size: int = 4096
    """Bytes of the table that the peer decodes with."""
    max_streams: int | None = None
    """None: not announced."""
    initial_window: int = DEFAULT_WINDOW
    frame_size: int = MIN_FRAME_SIZE
    max_header_size: int | None = None
    connect_protocol: bool = False

    def apply(self, payload: bytes, from_server: bool) -> None:
        """Take over a SETTINGS payload, in order. Raises ConnectionFailure for a value that is not allowed."""
        for number, value in SETTING.iter_unpack(payload):
            bounds = BOUNDS.get(number)
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                raise ConnectionFailure(bounds[2], "BadSetting")
            if number == HEADER_TABLE_SIZE:
                self.header_table_size = value
            elif number == ENABLE_PUSH:
                if value and from_server:  # 6.5.2: a server must not send 1
                    raise ConnectionFailure(PROTOCOL_ERROR, "BadSetting")
            elif number == MAX_CONCURRENT_STREAMS:
                self.max_streams = value
            elif number == INITIAL_WINDOW_SIZE:
                self.initial_window = value
            elif number == FRAME_SIZE:
                self.frame_size = value
            elif number == MAX_HEADER_LIST_SIZE:
                self.max_header_size = value
            elif number == ENABLE_CONNECT_PROTOCOL:
                if self.connect_protocol and not value:  # RFC 8441 3: it is never taken back
                    raise ConnectionFailure(PROTOCOL_ERROR, "BadSetting")
                self.connect_protocol = bool(value)
