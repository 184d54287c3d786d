"""Whether a regular expression has one way to read a text: at each character at most one of its places goes on.

Of such a pattern RE2 keeps one place at a time, however large the numbers of its repetitions are. All others it may
have to follow at many places at once (Brueggemann-Klein and Wood, One-Unambiguous Regular Languages, 1998). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from gatewright.regexes import tree
from gatewright.regexes.tree import Unknown

MOST: Final = 4096
"""Places that are looked at, and steps from one to another for each of them."""
_STEPS: Final = 32 * MOST
_BEYOND: Final = 1 << 128
"""The bit of all characters that are not ASCII. Of a class, the lower ones are those of the characters in it."""


def largest(pattern: str) -> int | None:
    """RE2's instructions for the largest place of a pattern that has one way, matched against the whole of a text.
    None: it has several, or their number is not known. `pattern`: one that RE2 takes."""
    known = tree.read(pattern)
    if known is None:
        return None
    places = _Places("(?is)" if known.ignores_case else "(?s)")
    try:
        first = places.of(known.root).first
    except (Unknown, RecursionError):
        return None
    return places.largest if all(map(places.are_apart, (first, *places.next))) else None


class _Ends(NamedTuple):
    """Of a part: places where it begins and ends, and whether it matches the empty text."""

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    is_empty: bool = True


class _Places:
    """Places in the order in which they are met, and those that come next after each."""

    def __init__(self, flags: str) -> None:
        self._flags = flags
        self._classes: list[int] = []
        self._steps = 0
        self.largest = 0
        """Instructions."""
        self.next: list[list[int]] = []

    def are_apart(self, places: Iterable[int]) -> bool:
        """Whether no character is one of two of these."""
        seen = 0
        for place in dict.fromkeys(places):
            if seen & self._classes[place]:
                return False
            seen |= self._classes[place]
        return True

    def of(self, node: tree.Node) -> _Ends:
        """Enter the places of a part. Raises `Unknown` where there are too many."""
        if isinstance(node, tree.One):
            return self._one(node.text)
        if isinstance(node, tree.Choice):
            return _either([self.of(row) for row in node.rows])
        if isinstance(node, tree.Row):
            ends = _Ends()
            for part in node.parts:
                ends = self._joined(ends, self.of(part))
            return ends
        assert isinstance(node, tree.Repeat)
        return self._repeated(node)

    def _one(self, text: str) -> _Ends:
        if len(self._classes) == MOST:
            raise Unknown
        characters, size = _class(text, self._flags)
        self.largest = max(self.largest, size)
        self._classes.append(characters)
        self.next.append([])
        here = (len(self._classes) - 1,)
        return _Ends(here, here, False)

    def _repeated(self, node: tree.Repeat) -> _Ends:
        """Two represent more: a third one adds no other way than the second."""
        if node.most == 0:
            return _Ends()
        least = min(node.least, 2 if node.most == node.least else 1)
        is_endless = node.most == tree.FOR_EVER
        most = max(least, 1) if is_endless else min(node.most, 2)
        rest = _Ends()
        for count, one in reversed([*enumerate([self.of(node.part) for _ in range(most)])]):
            if is_endless and count == most - 1:
                self._follow(one.last, one.first)
            rest = self._joined(one, rest)
            if count >= least:
                rest = rest._replace(is_empty=True)
        return rest

    def _joined(self, before: _Ends, after: _Ends) -> _Ends:
        self._follow(before.last, after.first)
        return _Ends(
            (*before.first, *after.first) if before.is_empty else before.first,
            (*before.last, *after.last) if after.is_empty else after.last,
            before.is_empty and after.is_empty,
        )

    def _follow(self, places: Iterable[int], after: tuple[int, ...]) -> None:
        for place in places:
            self._steps += len(after)
            if self._steps > _STEPS:
                raise Unknown
            self.next[place] += after


def _either(rows: list[_Ends]) -> _Ends:
    return _Ends(
        tuple([place for row in rows for place in row.first]),
        tuple([place for row in rows for place in row.last]),
        any(row.is_empty for row in rows),
    )


@lru_cache(maxsize=1024)
def _class(text: str, flags: str) -> tuple[int, int]:
    """The characters that a place takes, as bits, and RE2's instructions for it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(f"{flags}{text}".encode(), options)
    except re2.error:
        raise Unknown from None
    found = sum(1 << code for code in range(128) if compiled.fullmatch(bytes((code,))) is not None)
    if compiled.search(_beyond()) is not None:
        found |= _BEYOND
    return found, compiled._regexp.ProgramSize()


@lru_cache(maxsize=1)
def _beyond() -> bytes:
    """Characters that are not ASCII, in UTF-8: the first three planes, as none of the others has letters of its own."""
    return "".join(chr(code) for code in range(128, 0x30000) if not 0xD800 <= code < 0xE000).encode()
