"""What a controller counts for its page of metrics, and the histogram that it counts times in.

Written by the pipeline, read by `readings` at each scrape. Knows no clock and no library.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds; what is above the last is counted for itself."""


class Histogram:
    """Seconds by BUCKETS. Written by one thread."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def __repr__(self) -> str:
        return f"<Histogram of {sum(self._counts)}>"

    def observe(self, seconds: float) -> None:
        """One more; a bound belongs to its own bucket."""
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self._sum += seconds

    @property
    def sum(self) -> float:
        """All seconds."""
        return self._sum

    def cumulative(self) -> list[int]:
        """For each bucket how many took at most so long; the last is how many there are."""
        return list(accumulate(self._counts))


@dataclass(slots=True)
class Numbers:
    """Of a pipeline, since the start. `failures`: batches in which a transform failed."""

    changes: int = 0
    snapshots: int = 0
    failures: int = 0
    change_seconds: Histogram = field(default_factory=Histogram)
    acknowledge_seconds: Histogram = field(default_factory=Histogram)
