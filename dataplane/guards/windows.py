"""Windows of a text that comes in pieces, for guards that call a server. Pure.

Each shows its server the end of the one before once more, so that what begins in one and ends in the next is seen
whole. That end is given to the client only when it was judged with what came behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_OVERLAP: Final = 4
"""Which part of a window the next one shows again."""
_CONTINUES, _BEGINS = 0x80, 0xC0


class Windows:
    """`feed` gives windows to judge; after each of them `judged` says what may be given, and `rest` at the end."""

    __slots__ = ("_is_last", "_kept", "_size", "_waiting")

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept = b""
        """Judged once."""
        self._waiting = b""
        """Not judged."""
        self._is_last = False

    @property
    def held(self) -> int:
        return len(self._kept) + len(self._waiting)

    def feed(self, data: bytes, is_end: bool) -> Iterator[bytes]:
        self._waiting += data
        while len(self._waiting) >= self._size:
            cut = boundary(self._waiting, self._size)
            new, self._waiting = self._waiting[:cut], self._waiting[cut:]
            self._is_last = is_end and not self._waiting
            yield self._kept + new
        if is_end and self._waiting:
            new, self._waiting = self._waiting, b""
            self._is_last = True
            yield self._kept + new

    def judged(self, window: bytes) -> bytes:
        """`window`: what it says now, with masks."""
        cut = len(window) if self._is_last else boundary(window, len(window) - self._size // _OVERLAP)
        self._kept = window[cut:]
        return window[:cut]

    def rest(self) -> bytes:
        """What was judged and is still kept, of a text that has ended."""
        rest, self._kept = self._kept, b""
        return rest


def boundary(text: bytes, place: int) -> int:
    """The begin of the character at this place."""
    place = max(place, 0)
    while 0 < place < len(text) and _CONTINUES <= text[place] < _BEGINS:
        place -= 1
    return place
