"""Which fields may be trailers, over any carrier: those that come (`h1/chunked`, `h2/rules`) and those that a policy
gives (`proxy/steps/stages`)."""

from __future__ import annotations

from typing import Final

from dataplane.http.heads import is_name, is_value, plain_name

FORBIDDEN_TRAILERS: Final = frozenset(
    (
        *(b"transfer-encoding", b"content-length", b"host", b"trailer", b"connection", b"upgrade", b"te"),
        *(b"content-encoding", b"content-type", b"content-range", b"expect", b"max-forwards", b"cache-control"),
        *(b"authorization", b"proxy-authorization", b"www-authenticate", b"proxy-authenticate", b"cookie"),
        *(b"set-cookie", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-request-id"),
        *(b"forwarded", b"location", b"keep-alive", b"x-forwarded-client-cert", b"x-retry-attempt"),
    )
)
"""RFC 9110 6.5.1: framing, routing, request modifiers, authentication; and the fields that we vouch for. Plain names
(`heads.plain_name`)."""

MAX_GIVEN: Final = 65_536
"""Bytes of trailers that a policy may give, as RFC 9113 6.5.2 counts them: 32 more for each, so that most peers take
them. What came from a peer and passes as it is has the codecs' limits."""


_OF_EACH: Final = 32 - len(b": \r\n")


def given(lines: bytes) -> bytes:
    """Trailer lines that a policy gives, without FORBIDDEN_TRAILERS. Raises ValueError for what is no line (RFC 9110
    5.1, 5.5), and for more than MAX_GIVEN bytes."""
    *whole, rest = lines.split(b"\r\n")
    size = len(lines) + len(whole) * _OF_EACH
    if size > MAX_GIVEN:
        raise ValueError(f"{size} bytes of trailers: {MAX_GIVEN} are the most")
    if rest:
        raise ValueError("the last trailer line has no end")
    return b"".join([line + b"\r\n" for line in whole if _name(line) not in FORBIDDEN_TRAILERS])


def _name(line: bytes) -> bytes:
    name, colon, value = line.partition(b":")
    if not colon or is_name(name) is None or is_value(value.strip(b" \t")) is None:
        raise ValueError(f"{name[:64]!r} is not the name of a trailer, or has a value that none can have")
    return plain_name(name)
