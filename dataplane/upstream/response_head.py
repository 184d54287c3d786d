"""What a response head means for the connection that it came on, read once per distinct head. Pure.

An endpoint that answers alike (same length, same second in `Date`) sends the same head again and again: the connection
keeps what it learned from the last one. RFC 9112 section 6.3 decides how the body is delimited; a head that could be
read in two ways is no response (section 11.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from dataplane.http.heads import without, without_named
from dataplane.http.statuses import SWITCHING

LENGTH, CHUNKED, UNTIL_CLOSE, TUNNEL = range(4)
"""How the body is delimited."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?(?=\r\n)").match
_DIGITS = re.compile(rb"[0-9]{1,18}").fullmatch
_SPECIAL = re.compile(
    rb"\r\n(?=[ckptu])(content-length|transfer-encoding|connection|keep-alive|proxy-connection|te|upgrade)[ \t]*:"
    rb"[ \t]*([^\r]*)"
).finditer
_STAYS = frozenset((b"content-length", b"transfer-encoding"))
_NOT_REMOVABLE = frozenset((*_STAYS, b"close", b"keep-alive", b"upgrade", b"te"))


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
    match = _STATUS_LINE(raw)
    if match is None:
        return "malformed status line"
    if not _valid(raw + b"\r\n"):
        return "malformed response head"
    eol = match.end()
    minor, digits = match.groups()
    old, status = minor == b"0", int(digits)
    block = raw[eol:]
    low = block.lower()
    lengths: list[bytes] = []
    codings: list[bytes] = []
    options: list[bytes] = []
    spans: list[tuple[int, int]] = []
    upgrade = b""
    bodiless = status < 200 or status == 204
    """RFC 9110 8.6, RFC 9112 6.1: such a response says nothing of a body."""
    for special in _SPECIAL(low):
        name, value = special.groups()
        if name == b"content-length":
            lengths.append(value.rstrip(b" \t"))
        elif name == b"transfer-encoding":
            codings.append(value.rstrip(b" \t"))
        if bodiless or name not in _STAYS:
            spans.append(special.span())
            if name == b"connection":
                options += [value] if value == b"keep-alive" else [o.strip(b" \t") for o in value.split(b",")]
            elif name == b"upgrade":
                upgrade = value.rstrip(b" \t")
    framing, length = _frame(lengths, codings, status, to_head, old)
    if framing < 0:
        return "ambiguous framing"
    if spans:
        block, low = without(block, low, spans)
        named = {*options} - _NOT_REMOVABLE
        if named:
            block, low = without_named(block, low, named)
    keep = b"close" not in options and (not old or b"keep-alive" in options) and framing in (LENGTH, CHUNKED)
    line = b"HTTP/1.1" + raw[8:eol]
    return ResponseHead(raw, to_head, status, line, block, low, framing, length, keep, upgrade)


def _frame(lengths: list[bytes], codings: list[bytes], status: int, to_head: bool, old: bool) -> tuple[int, int]:
    """(framing, length); framing -1 when there is no one right answer."""
    if len(lengths) > 1 or (lengths and (_DIGITS(lengths[0]) is None or codings)):
        return -1, 0
    if status == SWITCHING:
        return TUNNEL, 0
    if status < 200 or status == 204:
        return LENGTH, 0
    if codings and (codings != [b"chunked"] or old):
        return -1, 0  # also where no body comes: the head goes on, and says to the client how one would be framed
    if to_head or status == 304:
        return LENGTH, 0
    if codings:
        return CHUNKED, 0
    return (LENGTH, int(lengths[0])) if lengths else (UNTIL_CLOSE, 0)


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
