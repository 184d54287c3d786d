"""Parameters of a query, found by name however a client escapes it: to read one, take it out, or hide its value."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(512)
def parameter(name: bytes) -> re.Pattern[bytes]:
    """The parameters of this name in a query with its "?", however the name is escaped; its group is the sign before
    the name, and that. One search: it is clients who say how many parameters there are."""
    return re.compile(rb"((?:\A\?|&)%b)(?:=[^&]*)?(?=&|\Z)" % b"".join(map(_letter, name)))


def _letter(octet: int) -> bytes:
    """An octet of a form's name as it may be written (WHATWG URL, application/x-www-form-urlencoded)."""
    escaped = b"(?i:%%%02x)" % octet
    plain = _WRITTEN.get(octet, re.escape(bytes((octet,))))
    return b"(?:%b|%b)" % (plain, escaped) if plain else escaped


_WRITTEN = {
    **dict.fromkeys(b"&=+#", b""),  # as they are they mean something else
    ord("%"): rb"%(?![0-9A-Fa-f]{2})",
    ord(" "): rb"[ +]",
}
"""Octets that are written in other ways than as they are and escaped: how, beside the escape."""


def without(target: bytes, name: bytes) -> bytes:
    """A target without the parameters of this name; with the last one goes the "?"."""
    path, mark, _ = target.partition(b"?")
    if not mark:
        return target
    rest = parameter(name).sub(b"", target[len(path) :])
    return path + b"?" + rest[1:] if len(rest) > 1 else path + rest[1:]
