"""Light requests that arrive in one pass of the loop: how many of them are begun at once.

Each costs little, and none asks whether there is time for it. But thousands of connections may send one each in one
moment, and the loop hands over all that it finds readable before anything is answered. So behind the first of a pass
the share of its turn counts (`net/turns`); when that is used up, an address that has had a request since then waits
with further ones, fair by address as all who wait. Bytes are read in any case, which takes a tenth of what a request
does; those of HTTP/2 are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.link.sources import source_of

if TYPE_CHECKING:
    from dataplane.net.turns import Turns

FEW: Final = 32
"""Requests after which is looked at the time: 2 ms or so."""


class Arrivals:
    """Of one worker. Who takes a request adds one to `count`, and asks `is_late_for` where that is more than `FEW`."""

    __slots__ = ("_had", "_turn", "_turns", "count")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.count = 0
        """Requests since the last look: of this pass, or of several that were short."""
        self._turn = -1
        """The turn that `_had` is of."""
        self._had: set[object] = set()
        """Who had a request since its share was used up."""

    def is_late_for(self, address: str) -> bool:
        """More than a few requests have come, one more from this address. Whether it waits for a turn."""
        turns = self._turns
        if turns.begin() or self._turn != turns.number:
            self.count = 0
            self._turn = turns.number
            self._had.clear()
            return False
        if not turns.is_spent():
            return False
        source = source_of(address)
        if source in self._had:
            return True
        self._had.add(source)
        return False

    def __repr__(self) -> str:
        return f"Arrivals({self.count})"
