"""How long a status waits while nothing but its counts of attached routes change. Pure.

A thousand routes that are created one after the other change the status of their Gateway a thousand times. Each write
of it makes the API server, every watcher and every other controller work, so writes of counts alone become rarer the
longer they go on: at most 15 for changes that last 17 seconds, however many there are and however unevenly they come.
Everything else in a status, conditions above all, is never delayed by this.

Two things make a write of counts too many:

- Changes without end: after the first second and a half a write waits for half the time that the changes have lasted.
- A moment without a change that is no end: the creator or this process was busy. So the moment of quiet that a write
  waits for is longer when few writes are left beside those that changes without end will need.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.translate.statuses import StatusKey

QUIET: Final = 0.025
"""Seconds without a further change of an object's status after which it is written."""
LONGEST: Final = 0.5
"""Seconds that a status waits at most; counts alone for this long in the first 1.5 seconds of their changes."""
LONGEST_OF_COUNTS: Final = 10.0
"""Seconds that counts alone wait at most."""
MOST_WRITES: Final = 15
"""Of counts that change for `LASTS` seconds."""
LASTS: Final = 17.0
"""Seconds of changes for which `MOST_WRITES` is promised."""
QUIET_WITH: Final = (0.5, 0.225, 0.075, QUIET)
"""How quiet it has to be before counts are written, by the number of writes that are left; more than that: the last."""
ENDS: Final = QUIET_WITH[0]
"""Seconds without a change after which the next one begins anew."""
_EVEN: Final = 3 * LONGEST
"""Seconds in which each write waits for `LONGEST`."""

Json = Mapping[str, Any]  # Any: JSON


@dataclass(slots=True)
class Burst:
    """Changes of the counts in one object's status, one soon after the other.

    Made when a status with counts was written. `body` is what was written last, so that a change can be seen to be one
    of counts alone.
    """

    began: float
    changed: float
    body: Json
    writes: int = 1
    """Of counts alone, and the one that it began with: conditions that change meanwhile take nothing from these."""

    def is_over(self, now: float) -> bool:
        return now - self.changed >= ENDS

    def quiet(self, now: float) -> float:
        return QUIET_WITH[min(self._left(now), len(QUIET_WITH) - 1)]

    def _left(self, now: float) -> int:
        """Writes that may be early: one is for the end, others for changes that go on. Every now and then there is one
        more while they last longer than any number is promised for."""
        lasted = now - self.began
        more = max(0.0, lasted - LASTS) / (LONGEST_OF_COUNTS / 2)
        return max(0, int(MOST_WRITES + more) - 1 - self.writes - _needed(lasted))

    def longest(self, now: float) -> float:
        """For a status that begins to wait now."""
        return min(max(LONGEST, (now - self.began) / 2), LONGEST_OF_COUNTS)


def _needed(lasted: float) -> int:
    """Writes from now on of counts that change without a pause for `LASTS` seconds in all."""
    even = max(0.0, _EVEN - lasted) / LONGEST
    return math.ceil(even + math.log(max(1.0, LASTS / max(lasted, _EVEN)), 1.5))


class Bursts:
    """Those that are not over, by object; how many there are is bounded by the writes of the last moments."""

    def __init__(self) -> None:
        self._bursts: dict[StatusKey, Burst] = {}
        self._looks: deque[tuple[float, StatusKey]] = deque()
        """When to see whether one is over; each once."""

    def __len__(self) -> int:
        return len(self._bursts)

    def of(self, key: StatusKey, now: float) -> Burst | None:
        """None: whatever changes now begins anew."""
        burst = self._bursts.get(key)
        return None if burst is None or burst.is_over(now) else burst

    def wrote(self, key: StatusKey, body: Json, since: float, now: float, *, is_count: bool) -> Burst | None:
        """A status was written, which had waited since then. `is_count`: for its counts alone."""
        self._look(now)
        if not has_counts(body):
            return None
        burst = self.of(key, now)
        if burst is None:
            if key not in self._bursts:
                self._looks.append((now + ENDS, key))
            burst = self._bursts[key] = Burst(since, now, body)
        burst.body = body
        burst.writes += is_count
        return burst

    def _look(self, now: float) -> None:
        while self._looks and self._looks[0][0] <= now:
            _, key = self._looks.popleft()
            if self._bursts[key].is_over(now):
                del self._bursts[key]
            else:
                self._looks.append((now + ENDS, key))


def has_counts(body: Json) -> bool:
    return bool(body.get("listeners"))


def only_counts_differ(one: Json, other: Json) -> bool:
    """Of two statuses of one object."""
    if one.keys() != other.keys() or not has_counts(one):
        return False
    same = all(one[name] == other[name] for name in one if name != "listeners")
    return same and _uncounted(one["listeners"]) == _uncounted(other["listeners"])


def _uncounted(listeners: Sequence[Json]) -> list[dict[str, Any]]:
    return [{name: part for name, part in each.items() if name != "attachedRoutes"} for each in listeners]
