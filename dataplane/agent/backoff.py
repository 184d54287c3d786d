"""Growing pauses between tries. Pure: the caller sleeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """`first` seconds, doubling up to `most`; each pause is between half and all of that, by `random` (in [0, 1))."""

    first: float
    most: float
    random: Callable[[], float]
    tries: int = 0

    def next(self) -> float:
        """The pause after one more failure."""
        pause = min(self.first * 2.0 ** min(self.tries, 60), self.most)
        self.tries += 1
        return pause * (0.5 + self.random() / 2)

    def reset(self) -> None:
        """It worked."""
        self.tries = 0


class Gathering:
    """How long news are gathered before they are reported: `first` seconds, and twice as long each time while they go
    on, up to `most`. After a pause as long as the last one without any it is `first` again."""

    __slots__ = ("_backoff", "_ends")

    def __init__(self, first: float, most: float, random: Callable[[], float]) -> None:
        self._backoff = Backoff(first, most, random)
        self._ends = (0.0, 0.0)
        """When the last one ended, and how long it was."""

    def seconds(self, now: float) -> float:
        """News came, and none are being gathered: report them after so many seconds."""
        ended, lasted = self._ends
        if now > ended + lasted:
            self._backoff.reset()
        pause = self._backoff.next()
        self._ends = now + pause, pause
        return pause
