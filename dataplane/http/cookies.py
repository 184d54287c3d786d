"""Cookies of a request (RFC 6265 4.2.1), found by name in whatever lines they come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dataplane.http.heads import lines_of

if TYPE_CHECKING:
    from dataplane.http.heads import Head

LINE: Final = b"\r\ncookie:"


@lru_cache(512)
def pairs(name: bytes) -> re.Pattern[bytes]:
    """The pairs of this name in the value of a line; the group is the pair. One search: it is clients who say how many
    cookies there are."""
    return re.compile(rb"(?:\A|;)([ \t]*%b[ \t]*=[^;]*)" % re.escape(name))


def values(head: Head, name: bytes) -> Iterator[bytes]:
    """Values of the cookies of this name, in order, without the quotation marks that they may stand in."""
    if LINE not in head.low:
        return
    found = pairs(name)
    for start, end in lines_of(head.low, b"cookie"):
        for match in found.finditer(head.block[start + len(LINE) : end]):
            yield unquoted(match[1].partition(b"=")[2].strip(b" \t"))


def unquoted(raw: bytes) -> bytes:
    return raw[1:-1] if len(raw) > 1 and raw[:1] == b'"' == raw[-1:] else raw
