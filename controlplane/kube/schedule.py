"""When a status is written, and with which version: pure, told what happens and what time it is.

Of each object the latest counts, and one write at a time is under way. A write waits for a moment of quiet, because a
burst of routes changes one Gateway's status with each of them, and for half a second at most while the burst lasts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from controlplane.translate.statuses import StatusKey, StatusWrite

QUIET: Final = 0.025
"""Seconds without a further change of an object's status after which it is written."""
LONGEST: Final = 0.5
"""Seconds that a status waits at most."""
FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0
"""Seconds until a write that failed is tried again, doubled each time; up to half of it is taken off at random."""


@dataclass(slots=True)
class _Entry:
    write: StatusWrite
    since: float
    due: float
    failures: int = 0
    is_under_way: bool = False
    taken_for: str = ""
    """The version of the fact that the write under way was made of."""
    is_stale: bool = False
    """The object has another version than we know: whatever it is, a fact about it is on its way."""


class Schedule:
    """`random` draws uniformly from [0, 1)."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._entries: dict[StatusKey, _Entry] = {}
        self._heap: list[tuple[float, StatusKey]] = []
        self._versions: dict[StatusKey, tuple[str, str]] = {}
        """The version that a write was made for, and the one that it made."""
        self._random = random

    def __len__(self) -> int:
        return len(self._entries)

    def want(self, key: StatusKey, write: StatusWrite | None, now: float) -> None:
        """The status that an object should have, where it has another one; None: it has what it should have."""
        entry = self._entries.get(key)
        if write is None:
            if entry is not None and not entry.is_under_way:
                del self._entries[key]
            elif entry is not None:
                entry.is_stale = True
            self._versions.pop(key, None)
            return
        if entry is None:
            entry = self._entries[key] = _Entry(write, now, now + QUIET)
        else:
            if not entry.is_stale and entry.failures == 0:
                entry.due = min(now + QUIET, entry.since + LONGEST)
            elif entry.is_stale:
                entry.since, entry.due, entry.failures, entry.is_stale = now, now + QUIET, 0, False
            entry.write = write
        if not entry.is_under_way:
            heapq.heappush(self._heap, (entry.due, key))

    def next_due(self) -> float | None:
        """When the next write is due; None: there is none."""
        while self._heap:
            due, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.due == due and not entry.is_under_way and not entry.is_stale:
                return due
            heapq.heappop(self._heap)
        return None

    def take(self, now: float) -> tuple[StatusKey, StatusWrite] | None:
        """A write that is due, which is under way from now on; its version is the newest that we know."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, key = heapq.heappop(self._heap)
        entry = self._entries[key]
        entry.is_under_way, entry.taken_for = True, entry.write.resource_version
        asked, made = self._versions.get(key, ("", ""))
        version = made if entry.write.resource_version == asked else entry.write.resource_version
        return key, entry.write._replace(resource_version=version)

    def written(self, key: StatusKey, write: StatusWrite, version: str, now: float) -> None:
        """A write has succeeded, and the object has this version now."""
        entry = self._entries[key]
        asked = entry.write.resource_version
        self._versions[key] = (asked, version)
        if entry.is_stale or entry.write.body == write.body:
            del self._entries[key]
        else:  # it changed meanwhile
            self._again(key, entry, now, now + QUIET)

    def conflicted(self, key: StatusKey, now: float) -> None:
        """The object has another version than the write was made for: wait for the fact that has it, unless that came
        while the write was under way."""
        self._versions.pop(key, None)
        entry = self._entries[key]
        if entry.is_stale:  # the object has what it should have
            del self._entries[key]
        elif entry.write.resource_version != entry.taken_for:
            self._again(key, entry, now, now + QUIET)
        else:
            entry.is_under_way, entry.is_stale = False, True

    def dropped(self, key: StatusKey) -> None:
        """It cannot be written: the object is gone, or takes no such status. It is tried again when it changes."""
        self._entries.pop(key, None)
        self._versions.pop(key, None)

    def failed(self, key: StatusKey, now: float) -> float:
        """Try again; the answer is in how many seconds."""
        entry = self._entries[key]
        longest = min(FIRST_WAIT * 2.0 ** min(entry.failures, 10), LONGEST_WAIT)
        wait = longest * (1 - self._random() / 2)
        entry.failures += 1
        self._again(key, entry, now, now + wait)
        return wait

    def _again(self, key: StatusKey, entry: _Entry, now: float, due: float) -> None:
        entry.is_under_way = False
        entry.since, entry.due = now, due
        heapq.heappush(self._heap, (due, key))
