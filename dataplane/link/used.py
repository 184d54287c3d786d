"""When sessions with MCP servers were used last, as all workers of a proxy know it: moments in memory that they share.
No message, no lock, as with those that were ended (`ended`).

Laws
- Each place has one writer: the worker of that index, or its successor. Whoever looks takes the latest of all.
- A place whose number is new says nothing until its moment is there: the number is written last.
- A session is there as long as its group of the worker holds no eight that were used later; of one that is gone nobody
  knows that it is idle.

Section "used": for each worker `GROUPS` groups of `PLACES` numbers of 8 bytes, each with a moment of 4 bytes (whole
seconds of the system's monotonic clock, which is the same for all processes).
"""

from __future__ import annotations

from typing import Final

from dataplane.link.shared import Region

SECTION: Final = "used"
GROUPS: Final = 2048
"""Groups of a worker: 16,384 sessions."""
PLACES: Final = 8
NUMBER: Final = 8
_PLACE: Final = NUMBER + 4
_GROUP: Final = PLACES * _PLACE
_WORKER: Final = GROUPS * _GROUP
_NOBODY: Final = bytes(NUMBER)


def sections(workers: int) -> dict[str, int]:
    """Sections of the region that all workers have in common, with their sizes."""
    return {SECTION: _WORKER * workers}


class Used:
    """As one worker sees them; it writes its own."""

    __slots__ = ("_all", "_own")

    def __init__(self, memory: memoryview, index: int) -> None:
        self._all = memory
        self._own = _WORKER * index

    @classmethod
    def of(cls, region: Region, index: int) -> Used:
        """Those of a proxy, for the worker of this index; local ones where a region has none."""
        try:
            return cls(region.section(SECTION), index)
        except KeyError:
            return cls.local()

    @classmethod
    def local(cls) -> Used:
        """Those of one worker, shared with nobody."""
        return cls(memoryview(bytearray(_WORKER)), 0)

    def add(self, number: bytes, now: float) -> None:
        """It is used now. `number`: 8 random bytes."""
        start = self._own + _group(number) * _GROUP
        memory, moment = self._all, int(now).to_bytes(4, "little")
        places = range(start, start + _GROUP, _PLACE)
        for at in places:
            if memory[at : at + NUMBER] == number:
                memory[at + NUMBER : at + _PLACE] = moment
                return
        place = min(places, key=self._moment)
        memory[place : place + NUMBER] = _NOBODY
        memory[place + NUMBER : place + _PLACE] = moment
        memory[place : place + NUMBER] = number

    def last(self, number: bytes) -> int | None:
        """When it was used last; None: nobody knows."""
        found: int | None = None
        memory = self._all
        for base in range(_group(number) * _GROUP, len(memory), _WORKER):
            for at in range(base, base + _GROUP, _PLACE):
                if memory[at : at + NUMBER] == number:
                    seen = self._moment(at)
                    found = seen if found is None else max(seen, found)
        return found

    def _moment(self, at: int) -> int:
        """That of the place."""
        return int.from_bytes(self._all[at + NUMBER : at + _PLACE], "little")

    def __repr__(self) -> str:
        return f"Used({len(self._all) // _WORKER} workers)"


def _group(number: bytes) -> int:
    return int.from_bytes(number[:4], "little") % GROUPS
