"""Patterns looked for in a text that comes in pieces. Pure.

What is found does not depend on how the text was split. A match begins at the leftmost place where the pattern matches
at most `bound` bytes, and is what RE2 prefers among these: of a longer one its beginning, if that matches by itself. So
whatever begins more than `bound` bytes before the end of what is here is decided, and of the rest only what may still
become a match waits (`Pattern.alive`).

A search looks at one piece and what waits, so it costs the same in a long text as in a short one, whatever it looks
for. Who feeds long texts feeds pieces of `PIECE` bytes.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.guards.values import BOUND

if TYPE_CHECKING:
    from dataplane.guards.patterns import Pattern, Span

PIECE: Final = 4096
CONTEXT: Final = 64
"""Bytes of a text that are kept before the place of a search: patterns, and checks of matches, look at them."""
_CHARACTER: Final = 4
"""Bytes of one character at most: assertions of a pattern look at one behind a match."""
_TURN: Final = 64
_WORK: Final = 1_000_000
"""Matches, or what looked like some, between two pauses, and nanoseconds that searches may take between two."""
_word: Final = re.compile(rb"[0-9A-Za-z]+").match
_CONTINUES, _BEGINS = 0x80, 0xC0
"""Bytes of UTF-8 that are no character's first are between the two."""


class Found(NamedTuple):
    """A match in the whole of a text. `order`: of its pattern."""

    start: int
    end: int
    order: int


class Search:
    """`found`: matches that are decided, until somebody takes them."""

    __slots__ = ("_bound", "_part", "_patterns", "_places", "_text", "_text_at", "found")

    def __init__(self, patterns: Sequence[Pattern], bound: int = BOUND) -> None:
        self._patterns = patterns
        self._bound = bound
        self._places = [0] * len(patterns)
        """Where each goes on. All of its matches that begin before are decided."""
        self._part = b""
        """The beginning of a character, which no pattern matches before all of it is here."""
        self._text = b""
        self._text_at = 0
        """Where `_text` begins in the whole."""
        self.found: list[Found] = []

    def feed(self, data: bytes, is_end: bool) -> Generator[None, None, int]:
        """Yields between pieces of work. Answers up to where everything is decided."""
        data = self._part + data
        end = len(data) if is_end else _whole_characters(data)
        self._text, self._part = self._text + data[:end], data[end:]
        for order in range(len(self._patterns)):
            yield from self._look(order, is_end)
        return self.decided

    @property
    def size(self) -> int:
        return self._text_at + len(self._text)

    @property
    def fed(self) -> int:
        """Bytes of the text that have come."""
        return self.size + len(self._part)

    @property
    def decided(self) -> int:
        return min(self._places, default=self.size)

    def text(self, start: int, end: int) -> bytes:
        """Of what is not forgotten."""
        return self._text[start - self._text_at : end - self._text_at]

    def forget(self, until: int) -> None:
        """The text before is not needed any more."""
        start = until - CONTEXT - self._text_at
        if start > CONTEXT:
            self._text = self._text[start:]
            self._text_at += start

    def _look(self, order: int, is_end: bool) -> Generator[None, None, None]:
        pattern, base, text = self._patterns[order], self._text_at, self._text
        size, here = len(text), self._places[order] - base
        waiting = size if is_end else self._waiting(pattern, here)
        """From here on a match may still begin that cannot be seen yet."""
        count, work, bound = 0, 0, pattern.bound or self._bound
        while here < size:
            seen = min(size, here + 2 * bound)
            count, work = count + 1, work + (seen - here) * pattern.price
            if count == _TURN or work > _WORK:
                yield
                count, work = 0, 0
            start, end = pattern.find(text, here, seen)
            if seen < size and not here <= start <= here + bound:
                here = self._after_nothing(here, start, bound)
                continue
            if waiting < here:
                waiting = self._waiting(pattern, here)
            if start < 0 or waiting <= start:
                here = waiting
                break
            if end + pattern.after > size and not is_end:
                here = start
                break
            span = self._fitting(pattern, start, end)
            if span is None:
                here = _behind(text, start, pattern.check is not None)
            else:
                here = span[1]
                self.found.append(Found(base + start, base + here, order))
        self._places[order] = base + min(here, size)
        yield

    def _after_nothing(self, here: int, start: int, bound: int) -> int:
        """Where to go on after a search of twice `bound` bytes: nothing that begins in the first half fits. So what a
        search costs does not depend on how long the text is behind it."""
        if start >= 0:
            return start
        here += bound
        while _CONTINUES <= self._text[here] < _BEGINS:
            here -= 1
        return here

    def _waiting(self, pattern: Pattern, here: int) -> int:
        text, size = self._text, len(self._text)
        from_here = max(here, size - (pattern.bound or self._bound) - _CHARACTER)
        while from_here > here and _CONTINUES <= text[from_here] < _BEGINS:
            from_here -= 1
        return from_here if pattern.alive is None else pattern.alive(text, from_here, size)[0]

    def _fitting(self, pattern: Pattern, start: int, end: int) -> Span | None:
        """The match, or what it may have of it; None: it does not count."""
        bound = pattern.bound or self._bound
        if end - start > bound:
            cut = start + bound
            while _CONTINUES <= self._text[cut] < _BEGINS:
                cut -= 1
            start, end = pattern.begins(self._text, start, cut)
        if end <= start or (pattern.check is not None and not pattern.check(self._text, start, end)):
            return None
        return start, end


def _whole_characters(data: bytes) -> int:
    """Up to where UTF-8 has whole characters; what is no UTF-8 counts as whole."""
    for back in range(1, min(_CHARACTER, len(data) + 1)):
        byte = data[-back]
        if byte >= _BEGINS:
            return len(data) - back if back < _length(byte) else len(data)
        if byte < _CONTINUES:
            break
    return len(data)


def _length(first: int) -> int:
    """Of a character that begins so (RFC 3629 3)."""
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _behind(text: bytes, start: int, words: bool) -> int:
    """Where to go on behind a place where nothing begins that counts: after the word or number where a builtin pattern
    looked for one, whose matches begin with these; else after one character."""
    if words and (found := _word(text, start)) is not None:
        return found.end()
    start += 1
    while start < len(text) and _CONTINUES <= text[start] < _BEGINS:
        start += 1
    return start
