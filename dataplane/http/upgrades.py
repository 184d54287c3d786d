"""Which protocols a request may ask to switch to (RFC 9110 7.8), the same for `upgrade` of HTTP/1.1 and for extended
CONNECT of HTTP/2 (RFC 8441): all but HTTP itself, which would be a way past routes and policies."""

from __future__ import annotations

from typing import Final

FORBIDDEN: Final = frozenset((b"h2c", b"h2", b"h3", b"http/1.0", b"http/1.1", b"http/2", b"http/2.0"))
"""In lower case. An `upgrade` that offers one of them is left out of a request (RFC 9110 7.8: it may be ignored); an
extended CONNECT is refused, for there is nothing left of it."""

WEBSOCKET: Final = b"websocket"


def is_allowed(protocols: bytes) -> bool:
    """Of an `upgrade` field or a `:protocol`, in lower case: one, or several with commas between."""
    return protocols not in FORBIDDEN and (b"," not in protocols or FORBIDDEN.isdisjoint(_each(protocols)))


def cut(protocols: bytes, allowed: frozenset[bytes]) -> bytes:
    """What is left of an `upgrade` field or a `:protocol`; `allowed`: in lower case."""
    return b", ".join([name for name in _each(protocols) if name.lower() in allowed])


def _each(protocols: bytes) -> list[bytes]:
    return [protocol.strip(b" \t") for protocol in protocols.split(b",")]
