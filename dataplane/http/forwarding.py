"""What a request says upstream of its client: forwarding headers, the same whatever protocol brought it. Pure.

The peer is appended to what came; protocol and host are set; nothing else that a client claims of itself is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


def chain(sent: Iterable[bytes], peer: bytes) -> bytes:
    """`x-forwarded-for` with the peer behind the values that came."""
    return b", ".join([value for value in sent if value] + [peer])


MAX_PROXIES: Final = 128
"""Addresses in `x-forwarded-for`: a request that came through more of them goes round in a circle, or says so."""
_SHORTEST: Final = len(b"::, ")


def goes_round(forwarded: bytes) -> bool:
    """Whether a request came through too many proxies (508, RFC 5842 7.2). `forwarded`: of `chain`."""
    return len(forwarded) > MAX_PROXIES * _SHORTEST and forwarded.count(b",") >= MAX_PROXIES


def lines(authority: bytes, forwarded: bytes, scheme: bytes, low: bytes) -> bytes:
    """The headers that only the gateway writes. `forwarded`: of `chain`; `authority`: b"" when the client named none;
    `scheme`: of the URI that it asked for; `low`: what goes on of its headers, in lower case: what it was allowed to
    say of itself stays as it said it."""
    if b"\r\nx-forwarded-" in low:
        return _beside(authority, forwarded, scheme, low)
    added = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n" % (forwarded, scheme)
    return added + b"x-forwarded-host: %b\r\n" % authority if authority else added


def _beside(authority: bytes, forwarded: bytes, scheme: bytes, low: bytes) -> bytes:
    added = b"x-forwarded-for: %b\r\n" % forwarded
    if b"\r\nx-forwarded-proto:" not in low:
        added += b"x-forwarded-proto: %b\r\n" % scheme
    if authority and b"\r\nx-forwarded-host:" not in low:
        added += b"x-forwarded-host: %b\r\n" % authority
    return added
