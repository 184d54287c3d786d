"""When a status is written, and with which version: pure: events and the time are arguments.

Of each object the latest counts, and one write at a time is under way. A write waits for a moment of quiet, because a
burst of routes changes one Gateway's status with each of them, and for half a second at most while the burst lasts;
where nothing but counts of attached routes change, `bursts` says how long, and where somebody undoes what was written
`contests`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.fair import FairQueue
from controlplane.kube.writing.bursts import LONGEST, QUIET, Bursts, changes, has_counts, only_counts_differ
from controlplane.kube.writing.contests import Contests
from controlplane.translate.status.statuses import StatusKey, StatusWrite

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0
"""Seconds until a write that failed is tried again, doubled each time; up to half of it is taken off at random."""
LATE = 0.005
"""Seconds after which a moment of quiet is not believed: this process did something else, and may have changes to read
that came meanwhile."""
SECOND_LOOK = 0.010
"""Seconds until it is believed all the same, if nothing has changed."""


@dataclass(slots=True)
class _Entry:
    write: StatusWrite
    since: float = field(init=False)
    """When it began to wait."""
    quiet: float = field(init=False)
    longest: float = field(init=False)
    due: float = field(init=False)
    is_late: bool = field(init=False)
    """It was due when this process did something else, and waits a bit longer for that."""
    is_count: bool = field(init=False)
    """Nothing but counts changed since the last write, or since the one under way."""
    was_count: bool = field(init=False)
    """The same of the write under way."""
    failures: int = 0
    is_contested: bool = field(init=False)
    """Somebody undid it when it was written before."""
    is_under_way: bool = False
    taken_for: str = field(init=False)
    """The version of the fact that the write under way was made of."""
    is_stale: bool = False
    """The object has another version than we know: whatever it is, a fact about it is on its way. While a write is
    under way: the object has what it should have, because its new version was reported before the answer."""
    is_anew: bool = field(init=False)
    """Behind such a report another status is wanted, or the same one again."""

    @property
    def latest(self) -> float:
        """When it is due, whatever changes."""
        return self.since + self.longest

    def is_doubtful(self, now: float) -> bool:
        """Whether counts seem to be quiet only because nothing was read."""
        return not self.is_late and self.due < min(now - LATE, self.latest) and has_counts(self.write.body)

    def wait(self, now: float) -> None:
        """Since something changed now."""
        self.due, self.is_late = min(now + self.quiet, self.latest), False


class Schedule:
    """`random` draws uniformly from [0, 1)."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._entries: dict[StatusKey, _Entry] = {}
        self._heap: list[tuple[float, StatusKey]] = []
        self._ready: FairQueue[tuple[float, StatusKey]] = FairQueue(lambda ready: ready[1][1])
        """Those that are due, as they were in the heap; they count as long as nothing has changed."""
        self._versions: dict[StatusKey, list[str]] = {}
        """The newest version that was reported of an object, and those that our writes made after it, in order.
        Forgotten when the object is reported with what it should have."""
        self._bursts = Bursts()
        self._contests: Contests[StatusKey] = Contests()
        self._random = random

    def __len__(self) -> int:
        return len(self._entries)

    def want(self, key: StatusKey, write: StatusWrite | None, now: float) -> None:
        """The status that an object should have, where it has another one; None: it has what it should have."""
        entry = self._entries.get(key)
        if write is None:
            if entry is not None and entry.is_under_way:
                entry.is_stale = True
            else:
                self.dropped(key)
            return
        if entry is None:
            entry = self._entries[key] = _Entry(write)
            self._start(key, entry, write, now, is_count=self._is_count(key, write, now))
        elif entry.is_stale and entry.is_under_way:
            entry.is_stale, entry.is_anew = False, True
            self._changed(key, entry, write, now)
        elif entry.is_stale:
            entry.failures, entry.is_stale = 0, False
            self._start(key, entry, write, now, is_count=False)
        elif write.body != entry.write.body:
            self._changed(key, entry, write, now)
        entry.write = write
        if not entry.is_under_way:
            heapq.heappush(self._heap, (entry.due, key))

    def _is_count(self, key: StatusKey, write: StatusWrite, now: float) -> bool:
        """Whether a status that begins to wait differs from the one written last, not long ago, in counts alone."""
        burst = self._bursts.of(key, now)
        if burst is None or not only_counts_differ(burst.body, write.body):
            return False
        burst.note(now, changes(burst.body, write.body))
        return True

    def _start(self, key: StatusKey, entry: _Entry, write: StatusWrite, now: float, *, is_count: bool) -> None:
        """It begins to wait."""
        burst = self._bursts.of(key, now) if is_count else None
        entry.since, entry.is_count = now, burst is not None
        entry.quiet, entry.longest = (QUIET, LONGEST) if burst is None else (burst.quiet(now), burst.longest(now))
        contest = self._contests.wait(key, write.body, now)
        if contest:
            entry.quiet = entry.longest = contest
        entry.is_contested = contest > 0.0
        entry.wait(now)

    def _changed(self, key: StatusKey, entry: _Entry, write: StatusWrite, now: float) -> None:
        """Another one is wanted while it waits."""
        if entry.is_contested and write.body != entry.write.body:
            entry.is_contested, entry.quiet, entry.longest = False, QUIET, now - entry.since + LONGEST
        if write.body != entry.write.body and only_counts_differ(entry.write.body, write.body):
            burst = self._bursts.of(key, now)
            if burst is not None:
                burst.note(now, changes(entry.write.body, write.body))
                if entry.is_count:
                    entry.quiet = burst.quiet(now)
                    entry.longest = min(entry.longest, now - entry.since + burst.longest(now))
        elif entry.is_count:
            entry.is_count, entry.quiet = False, QUIET
            entry.longest = min(entry.longest, now - entry.since + LONGEST)
        if entry.failures == 0:
            entry.wait(now)

    def next_due(self) -> float | None:
        """When the next write is due; None: there is none."""
        return -math.inf if len(self._ready) else self._next()

    def _next(self) -> float | None:
        """Of those that were not due."""
        while self._heap:
            due, key = self._heap[0]
            if self._waits(key, due):
                return due
            heapq.heappop(self._heap)
        return None

    def _waits(self, key: StatusKey, due: float) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.due == due and not entry.is_under_way and not entry.is_stale

    def take(self, now: float) -> tuple[StatusKey, StatusWrite] | None:
        """A write that is due, which is under way from now on; its version is the newest that we know. Namespaces take
        turns."""
        while (ready := self._turn(now)) is not None:
            due, key = ready
            if not self._waits(key, due):
                continue
            entry = self._entries[key]
            if entry.is_doubtful(now):
                self._look_again(key, entry, now)
                continue
            entry.is_under_way, entry.taken_for = True, entry.write.resource_version
            entry.was_count, entry.is_count, entry.is_anew = entry.is_count, True, False
            return key, entry.write._replace(resource_version=self._newest(key, entry.write.resource_version))
        return None

    def _turn(self, now: float) -> tuple[float, StatusKey] | None:
        while (due := self._next()) is not None and due <= now:
            self._ready.put(heapq.heappop(self._heap))
        return self._ready.take()

    def _newest(self, key: StatusKey, reported: str) -> str:
        """The version that an object has as far as we know: one that our own write made may not be reported yet."""
        known = self._versions.get(key, [])
        known = known[known.index(reported) :] if reported in known else [reported]
        self._versions[key] = known
        return known[-1]

    def _look_again(self, key: StatusKey, entry: _Entry, now: float) -> None:
        entry.is_late, entry.due = True, min(now + SECOND_LOOK, entry.latest)
        heapq.heappush(self._heap, (entry.due, key))

    def written(self, key: StatusKey, write: StatusWrite, version: str, now: float) -> None:
        """A write has succeeded, and the object has this version now."""
        entry = self._entries[key]
        self._versions[key].append(version)
        self._contests.wrote(key, write.body, now)
        burst = self._bursts.wrote(key, write.body, entry.since, now, is_count=entry.was_count)
        if entry.is_stale:
            self.dropped(key)
        elif entry.write.body == write.body and not entry.is_anew:
            del self._entries[key]
        else:  # it changed meanwhile
            if burst is not None and entry.is_count:
                burst.changed = now
            entry.failures = 0
            self._again(key, entry, now, entry.is_count)

    def conflicted(self, key: StatusKey, now: float) -> None:
        """The object has another version than the write was made for: wait for the fact that has it, unless that came
        while the write was under way."""
        self._versions.pop(key, None)
        entry = self._entries[key]
        if entry.is_stale:  # the object has what it should have
            del self._entries[key]
        elif entry.write.resource_version != entry.taken_for:
            self._again(key, entry, now, is_count=False)
        else:
            entry.is_under_way, entry.is_stale = False, True

    def dropped(self, key: StatusKey) -> None:
        """It cannot be written: the object is gone, or takes no such status. It is tried again when it changes."""
        self._entries.pop(key, None)
        self._versions.pop(key, None)

    def failed(self, key: StatusKey, now: float) -> float | None:
        """Try again; the answer is in how many seconds. None: the object has what it should have, whatever the answer
        was."""
        entry = self._entries[key]
        if entry.is_stale:
            self.dropped(key)
            return None
        longest = min(FIRST_WAIT * 2.0 ** min(entry.failures, 10), LONGEST_WAIT)
        wait = longest * (1 - self._random() / 2)
        entry.failures += 1
        self._again(key, entry, now, is_count=False)
        entry.due = now + wait
        heapq.heappush(self._heap, (entry.due, key))
        return wait

    def _again(self, key: StatusKey, entry: _Entry, now: float, is_count: bool) -> None:
        entry.is_under_way = False
        self._start(key, entry, entry.write, now, is_count=is_count)
        heapq.heappush(self._heap, (entry.due, key))
