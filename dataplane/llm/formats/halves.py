"""Characters of JSON that were cut in two: servers that count in units of UTF-16 send the halves of one in two events,
each as an escape that is no text by itself (RFC 8259 8.2). Pure."""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # both
    rb'|(\\u[dD][89abAB][0-9a-fA-F]{2})("?)'  # a first half, perhaps at the end of a text
    rb'|("?)(\\u[dD][c-fC-F][0-9a-fA-F]{2})'  # a second half, perhaps at the beginning of one
    rb"|\\."
)
_LOST: Final = rb"\ufffd"
ESCAPE: Final = rb"\u"
"""What JSON has where it has a half."""


class Halves:
    """Of one stream."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first = b""
        """The half that the last text ended with."""

    def joined(self, data: bytes) -> bytes:
        """JSON that can be read: a half at the end of a text waits for the other at the beginning of a later one; any
        other is lost."""
        return _ESCAPES.sub(self._mended, data)

    def _mended(self, found: re.Match[bytes]) -> bytes:
        _, first, end, begin, second = found.groups()
        if first:
            if not end:
                return _LOST
            self._first = first
            return end
        if second:
            waiting, self._first = self._first, b""
            return b"%b%b%b" % (begin, waiting, second) if begin and waiting else begin + _LOST
        return found[0]
