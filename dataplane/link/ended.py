"""Sessions with MCP servers that were ended, as all workers of a proxy know it: numbers, in parts of memory that they
share (`parts`).

Law: a number is there as long as its group of the worker holds no eight newer ones; one that is gone is a session that
counts again, until its time is over.

A place: a number of 8 bytes; zeros where there is none.
"""

from __future__ import annotations

from typing import Final

from dataplane.link.parts import Parts

NUMBER: Final = 8


class Ended(Parts):
    """As one worker sees them; it writes its own."""

    __slots__ = ("_next",)
    SECTION, GROUPS, PLACES, PLACE = "ended", 2048, 8, NUMBER
    """16,384 sessions of each worker."""

    def __init__(self, memory: memoryview, index: int) -> None:
        super().__init__(memory, index)
        self._next: dict[int, int] = {}
        """Of groups that this life has written: the place that is next."""

    def add(self, number: bytes) -> None:
        """It was ended. `number`: 8 random bytes."""
        if number in self:
            return
        group = self._groups(number)[self._index]
        place = self._next.get(group, 0)
        self._next[group] = (place + 1) % self.PLACES
        start = group + place * NUMBER
        self._all[start : start + NUMBER] = number

    def __contains__(self, number: bytes) -> bool:
        memory, size = self._all, self._group
        for start in self._groups(number):
            group = bytes(memory[start : start + size])
            if number in group and any(group[at : at + NUMBER] == number for at in range(0, size, NUMBER)):
                return True
        return False
