"""Which content coding a client likes best, by its Accept-Encoding (RFC 9110 12.5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

IDENTITY: Final = b"identity"
_ALIASES: Final = {b"x-gzip": b"gzip"}
"""RFC 9110 8.4.1.3."""
MAX_LENGTH: Final = 512
"""Bytes of a value that is looked at: clients send 30."""

_item = re.compile(rb"([!#$%&'*+.^_`|~0-9a-z-]+)[ \t]*(?:;[ \t]*q[ \t]*=[ \t]*([01](?:\.[0-9]{0,3})?))?").fullmatch


@lru_cache(1024)
def best(value: bytes | None, offered: Sequence[bytes]) -> bytes:
    """The coding of `offered` (a tuple) that is to be used: the one with the highest quality, of equal ones the first.
    IDENTITY: none of them, or the client likes it better as it is. `value`: what the client sent, its lines joined by
    commas; None: nothing. Who says nothing takes anything, and is given what is sure to be understood."""
    if value is None or len(value) > MAX_LENGTH:
        return IDENTITY
    qualities = _qualities(value.lower())
    others = qualities.get(b"*")
    chosen, highest = IDENTITY, 0.0
    for coding in offered:
        quality = qualities.get(coding, others)
        if quality is not None and quality > highest:
            chosen, highest = coding, quality
    return IDENTITY if qualities.get(IDENTITY, 0.0) > highest else chosen


def _qualities(value: bytes) -> dict[bytes, float]:
    """By coding, in lower case; what is no item says nothing. Of one that is there twice the last counts."""
    found = {}
    for part in value.split(b","):
        match = _item(part.strip(b" \t"))
        if match is not None:
            quality = 1.0 if match[2] is None else min(float(match[2]), 1.0)
            found[_ALIASES.get(match[1], match[1])] = quality
    return found
