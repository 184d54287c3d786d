"""Bytes as choices: what a coverage-guided fuzzer mutates, read as small decisions.

Every target that needs a script instead of raw bytes reads it through this, so that atheris, hypothesis and the replay
of the corpus mean the same by the same bytes. Bytes that are used up read as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def empty(self) -> bool:
        return self._at >= len(self._data)

    def byte(self) -> int:
        at = self._at
        self._at = at + 1
        return self._data[at] if at < len(self._data) else 0

    def below(self, limit: int) -> int:
        """0 to `limit` - 1."""
        return self.byte() % limit

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def chance(self, one_in: int) -> bool:
        """True once in `one_in`, and never when the bytes are used up."""
        return self.below(one_in) == one_in - 1

    def bytes(self, most: int) -> bytes:
        """Up to `most` raw bytes; the length comes first."""
        length = self.below(most + 1)
        start = self._at
        self._at = start + length
        return self._data[start : start + length]

    def rest(self) -> bytes:
        start, self._at = self._at, max(self._at, len(self._data))
        return self._data[start:]
