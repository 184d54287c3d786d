"""When to publish the states of each Gateway: at once after a quiet moment, otherwise together with what follows.

The rule, for each Gateway by itself: a change that comes after 10 ms without any is published immediately (the leading
edge). One that comes sooner waits until this Gateway's changes pause for 10 ms, but never longer than 50 ms. It waits
less where its proxies are quicker than that: when all of them have answered the state before, and have rested for as
long as that took. So a change that follows another one by some milliseconds is not late, proxies spend half of their
time on states at most, and many proxies, or busy ones, get few states in a burst.

Of several changes to one resource only the last one is published. While something is pending that looks unfinished to
the caller, all of its Gateway waits for what may complete it, 50 ms at most; a leading edge that waited for that alone
is published when it is there. No Gateway waits for another. The caller owns the timer; this room only says how long it
should run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable
from typing import Final

from controlplane.snapshot.snapshots import Change

QUIET: Final = 0.010
ANSWERED: Final = 2
"""From one state to the next, as a multiple of the time in which all proxies answered it."""
LONGEST: Final = 0.050
"""Also how long an unfinished change holds its Gateway."""


Place = tuple[str, str, str]
"""Gateway, type URL, resource name."""


class Coalescer:
    """Changes that wait for publication, by Gateway. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        """Gateways that have pending changes, or had a change within the last QUIET seconds."""

    def __len__(self) -> int:
        return sum(len(each.pending) for each in self._waiting.values())

    def add(self, changes: Iterable[Change], unfinished: Container[Place] = frozenset()) -> None:
        """Take changes in; `unfinished` are those that another change is likely to follow which they need. Ask `wait`
        for the time of publication afterwards; it may have moved."""
        by_gateway: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            by_gateway[change[0]].append(change)
        now = self._clock()
        for gateway, own in by_gateway.items():
            waiting = self._waiting.get(gateway)
            if waiting is None:
                waiting = self._waiting[gateway] = _Waiting()
            waiting.add(own, now, unfinished)

    def wait(self) -> float | None:
        """Seconds until something should be published, 0 for now, None when nothing is pending."""
        due = min((each.due for each in self._waiting.values() if each.pending), default=None)
        return None if due is None else max(0.0, due - self._clock())

    def published(self, gateway: str) -> None:
        """What was taken of a Gateway is on its way to the proxies."""
        waiting = self._waiting.get(gateway)
        if waiting is not None:
            waiting.published = self._clock()

    def answered(self, gateway: str) -> None:
        """Every proxy of a Gateway has answered the state that was published last, and there are some. Ask `wait`
        again."""
        waiting = self._waiting.get(gateway)
        if waiting is not None:
            waiting.answered(self._clock())

    def holds(self, gateway: str) -> bool:
        """Whether changes of a Gateway are pending."""
        waiting = self._waiting.get(gateway)
        return waiting is not None and bool(waiting.pending)

    def take(self, *, early: bool = False) -> list[tuple[Change, ...]]:
        """The changes that are due (`early`: all), one batch for each Gateway, for `Snapshots.apply`, the
        smallest first, so that nobody waits for a big one; of each resource the last change. They are pending no more.
        """
        now = self._clock()
        batches = [each.take() for each in self._waiting.values() if each.pending and (early or each.due <= now)]
        for gateway in [name for name, each in self._waiting.items() if each.is_over(now)]:
            del self._waiting[gateway]
        return sorted(batches, key=len)


class _Waiting:
    """The pending changes of one Gateway by (gateway, type, name), and when they are `due`."""

    def __init__(self) -> None:
        self.pending: dict[tuple[str, str, str], bytes | None] = {}
        self.due = math.inf
        self._unfinished: set[tuple[str, str, str]] = set()
        self._is_leading = False
        """What is pending began after a pause."""
        self._latest = -math.inf
        self._limit = math.inf
        """When what is pending goes in any case."""
        self.published: float | None = None
        """When the batch that was taken last was; None: it is not yet."""
        self._rested = math.inf
        """When proxies have had their rest from that batch; unknown before they answer it."""

    def add(self, changes: Iterable[Change], now: float, unfinished: Container[Place]) -> None:
        if not self.pending:
            self._limit = now + LONGEST
        leading = not self.pending and now - self._latest >= QUIET
        self._is_leading = leading or (self._is_leading and bool(self.pending))
        self._latest = now
        self.due = now if leading else min(now + QUIET, self._limit, max(now, self._rested))
        had_any = bool(self._unfinished)
        for change in changes:
            self.pending[change[:3]] = change[3]
            (self._unfinished.add if change[:3] in unfinished else self._unfinished.discard)(change[:3])
        if self._unfinished:
            self.due = self._limit
        elif had_any and self._is_leading:
            self.due = now  # it would have been published when it came, and was only held for what came now

    def answered(self, now: float) -> None:
        if self.published is None or self._rested < math.inf:
            return  # it was the state before, or this one once more
        self._rested = self.published + ANSWERED * (now - self.published)
        if self.pending and not self._unfinished:
            self.due = min(self.due, max(now, self._rested))

    def take(self) -> tuple[Change, ...]:
        taken = tuple((*key, content) for key, content in self.pending.items())
        self.pending.clear()
        self._unfinished.clear()
        self.published, self._rested = None, math.inf
        return taken

    def is_over(self, now: float) -> bool:
        """Whether a new one would do the same."""
        return not self.pending and now - self._latest >= QUIET
