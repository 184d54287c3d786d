"""How long a status waits while nothing but its counts of attached routes change. Pure.

A thousand routes that are created one after the other change the status of their Gateway a thousand times. Each write
of it makes the API server, every watcher and every other controller work, so writes of counts alone become rarer the
longer they go on: at most 15 for a thousand changes, however long these last and however unevenly they come. Everything
else in a status, conditions above all, is never delayed by this.

Two things make a write of counts too many:

- Changes without end: after the first second and a half the writes that are left are spread over the time that the rest
  of a thousand changes may take, each wait longer than the one before.
- A moment without a change that is no end: the creator or this process was busy. So a write waits for a moment of quiet
  that is longer than most pauses of this burst were: as many as can be taken for its end with the writes that are left.
  The last write is kept for the end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.translate.status.statuses import StatusKey

QUIET: Final = 0.025
"""Seconds without a further change of an object's status after which it is written."""
LONGEST: Final = 0.5
"""Seconds that a status waits at most; counts alone for this long in the first 1.5 seconds of their changes."""
LONGEST_OF_COUNTS: Final = 10.0
"""Seconds that counts alone wait at most, while as many writes are left as the changes of a thousand that are left may
need."""
MOST_WRITES: Final = 15
MOST_CHANGES: Final = 1000
"""Routes attached or detached, for which there are at most so many writes."""
ENDS: Final = 0.5
"""Seconds without a change after which counts are written, whatever is left."""
OVER: Final = 2.0
"""Seconds without a change after which the next one begins anew: a creator on a busy machine may pause for one."""
QUIETS: Final = (QUIET, 0.035, 0.045, 0.075, 0.120, 0.225)
"""Moments of quiet that a write of counts may wait for, before the end of a burst."""
_COUNT: Final = "attachedRoutes"
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
    pauses: list[int] = field(default_factory=lambda: [0] * len(QUIETS))
    """Of each of `QUIETS`: times without a change that were longer, and not the end."""
    writes: int = 1
    """Of counts alone, and the one that it began with: conditions that change meanwhile take nothing from these."""

    def is_over(self, now: float) -> bool:
        return now - self.changed >= OVER

    def note(self, now: float, changes: int = 1) -> None:
        """Counts have changed."""
        pause, self.changed = now - self.changed, now
        self.changes += changes
        for index, quiet in enumerate(QUIETS):
            self.pauses[index] += pause >= quiet

    def quiet(self, now: float) -> float:
        """The shortest that will not use up the writes to spare, when as many changes again come as before, or what is
        left of a thousand: of five some two may be expected to go, of one hardly any."""
        left, more = self._left(), min(1.0, self._rest / self.changes)
        spare = left - self._expected(now)
        if spare <= 0:
            return QUIETS[-1] if left > 1 else ENDS
        counts = zip(QUIETS, self.pauses, strict=True)
        return next((quiet for quiet, count in counts if count * more <= spare * spare / 10), ENDS)

    def longest(self, now: float) -> float:
        """For a status that begins to wait now."""
        left, lasted = self._left(), now - self.began
        if not left:
            return self._rest * ENDS
        if lasted < _EVEN:
            return LONGEST
        spread = lasted * (math.pow(1 + self._rest * ENDS / lasted, 1 / left) - 1)
        share = self._rest / left * lasted / self.changes
        return max(LONGEST, min(spread, max(LONGEST_OF_COUNTS, share)))

    @property
    def _rest(self) -> int:
        """Changes that are left of a thousand."""
        return -self.changes % MOST_CHANGES

    def _left(self) -> int:
        """Writes beside the last."""
        thousands = math.ceil(self.changes / MOST_CHANGES)
        return max(0, MOST_WRITES * thousands - 1 - self.writes)

    def _expected(self, now: float) -> int:
        """Writes of a rest that goes on as before: one each time that the changes have lasted twice as long."""
        lasted = now - self.began
        rest = self._rest * lasted / self.changes
        even = math.ceil(max(0.0, _EVEN - lasted) / LONGEST)
        return even + round(math.log2(1 + rest / max(lasted, _EVEN)))


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
                self._looks.append((now + OVER, key))
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
                self._looks.append((now + OVER, key))


def has_counts(body: Json) -> bool:
    return bool(body.get("listeners"))


def only_counts_differ(one: Json, other: Json) -> bool:
    """Of two statuses of one object."""
    if one.keys() != other.keys() or not has_counts(one):
        return False
    same = all(one[name] == other[name] for name in one if name != "listeners")
    return same and _uncounted(one["listeners"]) == _uncounted(other["listeners"])


def changes(one: Json, other: Json) -> int:
    """How many routes were attached or detached at least, of two statuses that differ in counts alone."""
    counts = zip(one["listeners"], other["listeners"], strict=True)
    return max(1, *(abs(int(before.get(_COUNT, 0)) - int(after.get(_COUNT, 0))) for before, after in counts))


def _uncounted(listeners: Sequence[Json]) -> list[dict[str, Any]]:
    return [{name: part for name, part in each.items() if name != _COUNT} for each in listeners]
