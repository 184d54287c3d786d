"""What a response head means for the connection that it came on, read once per distinct head. Pure.

An endpoint that answers alike (same length, same second in `Date`) sends the same head again and again: the connection
keeps what it learned from the last one. RFC 9112 section 6.3 decides how the body is delimited; a head that could be
read in two ways is no response (section 11.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from dataplane.http.heads import Head

LENGTH, CHUNKED, UNTIL_CLOSE, TUNNEL = range(4)
"""How the body is delimited."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?").fullmatch
_DIGITS = re.compile(rb"[0-9]{1,18}").fullmatch
_HOP = re.compile(rb"\r\n(?:connection|keep-alive|proxy-connection|te|upgrade):").search
_HOP_NAMES = (b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade")
_NOT_REMOVABLE = frozenset((b"content-length", b"transfer-encoding", b"close", b"keep-alive", b"upgrade", b"te"))


@dataclass(slots=True, eq=False)
class ResponseHead:
    """`raw` as received, without its empty line; `line` the status line to send on; `block` and `low` the headers
    without those of the upstream hop."""

    raw: bytes
    to_head: bool
    """It answers a HEAD request."""
    status: int
    line: bytes
    block: bytes
    low: bytes
    framing: int
    length: int
    keep: bool
    upgrade: bytes
    """The protocol of a 101."""


NOTHING = ResponseHead(b"", False, 0, b"", b"", b"", LENGTH, 0, False, b"")


def read(raw: bytes, to_head: bool) -> ResponseHead | str:
    """Understand a response head (status line and header block), or say what is wrong with it."""
    eol = raw.find(b"\r\n")
    match = _STATUS_LINE(raw, 0, eol)
    if match is None:
        return "malformed status line"
    old, status = match[1] == b"0", int(match[2])
    head = Head(raw[eol:])
    if not _valid(raw + b"\r\n"):
        return "malformed response head"
    framing, length = _frame(head, status, to_head, old)
    if framing < 0:
        return "ambiguous framing"
    keep, upgrade = _take_out_hop(head, old)
    keep = keep and framing in (LENGTH, CHUNKED)
    line = b"HTTP/1.1" + raw[8:eol]
    return ResponseHead(raw, to_head, status, line, head.block, head.low, framing, length, keep, upgrade)


def _frame(head: Head, status: int, to_head: bool, old: bool) -> tuple[int, int]:
    """(framing, length); framing -1 when there is no one right answer."""
    codings = head.get_all(b"transfer-encoding")
    lengths = head.get_all(b"content-length")
    if len(lengths) > 1 or (lengths and (_DIGITS(lengths[0]) is None or codings)):
        return -1, 0
    if status == 101:
        return TUNNEL, 0
    if to_head or status < 200 or status in (204, 304):
        return LENGTH, 0
    if codings:
        return (CHUNKED, 0) if len(codings) == 1 and codings[0].lower() == b"chunked" and not old else (-1, 0)
    return (LENGTH, int(lengths[0])) if lengths else (UNTIL_CLOSE, 0)


def _take_out_hop(head: Head, old: bool) -> tuple[bool, bytes]:
    """(the endpoint keeps the connection, the protocol it upgrades to)."""
    if _HOP(head.low) is None:
        return not old, b""
    upgrade = head.get(b"upgrade") or b""
    options = [option.strip(b" \t") for option in b",".join(head.get_all(b"connection")).lower().split(b",")]
    for name in options:
        if name and name not in _NOT_REMOVABLE:
            head.remove(name)
    for name in _HOP_NAMES:
        head.remove(name)
    return b"close" not in options and (not old or b"keep-alive" in options), upgrade


class _Nobody:
    """Takes no callbacks: a parser for it only judges."""


_NOBODY = _Nobody()


def _valid(head: bytes) -> bool:
    try:
        httptools.HttpResponseParser(_NOBODY).feed_data(head)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return False
    return True
