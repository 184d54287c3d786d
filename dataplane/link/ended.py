"""Sessions with MCP servers that were ended, as all workers of a proxy know it: numbers in memory that they share. No
message, no lock.

Laws
- Each place has one writer: the worker of that index, or its successor. Whoever looks reads those of all.
- A number is there as long as its group of the worker holds no eight newer ones; one that is gone is a session that
  counts again, until its time is over.

Section "ended": for each worker `GROUPS` groups of `PLACES` numbers of 8 bytes; zeros where there is none.
"""

from __future__ import annotations

from typing import Final

from dataplane.link.shared import Region

SECTION: Final = "ended"
GROUPS: Final = 2048
"""Groups of a worker: 16,384 sessions."""
PLACES: Final = 8
NUMBER: Final = 8
_GROUP: Final = PLACES * NUMBER
_WORKER: Final = GROUPS * _GROUP


def sections(workers: int) -> dict[str, int]:
    """Sections of the region that all workers have in common, with their sizes."""
    return {SECTION: _WORKER * workers}


class Ended:
    """As one worker sees them; it writes its own."""

    __slots__ = ("_all", "_next", "_own")

    def __init__(self, memory: memoryview, index: int) -> None:
        self._all = memory
        self._own = _WORKER * index
        self._next: dict[int, int] = {}
        """Of groups that this life has written: the place that is next."""

    @classmethod
    def of(cls, region: Region, index: int) -> Ended:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(SECTION), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Ended:
        """Those of one worker, shared with nobody."""
        return cls(memoryview(bytearray(_WORKER)), 0)

    def add(self, number: bytes) -> None:
        """It was ended. `number`: 8 random bytes."""
        if number in self:
            return
        group = _group(number)
        place = self._next.get(group, 0)
        self._next[group] = (place + 1) % PLACES
        start = self._own + group * _GROUP + place * NUMBER
        self._all[start : start + NUMBER] = number

    def __contains__(self, number: bytes) -> bool:
        start = _group(number) * _GROUP
        memory = self._all
        for base in range(start, len(memory), _WORKER):
            group = bytes(memory[base : base + _GROUP])
            if number in group and any(group[at : at + NUMBER] == number for at in range(0, _GROUP, NUMBER)):
                return True
        return False

    def __repr__(self) -> str:
        return f"Ended({len(self._all) // _WORKER} workers)"


def _group(number: bytes) -> int:
    return int.from_bytes(number[:4], "little") % GROUPS
