"""The header block of one message, kept and edited as bytes.

A block is what stands between the start line and the empty line, with its leading CRLF: every line in it begins right
after a CRLF and ends with one (`b"\\r\\nHost: a\\r\\nAccept: */*\\r\\n"`; no header at all is `b"\\r\\n"`). Beside it
lives its lower-case twin of the same length, so that a name is found with `bytes.find` and a value is cut from the
original. Parsing eight headers into a list costs 1.5 us; the few look-ups that a route needs cost 0.1 us each.

In the twin a name has "-" in place of every character that is no letter or digit: WSGI, CGI and PHP read `x_user` and
`x-user` as one header, so they are one for policies, too. The block keeps a name as it came.

Names are passed in that form (`plain_name`) and without a colon. The caller has checked a value (`is_value`): it
goes out as is.
"""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import compress
from typing import Final

is_name = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
"""RFC 9110 5.1: a field name is a token."""

is_value = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?").fullmatch
"""RFC 9110 5.5: visible characters, inner spaces and tabs; nothing that could end a line."""

_PLAIN = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'*+._`^|~", b"abcdefghijklmnopqrstuvwxyz" + b"-" * 14)

SEPARATOR: Final = rb"[!#$%&'*+\-.^_`|~]"
"""An expression for what is the same character in a name: all that a name may have but letters and digits."""

has_unusual_name = re.compile(rb"\r\n[a-z0-9\-]*+[^a-z0-9\-:\r]").search
"""Of a block in lower case: whether a name has another character than letters, digits and hyphens."""

_unusual = re.compile(rb"\r\n(?=[a-z0-9\-]*+[^a-z0-9\-:\r])[^\r]++").finditer
_names = re.compile(rb"(?<=\r\n)[^:\r]++").sub


def has_bare_lf(data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether a head, or a part of one, has a line that ends with LF alone (RFC 9112 2.2), at `start` or behind it and
    before `end`. Without an expression, which looks at each byte: 2.5 ms of each 256 KB."""
    first = data.find(b"\n", start, end)
    if first < 0:
        return False
    return data.count(b"\n", first, end) != data.count(b"\r\n", max(0, first - 1), end)


def plain_name(name: bytes) -> bytes:
    """A name as the twins of blocks have it: lower case, with hyphens for what is no letter or digit."""
    return name.translate(_PLAIN)


def with_low_names(block: bytes) -> bytes:
    """The block with its names in lower case."""
    return _names(_lowered, block)


def _lowered(match: re.Match[bytes]) -> bytes:
    return match[0].lower()


def twin(block: bytes) -> bytes:
    """The twin of a block."""
    low = block.lower()
    return low if has_unusual_name(low) is None else folded(low)


def folded(low: bytes) -> bytes:
    """The twin of a block that is in lower case."""
    return _names(_fold, low)


def _fold(match: re.Match[bytes]) -> bytes:
    return match[0].translate(_PLAIN)


def twin_of_lines(lines: bytes) -> bytes:
    """The twin of finished lines (`Head.append`); the same object when they are their own."""
    low = twin(b"\r\n" + lines)[2:]
    return lines if low == lines else low


def unusual_lines(low: bytes) -> list[tuple[int, int]]:
    """Where the lines of a block in lower case stand that have such names, as `lines_of`."""
    return [match.span() for match in _unusual(low)]


def without(block: bytes, low: bytes, spans: list[tuple[int, int]]) -> tuple[bytes, bytes]:
    """A block and its lower-case twin with `spans` cut out of both; they are in order and do not overlap."""
    if len(spans) == 1:
        ((start, end),) = spans
        return block[:start] + block[end:], low[:start] + low[end:]
    if not spans:
        return block, low
    kept, at = [], 0
    for start, end in spans:
        kept.append((at, start))
        at = end
    kept.append((at, len(block)))
    return b"".join([block[a:b] for a, b in kept]), b"".join([low[a:b] for a, b in kept])


def of_usual_names(lines: bytes) -> bytes:
    """Finished lines without those that have another character in their names than letters, digits and hyphens."""
    block = b"\r\n" + lines
    low = block.lower()
    return lines if has_unusual_name(low) is None else without(block, low, unusual_lines(low))[0][2:]


def lines_of(low: bytes, name: bytes) -> list[tuple[int, int]]:
    """Where the headers called `name` stand in a lower-case block, each from its CRLF to the next."""
    spans, needle = [], b"\r\n" + name + b":"
    p = low.find(needle)
    while p >= 0:
        q = low.find(b"\r\n", p + 2)
        spans.append((p, q))
        p = low.find(needle, q)
    return spans


def without_named(block: bytes, low: bytes, names: Set[bytes]) -> tuple[bytes, bytes]:
    """A block and its twin without the headers of these names. Looks at each header once, however many names come."""
    lines = low.split(b"\r\n")
    kept = [not line or line.partition(b":")[0] not in names for line in lines]
    if all(kept):
        return block, low
    return b"\r\n".join(compress(block.split(b"\r\n"), kept)), b"\r\n".join(compress(lines, kept))


def lines_without(block: bytes, low: bytes, names: Set[bytes]) -> bytes:
    """The finished lines of a block but for those of these names."""
    kept = [line.partition(b":")[0] not in names for line in low.split(b"\r\n")]
    return b"\r\n".join(compress(block.split(b"\r\n"), kept))[2:]


class Head:
    """The headers of one request or response. Attributes are public because the fast path edits them in place."""

    __slots__ = ("block", "low")

    def __init__(self, block: bytes, low: bytes | None = None) -> None:
        self.block = block
        self.low = twin(block) if low is None else low

    def get(self, name: bytes) -> bytes | None:
        """The value of the first header called `name`, without surrounding white space; None when there is none."""
        low = self.low
        p = low.find(b"\r\n" + name + b":")
        if p < 0:
            return None
        p += len(name) + 3
        return self.block[p : low.find(b"\r\n", p)].strip(b" \t")

    def get_all(self, name: bytes) -> list[bytes]:
        """Every value of `name`, in order."""
        low, values, needle = self.low, [], b"\r\n" + name + b":"
        p = low.find(needle)
        while p >= 0:
            q = low.find(b"\r\n", p + 2)
            values.append(self.block[p + len(needle) : q].strip(b" \t"))
            p = low.find(needle, q)
        return values

    @property
    def is_coded(self) -> bool:
        """What follows has a content coding (RFC 9110 8.4): its bytes are not those of its type. `identity` is none."""
        if b"content-encoding:" not in self.low:
            return False
        codings = b",".join(self.get_all(b"content-encoding")).lower().split(b",")
        return any(each.strip(b" \t") not in (b"", b"identity") for each in codings)

    def items(self) -> list[tuple[bytes, bytes]]:
        """All headers as (lower-case name, value), in order."""
        pairs = []
        for line in self.block[2:-2].split(b"\r\n"):
            name, colon, value = line.partition(b":")
            if colon:
                pairs.append((name.lower(), value.strip(b" \t")))
        return pairs

    def remove(self, name: bytes) -> None:
        """Take out every header called `name`."""
        needle = b"\r\n" + name + b":"
        p = self.low.find(needle)
        while p >= 0:
            q = self.low.find(b"\r\n", p + 2)
            self.block = self.block[:p] + self.block[q:]
            self.low = self.low[:p] + self.low[q:]
            p = self.low.find(needle, p)

    def add(self, name: bytes, value: bytes) -> None:
        """Append a header; one of the same name stays."""
        self.block += name + b": " + value + b"\r\n"
        self.low += plain_name(name) + b": " + value.lower() + b"\r\n"

    def set(self, name: bytes, value: bytes) -> None:
        """Make `value` the only value of `name`."""
        self.remove(plain_name(name))
        self.add(name, value)

    def append(self, lines: bytes) -> None:
        """Append finished header lines (`b"a: 1\\r\\nb: 2\\r\\n"`) of names that are plain but for letter case."""
        self.block += lines
        self.low += lines.lower()

    def __repr__(self) -> str:
        names = ", ".join(name.decode("latin-1") for name, _ in self.items())
        return f"Head({names})"  # values may be secrets
