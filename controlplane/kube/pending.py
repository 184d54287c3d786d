"""What is to be worked on, and when: keys, each at most once at a time, again after a failure with growing pauses.
Pure: what happens and what time it is are arguments."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

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
    """`random` draws uniformly from [0, 1)."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._entries: dict[K, _Entry] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = itertools.count()
        self._random = random

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
        """None: there is nothing to do."""
        while self._heap:
            due, _, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.due == due and not entry.is_under_way:
                return due
            heapq.heappop(self._heap)
        return None

    def take(self, now: float) -> K | None:
        """A key that is due; it is under way from now on."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        entry = self._entries[key]
        entry.is_under_way, entry.is_wanted = True, False
        return key

    def done(self, key: K, now: float) -> None:
        """The work went well."""
        entry = self._entries[key]
        if entry.is_wanted:
            self._again(key, entry, now)
            entry.failures = 0
        else:
            del self._entries[key]

    def failed(self, key: K, now: float) -> float:
        """The answer is in how many seconds it is tried again."""
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
