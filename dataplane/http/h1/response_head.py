"""What a response head means for the connection that it came on, read once per distinct head. Pure.

An endpoint that answers alike (same length, same second in `Date`) sends the same head again and again: the connection
keeps what it learned from the last one, also for a head that differs in values alone (`again`). RFC 9112 section 6.3
decides how the body is delimited; a head that could be read in two ways is no response (section 11.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import httptools

from dataplane.http.dates import is_dated
from dataplane.http.h1 import values
from dataplane.http.heads import folded, has_unusual_name, plain_name, without, without_named
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.http.statuses import SWITCHING

LENGTH, CHUNKED, UNTIL_CLOSE, TUNNEL = range(4)
"""How the body is delimited."""

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?(?=\r\n)").match
_BEGINNING = re.compile(rb"HTTP/1\.[01] [1-5][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*+)?(?:\r\n|\r?\Z)").match
_SHORTEST = b"HTTP/1.1 200"
_WITHOUT_SPACE = len(_SHORTEST)
_without_space = re.compile(rb"(\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]++)[ \t]++(?=:)").sub
_DIGITS = re.compile(rb"[0-9]{1,18}").fullmatch
_NAMES = rb"content-length|transfer-encoding|connection|keep-alive|proxy-connection|te|upgrade"
_SPECIAL = re.compile(rb"\r\n(?=[ckptu])(" + _NAMES + rb")[ \t]*:[ \t]*([^\r]*)").finditer
_MEANT = re.compile(_NAMES).fullmatch
_STAYS = b"content-length"
_NOT_REMOVABLE = frozenset((_STAYS, b"transfer-encoding", b"close", b"keep-alive", b"upgrade", b"te"))


@dataclass(slots=True, eq=False)
class H1ResponseHead(ResponseHead):
    """A response head and what it says of its connection."""

    raw: bytes = b""
    """As received, without its empty line."""
    to_head: bool = False
    """It answers a HEAD request."""
    framing: int = LENGTH
    keep: bool = False
    """The connection can carry another request when the response has ended."""
    like: values.Like | None = None
    """How another head looks that means the same; made when the connection brings a second one."""


NO_RESPONSE = H1ResponseHead(0, b"", b"", b"", 0, True)


def _may_have_space(raw: bytes) -> bool:
    """Whether white space may stand between a name and its colon. RFC 9112 5.1: a proxy removes it from a response."""
    return b" :" in raw or b"\t:" in raw


def may_begin(data: bytes) -> bool:
    """Whether a head may still come of its first bytes: what speaks another protocol is known by its first word."""
    return _BEGINNING(data + _SHORTEST[len(data) :]) is not None


def read(raw: bytes, to_head: bool) -> H1ResponseHead | str:
    """Understand a response head (status line and header block), or say what is wrong with it."""
    match = _STATUS_LINE(raw)
    if match is None:
        return "malformed status line"
    if _may_have_space(raw):
        raw = _without_space(rb"\1", raw)
    if not _valid(raw + b"\r\n"):
        return "malformed response head"
    eol = match.end()
    if eol == _WITHOUT_SPACE:  # RFC 9112 4: a server sends the space also where no reason phrase follows
        raw, eol = raw[:eol] + b" " + raw[eol:], eol + 1
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
        if bodiless or name != _STAYS:
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
        named = {plain_name(option) for option in options} - _NOT_REMOVABLE
        if named:
            block, low = without_named(block, low, named)
    if has_unusual_name(low) is not None:
        low = folded(low)
    keep = b"close" not in options and (not old or b"keep-alive" in options) and framing in (LENGTH, CHUNKED)
    line = b"HTTP/1.1" + raw[8:eol]
    return H1ResponseHead(status, line, block, low, length, is_dated(low), upgrade, raw, to_head, framing, keep)


def again(known: H1ResponseHead, raw: bytes) -> H1ResponseHead | None:
    """What `read` would answer for a head, to the same kind of request, that differs from a known one in values that
    mean nothing to this hop, or in its `content-length`; None when it differs in more, and has to be read."""
    like = known.like
    if _may_have_space(raw):
        return None
    if like is None:
        if not values.is_worth_learning(known.raw, raw, _MEANT):
            return None
        like = _like(known)
    length = like.compare(known.raw, raw)
    if length == values.ALIKE:
        length = known.length
    elif length == values.UNLIKE:
        return None
    status, line, dated, to_head, framing = known.status, known.line, known.is_dated, known.to_head, known.framing
    block = (raw if like.kept is None else like.onward(raw))[len(line) :]
    return H1ResponseHead(
        status, line, block, None, length, dated, known.upgrade, raw, to_head, framing, known.keep, like
    )


def _like(known: H1ResponseHead) -> values.Like:
    counts = known.framing == LENGTH and not known.to_head and known.status >= 200 and known.status not in (204, 304)
    status_line = known.raw[: len(known.line)]
    known.like = values.Like(known.raw, status_line + known.block, _MEANT, counts)
    return known.like


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
        return CHUNKED, UNKNOWN
    return (LENGTH, int(lengths[0])) if lengths else (UNTIL_CLOSE, UNKNOWN)


class _NoCallbacks:
    """A parser with none of them only checks."""


_NO_CALLBACKS = _NoCallbacks()


def _valid(head: bytes) -> bool:
    try:
        httptools.HttpResponseParser(_NO_CALLBACKS).feed_data(head)
    except httptools.HttpParserUpgrade:
        return True
    except httptools.HttpParserError:
        return False
    return True
