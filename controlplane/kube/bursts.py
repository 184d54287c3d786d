"""How long a status waits while nothing but its counts of attached routes change. Pure.

A thousand routes that are created one after the other change the status of their Gateway a thousand times. Each write
of it makes the API server, every watcher and every other controller work, so writes of counts alone become rarer the
longer they go on: at most 12 for changes that last 5 seconds, 15 for 17 seconds, however many there are and however
unevenly they come. Everything else in a status, conditions above all, is never delayed by this.

Two things make a write of counts too many:

- A moment without a change that is no end: the creator or this process was busy. A write that was followed by a change
  was early; after some of those the moment of quiet that a write waits for becomes longer.
- Changes without end: after the first second and a half a write waits for half the time that the changes have lasted.
"""

from __future__ import annotations

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
QUIET_AFTER: Final = (QUIET, QUIET, QUIET, 0.075, 0.225, 0.5)
"""How quiet it has to be before counts are written, by the number of writes that were early."""
ENDS: Final = QUIET_AFTER[-1]
"""Seconds without a change after which the next one begins anew."""

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
    early: int = 0
    """Writes after a moment of quiet that was none."""
    was_quiet: bool = False
    """The last write waited for quiet, and nothing has changed since."""

    def note(self, now: float) -> None:
        """A change of counts."""
        if self.was_quiet:
            self.early = min(self.early + 1, len(QUIET_AFTER) - 1)
            self.was_quiet = False
        self.changed = now

    def is_over(self, now: float) -> bool:
        return now - self.changed >= ENDS

    @property
    def quiet(self) -> float:
        return QUIET_AFTER[self.early]

    def longest(self, now: float) -> float:
        """For a status that begins to wait now."""
        return min(max(LONGEST, (now - self.began) / 2), LONGEST_OF_COUNTS)


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

    def wrote(self, key: StatusKey, body: Json, since: float, now: float, *, was_quiet: bool) -> Burst | None:
        """A status was written, which had waited since then."""
        self._look(now)
        if not has_counts(body):
            return None
        burst = self.of(key, now)
        if burst is None:
            if key not in self._bursts:
                self._looks.append((now + ENDS, key))
            burst = self._bursts[key] = Burst(since, now, body)
        burst.body, burst.was_quiet = body, was_quiet
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
