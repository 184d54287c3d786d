"""When sessions with MCP servers were used last, as all workers of a proxy know it: moments, in parts of memory that
they share (`parts`). A reader takes the latest of all.

Laws
- A place whose number is new says nothing until its moment is there: the number is written last.
- A session is there as long as its group of the worker holds no eight that were used later; whether one
  that is gone was idle is not known.

A place: a number of 8 bytes · its moment, 4 bytes: whole seconds of the system's monotonic clock, which is the same for
all processes.
"""

from __future__ import annotations

from typing import Final

from dataplane.link.parts import Parts

NUMBER: Final = 8
PLACE: Final = NUMBER + 4
_FREE: Final = bytes(NUMBER)


class Used(Parts):
    """As one worker sees them; it writes its own."""

    __slots__ = ()
    SECTION, GROUPS, PLACES, PLACE = "used", 2048, 8, PLACE
    """16,384 sessions of each worker."""

    def add(self, number: bytes, now: float) -> None:
        """It is used now. `number`: 8 random bytes."""
        memory, moment = self._all, int(now).to_bytes(4, "little")
        places = self._places(self._groups(number)[self._index])
        for at in places:
            if memory[at : at + NUMBER] == number:
                memory[at + NUMBER : at + PLACE] = moment
                return
        place = min(places, key=self._moment)
        memory[place : place + NUMBER] = _FREE
        memory[place + NUMBER : place + PLACE] = moment
        memory[place : place + NUMBER] = number

    def last(self, number: bytes) -> int | None:
        """When it was used last; None: not known."""
        found: int | None = None
        memory = self._all
        for group in self._groups(number):
            for at in self._places(group):
                if memory[at : at + NUMBER] == number:
                    seen = self._moment(at)
                    found = seen if found is None else max(seen, found)
        return found

    def _moment(self, at: int) -> int:
        """That of the place."""
        return int.from_bytes(self._all[at + NUMBER : at + PLACE], "little")
