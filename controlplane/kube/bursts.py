"""How long a status waits while nothing but its counts of attached routes change. Pure.

A thousand routes that are created one after the other change the status of their Gateway a thousand times. Each write
of it makes the API server, every watcher and every other controller work, so writes of counts alone become rarer the
longer they go on: at most 15 for a thousand changes, however long these last and however unevenly they come. Everything
else in a status, conditions above all, is never delayed by this.

Two things make a write of counts too many:

- Changes without end: after the first second and a half the writes that are left are spread over the time that the rest
  of a thousand changes may take, each wait longer than the one before.
- A moment without a change that is no end: the creator or this process was busy. So the moment of quiet that a write
  waits for is longer when few writes are left. The last one is kept for the end.
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
"""Seconds that counts alone wait at most, while as many writes are left as the changes of a thousand that are left may
need."""
MOST_WRITES: Final = 15
MOST_CHANGES: Final = 1000
"""Changes of counts, for which there are at most so many writes."""
ENDS: Final = 0.5
"""Seconds without a change after which the next one begins anew."""
QUIET_WITH: Final = ((5, QUIET), (3, 0.035), (1, 0.045), (0, 0.225))
"""How many writes can be spared, beside those that changes which go on will need, and how quiet it has to be then before
counts are written. With fewer: as quiet as at the end."""
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
    changes: int = 1
    writes: int = 1
    """Of counts alone, and the one that it began with: conditions that change meanwhile take nothing from these."""

    def is_over(self, now: float) -> bool:
        return now - self.changed >= ENDS

    def note(self, now: float) -> None:
        """A count has changed."""
        self.changed = now
        self.changes += 1

    def quiet(self, now: float) -> float:
        spare = self._left() - self._expected(now)
        return next((quiet for writes, quiet in QUIET_WITH if spare >= writes), ENDS)

    def longest(self, now: float) -> float:
        """For a status that begins to wait now."""
        left, lasted = self._left(), now - self.began
        if not left:
            return self._rest * ENDS
        if lasted < _EVEN:
            return LONGEST
        spread = lasted * ((1 + self._rest * ENDS / lasted) ** (1 / left) - 1)
        share = self._rest / left * lasted / self.changes
        return max(LONGEST, min(spread, max(LONGEST_OF_COUNTS, share)))

    @property
    def _rest(self) -> int:
        """Changes that are left of a thousand."""
        return MOST_CHANGES - self.changes % MOST_CHANGES

    def _left(self) -> int:
        """Writes beside the last."""
        allowed = MOST_WRITES * max(MOST_CHANGES, self.changes) // MOST_CHANGES
        return max(0, allowed - 1 - self.writes)

    def _expected(self, now: float) -> int:
        """Writes of a rest that goes on as before: one each time that the changes have lasted twice as long."""
        lasted = now - self.began
        rest = self._rest * lasted / self.changes
        even = math.ceil(max(0.0, _EVEN - lasted) / LONGEST)
        return even + math.ceil(math.log2(1 + rest / max(lasted, _EVEN)))


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
