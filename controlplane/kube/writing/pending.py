"""What is to be worked on, and when: keys, each at most once at a time, again after a failure with growing pauses.
Namespaces take turns, and each has a share of those who work. Pure: what happens and what time it is are arguments."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from controlplane.fair import FairQueue

K = TypeVar("K")

FIRST_WAIT, LONGEST_WAIT = 0.2, 60.0
"""Seconds until work that failed is tried again, doubled each time; up to half of it is taken off at random."""
_MOST_DOUBLINGS: Final = 10


@dataclass(slots=True)
class _Entry:
    due: float
    failures: int = 0
    is_under_way: bool = False
    is_wanted: bool = field(init=False)
    """While it is under way: something is new."""


class Pending(Generic[K]):
    """`random` draws uniformly from [0, 1). `namespace` says whose a key is; `most`: keys of one that are under way at
    a time, so that what takes long for one does not delay others."""

    def __init__(
        self, random: Callable[[], float], namespace: Callable[[K], str] = lambda _: "", most: int | None = None
    ) -> None:
        self._entries: dict[K, _Entry] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = itertools.count()
        self._random = random
        self._namespace, self._most = namespace, most
        self._ready: FairQueue[K] = FairQueue(namespace)
        """Those that are due."""
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def want(self, key: K, due: float) -> None:
        """Something of the key is new: it is worked on then, also where an earlier failure would have it wait."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(due)
        elif entry.is_under_way:
            entry.is_wanted = True
            return
        else:
            entry.due = min(entry.due, due)
        self._push(key)

    def next_due(self) -> float | None:
        """None: there is nothing to do, or something has to be done first."""
        if self._ready.has(self._may):
            return -math.inf
        return self._next()

    def _next(self) -> float | None:
        """Of those that were not due."""
        while self._heap:
            due, _, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.due == due and not entry.is_under_way and key not in self._ready:
                return due
            heapq.heappop(self._heap)
        return None

    def take(self, now: float) -> K | None:
        """A key that is due; it is under way from now on."""
        while (due := self._next()) is not None and due <= now:
            self._ready.put(heapq.heappop(self._heap)[2])
        key = self._ready.take(self._may)
        if key is not None:
            entry = self._entries[key]
            entry.is_under_way, entry.is_wanted = True, False
            self._under_way[self._namespace(key)] += 1
        return key

    def _may(self, namespace: str) -> bool:
        return self._most is None or self._under_way[namespace] < self._most

    def _ended(self, key: K) -> None:
        namespace = self._namespace(key)
        self._under_way[namespace] -= 1
        if not self._under_way[namespace]:
            del self._under_way[namespace]

    def done(self, key: K, now: float) -> None:
        """The work went well."""
        self._ended(key)
        entry = self._entries[key]
        if entry.is_wanted:
            self._again(key, entry, now)
            entry.failures = 0
        else:
            del self._entries[key]

    def failed(self, key: K, now: float) -> float:
        """The answer is in how many seconds it is tried again."""
        self._ended(key)
        entry = self._entries[key]
        longest = min(FIRST_WAIT * 2.0 ** min(entry.failures, _MOST_DOUBLINGS), LONGEST_WAIT)
        wait = longest * (1 - self._random() / 2)
        entry.failures += 1
        self._again(key, entry, now + wait)
        return wait

    def _again(self, key: K, entry: _Entry, due: float) -> None:
        entry.is_under_way, entry.due = False, due
        self._push(key)

    def _push(self, key: K) -> None:
        heapq.heappush(self._heap, (self._entries[key].due, next(self._numbers), key))
