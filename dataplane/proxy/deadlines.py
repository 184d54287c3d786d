"""Deadlines by a coarse sweep: one timer for all of them, instead of one per request.

Who has deadlines (a downstream connection) keeps them itself and asks to be looked at when the next one is due; it asks
again only for an earlier moment. A request whose deadline lies behind one that is asked for already costs a comparison.
A deadline keeps no object alive: of a connection that is closed, minutes before, only a weak reference is left.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from typing import Any, Protocol
from weakref import ref

log = logging.getLogger("dataplane.proxy")

STEP = 0.02
"""Seconds: how late a deadline may be noticed."""

NEVER = float("inf")


class Sleeper(Protocol):
    def wake(self, now: float) -> None:
        """A moment that was asked for is here (or was superseded by an earlier one: then there is nothing to do). `now`
        is never before that moment, also where the timer came a little early."""


class Deadlines:
    """`clock` gives monotonic seconds; `call_at(seconds, function)` is the loop's, on the same clock."""

    def __init__(self, clock: Callable[[], float], call_at: Callable[[float, Callable[[], None]], Any]) -> None:
        self.clock = clock
        self.call_at = call_at
        self._buckets: dict[int, list[ref[Sleeper]]] = {}
        self._order: list[int] = []
        self._armed = 0
        self._swept = 0
        """Number of the last bucket that was emptied: nothing is entered there again. A sleeper woken in the middle of
        a step and asks for the rest of it would be woken for ever."""
        self._timer: Any = None

    def wake_at(self, moment: float, sleeper: Sleeper) -> None:
        """Call `sleeper.wake` at `moment` (monotonic seconds; at most `STEP` later, two for one woken in the
        same step)."""
        number = max(int(moment / STEP), self._swept) + 1
        bucket = self._buckets.get(number)
        if bucket is None:
            self._buckets[number] = [ref(sleeper)]
            heapq.heappush(self._order, number)
            self._arm()
        else:
            bucket.append(ref(sleeper))

    def _arm(self) -> None:
        if not self._order or self._order[0] == self._armed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = self._order[0]
        self._timer = self.call_at(self._armed * STEP, self.sweep)

    def sweep(self) -> None:
        """Wake the sleepers that are due."""
        now = self.clock()
        due = now + STEP / 2  # timers may come a little early
        self._armed, self._timer = 0, None
        while self._order and self._order[0] * STEP <= due:
            number = self._swept = heapq.heappop(self._order)
            woken = max(now, number * STEP)
            for known in self._buckets.pop(number):
                sleeper = known()
                if sleeper is not None:
                    self._wake(sleeper, woken)
        self._arm()

    def _wake(self, sleeper: Sleeper, woken: float) -> None:
        try:
            sleeper.wake(woken)
        except Exception:  # a bug in Gatewright must not keep the deadlines of others
            log.exception("a deadline of %s failed", type(sleeper).__name__)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._buckets.clear()
        self._order.clear()
