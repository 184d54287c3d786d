"""How many requests of a kind are under way at a time, by how long their answers take. Pure: what took how long, and
what time it is, are arguments.

An API server that has time answers in the same few milliseconds however many requests it has. One that has none lets
them wait, so that more of them at a time bring nothing, and users wait behind them. What a request waited is what its
answer took beyond the quickest answer of the last minute; of all that are under way, this share waits. So the number
grows while less than half of one waits, and shrinks while more than one does.
"""

from __future__ import annotations

import math
from typing import Final

WINDOW: Final = 30.0
"""Seconds for which the quickest answer counts, and up to so many more: an API server may be elsewhere from now on."""
FEW_WAIT: Final = 0.5
MANY_WAIT: Final = 1.0
"""Requests that wait at the API server: there may be more, and there should be fewer."""


class Pace:
    """`least` and `most` that may be under way."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most
        self._width = float(least)
        self._since = -math.inf
        self._quickest = self._quickest_before = math.inf

    @property
    def width(self) -> int:
        """How many may be under way."""
        return int(self._width)

    def answered(self, took: float, now: float) -> None:
        """An answer took so many seconds."""
        if now - self._since >= WINDOW:
            self._quickest_before, self._quickest, self._since = self._quickest, took, now
        self._quickest = min(self._quickest, took)
        quickest = min(self._quickest, self._quickest_before)
        waiting = self._width * (1.0 - quickest / took) if took > 0.0 else 0.0
        if waiting < FEW_WAIT:
            self._width = min(self._width + 1.0 / self._width, float(self._most))
        elif waiting > MANY_WAIT:
            self._width = max(self._width - 1.0 / self._width, float(self._least))
