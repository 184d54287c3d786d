"""Deadlines by a coarse sweep: one timer for all of them, instead of one per request.

A deadline is a slot in a bucket of `STEP` seconds; the one timer is set for the earliest bucket that has any. Setting
one costs a dictionary look-up and an append, cancelling one an assignment.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

STEP = 0.02
"""Seconds: how late a deadline may fire."""


class Deadline:
    """A moment at which `fire(exchange)` is called unless `cancel` came first."""

    __slots__ = ("fire", "subject")

    def __init__(self, fire: Callable[[Any], None], subject: Any) -> None:
        self.fire = fire
        self.subject = subject

    def cancel(self) -> None:
        self.subject = None


class Deadlines:
    """`clock` gives monotonic seconds; `call_at(seconds, function)` is the loop's, on the same clock."""

    def __init__(self, clock: Callable[[], float], call_at: Callable[[float, Callable[[], None]], Any]) -> None:
        self.clock = clock
        self.call_at = call_at
        self._buckets: dict[int, list[Deadline]] = {}
        self._order: list[int] = []
        self._armed = 0
        self._timer: Any = None

    def add(self, seconds: float, fire: Callable[[Any], None], subject: Any) -> Deadline:
        """Call `fire(subject)` in `seconds` (at most `STEP` later)."""
        number = int((self.clock() + seconds) / STEP) + 1
        deadline = Deadline(fire, subject)
        bucket = self._buckets.get(number)
        if bucket is None:
            self._buckets[number] = [deadline]
            heapq.heappush(self._order, number)
            self._arm()
        else:
            bucket.append(deadline)
        return deadline

    def _arm(self) -> None:
        if not self._order or self._order[0] == self._armed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = self._order[0]
        self._timer = self.call_at(self._armed * STEP, self.sweep)

    def sweep(self) -> None:
        """Fire what is due."""
        now = self.clock() + STEP / 2  # timers may come a little early
        self._armed, self._timer = 0, None
        while self._order and self._order[0] * STEP <= now:
            for deadline in self._buckets.pop(heapq.heappop(self._order)):
                subject, deadline.subject = deadline.subject, None
                if subject is not None:
                    deadline.fire(subject)
        self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._buckets.clear()
        self._order.clear()
