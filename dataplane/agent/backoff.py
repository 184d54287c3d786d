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
