"""A text without what patterns match in it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final

from dataplane.guards.search import PIECE, Search
from dataplane.guards.values import BOUND
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.guards.patterns import Pattern, Span

_LOOK: Final = 32
"""Bytes before a place, of those that a search keeps."""
MOST_WORK: Final = 20_000_000
"""Nanoseconds of one search (`regexes.prices.MOST`)."""
_in_escape: Final = re.compile(rb"(?<!\\)(?:\\\\)*(\\(?:u[0-9A-Fa-f]{0,3})?)\Z").search


class Masker:
    """One text that comes in pieces. What it gives in all does not depend on how the text was split.

    Matches that overlap have the label of the one that begins first, of two that begin together that of the pattern
    that stands first.
    """

    __slots__ = ("_covered", "_given", "_is_last", "_patterns", "_search", "masked")

    def __init__(self, patterns: Sequence[Pattern], bound: int = BOUND) -> None:
        self._patterns = patterns
        self._search = Search(patterns, bound)
        self._given = 0
        """Up to where the text was given."""
        self._covered = 0
        """Up to where it is masked: the label was given."""
        self._is_last = False
        self.masked: Counter[bytes] = Counter()
        """How often, by label."""

    @property
    def held(self) -> int:
        return self._search.fed - self._given

    def feed(self, data: bytes, is_end: bool = False) -> Generator[None, None, bytes]:
        """Yields between pieces of work. Answers what may be given now."""
        given = []
        for start in range(0, len(data) or 1, PIECE):
            self._is_last = is_end and start + PIECE >= len(data)
            decided = yield from self._search.feed(data[start : start + PIECE], self._is_last)
            given.append(self._give(decided))
        return b"".join(given)

    def _give(self, decided: int) -> bytes:
        search, parts = self._search, []
        if decided < search.size or not self._is_last:
            decided = max(self._given, self._begin_of_escape(decided))
        found = sorted(search.found, key=lambda each: (each.start, each.order))
        search.found = [each for each in found if each.start >= decided]
        for each in found[: len(found) - len(search.found)]:
            if each.start >= self._covered:
                begin = max(self._given, self._covered)
                parts.append(search.text(begin, max(begin, self._begin_of_escape(each.start))))
                parts.append(self._patterns[each.order].label)
                self.masked[parts[-1]] += 1
                self._given = each.start
            self._covered = max(self._covered, each.end)
        start = max(self._given, self._covered)
        if start < decided:
            parts.append(search.text(start, decided))
        self._given = max(self._given, decided)
        search.forget(decided)
        return b"".join(parts)

    def _begin_of_escape(self, place: int) -> int:
        """Where the escape of JSON begins that this place is in, else the place. A text may be JSON itself (what a tool
        is called with): a label behind the backslash of `\\n` would make it unreadable."""
        start = max(0, place - _LOOK)
        text = self._search.text(start, place)
        if b"\\" in text and (found := _in_escape(text)) is not None:
            return start + found.start(1)
        return place


def masked(patterns: Sequence[Pattern], text: bytes, bound: int = BOUND) -> bytes:
    """A whole text at once."""
    return at_once(Masker(patterns, bound).feed(text, True))


def is_found(patterns: Sequence[Pattern], text: bytes, bound: int = BOUND) -> Generator[None, None, bool]:
    """Whether any of them matches in a whole text, however long the match is; where that would take too long in one
    search (`regexes.prices`), a match of more bytes than half a search may look at, and than `bound`, may not be found
    as a whole. Yields between pieces of work."""
    for pattern in patterns:
        start, end = yield from _first(pattern, text, bound)
        if start >= 0 and pattern.check is None and end > start:
            return True
        if start < 0:
            continue
        search = Search((pattern,), bound)
        for place in range(0, len(text), PIECE):
            yield from search.feed(text[place : place + PIECE], place + PIECE >= len(text))
            if search.found:
                return True
            search.forget(search.decided)
    return False


def _first(pattern: Pattern, text: bytes, bound: int) -> Generator[None, None, Span]:
    """A first match. What one search may look at overlaps by half."""
    step = max(bound, MOST_WORK // pattern.price // 2)
    for here in range(0, max(1, len(text) - step), step):
        found = pattern.find(text, here, min(len(text), here + 2 * step))
        yield
        if found[0] >= 0:
            return found
    return -1, -1
