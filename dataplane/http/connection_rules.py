"""What `frontend.http` says of connections: what has to be known before a request, and so before its listener.

A connection takes the rules of its bind when it begins, with TLS those of the listener that the server name chose, and
keeps them: settings of HTTP/2 cannot be taken back. Where listeners of one bind differ (only a standalone file can say
so), the strictest of each counts for all plaintext connections, but for the letter case of header names, which is asked
of the listener. Made when the configuration changes; pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_HEADER_SIZE: Final = 1_048_576
"""Bytes of a header section of HTTP/2, decoded, that a listener takes at most, whatever `http2MaxHeaderSize` says: a
client makes us hold and read four times as much."""

FRAME_SIZES: Final = (16_384, 16_777_215)
"""RFC 9113 6.5.2, SETTINGS_MAX_FRAME_SIZE."""

MAX_WINDOW: Final = 2**31 - 1
"""RFC 9113 6.9.1."""

PING_TIMEOUT: Final = 20.0
"""Seconds in which a client answers a PING where `http2KeepaliveTimeout` is unset."""

MIN_PING_INTERVAL: Final = 1.0
"""Seconds between pings at least: their answers count as frames that cost the client nothing (`h2/budget`)."""


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """Of one listener, or of a bind. None: the proxy's own (`proxy/context.Limits`, `h2/settings.Settings`). Seconds,
    bytes."""

    idle_timeout: float | None = None
    """Of HTTP/1: without a request."""
    max_duration: float | None = None
    """After which a connection takes no further requests; None: there is no end."""
    lowers_names: bool = False
    """Names of response headers of HTTP/1 are written in lower case."""
    stream_window: int | None = None
    connection_window: int | None = None
    frame_size: int | None = None
    max_header_size: int | None = None
    max_streams: int | None = None
    """Of HTTP/2, at the same time."""
    ping_interval: float | None = None
    """None: a client is not asked whether it lives."""
    ping_timeout: float | None = None


DEFAULT: Final = ConnectionRules()

_SMALLEST: Final = tuple(name for name in ConnectionRules.__slots__ if name != "lowers_names")


def strictest(rules: Iterable[ConnectionRules]) -> ConnectionRules:
    """Of each value the smallest that any of these has; the default ones for none."""
    found = dict.fromkeys(rules)
    if len(found) <= 1:
        return next(iter(found), DEFAULT)
    smallest = {
        name: min((value for each in found if (value := getattr(each, name)) is not None), default=None)
        for name in _SMALLEST
    }
    return ConnectionRules(lowers_names=any(each.lowers_names for each in found), **smallest)
