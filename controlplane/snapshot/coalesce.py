"""When to publish: at once after a quiet moment, otherwise together with what follows.

The rule: a change that comes after 10 ms without any is published immediately (the leading edge). One that comes sooner
waits until changes pause for 10 ms, but never longer than 1 s. Of several changes to one resource only the last one is
published. While something is pending that looks unfinished to the caller, all of it waits for what may complete it, 50
ms at most. The caller owns the timer; this room only says how long it should run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from controlplane.snapshot.snapshots import Change

QUIET: Final = 0.010
LONGEST: Final = 1.0
HOLD: Final = 0.050


def _never(_change: Change) -> bool:
    return False


class Coalescer:
    """Changes that wait for publication. `clock` gives monotonic seconds."""

    def __init__(
        self,
        clock: Callable[[], float],
        quiet: float = QUIET,
        longest: float = LONGEST,
        is_unfinished: Callable[[Change], bool] = _never,
    ) -> None:
        self._clock = clock
        self._is_unfinished = is_unfinished
        self._unfinished: set[tuple[str, str, str]] = set()
        self._held_until = math.inf
        self._quiet = quiet
        self._longest = longest
        self._pending: dict[tuple[str, str, str], bytes | None] = {}
        self._latest = -math.inf
        self._due = math.inf
        self._limit = math.inf

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, changes: Iterable[Change]) -> None:
        """Take changes in. Ask `wait` for the time of publication afterwards; it may have moved."""
        changes = tuple(changes)
        if not changes:
            return
        now = self._clock()
        if not self._pending:
            self._limit = now + self._longest
        leading = not self._pending and now - self._latest >= self._quiet
        self._latest = now
        self._due = now if leading else min(now + self._quiet, self._limit)
        self._pending.update(((gateway, type_url, name), content) for gateway, type_url, name, content in changes)
        self._hold(changes, now)

    def _hold(self, changes: Iterable[Change], now: float) -> None:
        """Wait from the first unfinished change on; more of them do not prolong it."""
        had_any = bool(self._unfinished)
        for change in changes:
            (self._unfinished.add if self._is_unfinished(change) else self._unfinished.discard)(change[:3])
        if self._unfinished:
            self._held_until = self._held_until if had_any else now + HOLD
            self._due = min(max(self._due, self._held_until), self._limit)

    def wait(self) -> float | None:
        """Seconds until the pending changes should be published, 0 for now, None when nothing is pending."""
        return max(0.0, self._due - self._clock()) if self._pending else None

    def take(self) -> tuple[Change, ...]:
        """The pending changes, one per resource, for `Snapshots.apply`; afterwards nothing is pending."""
        taken = tuple((*key, content) for key, content in self._pending.items())
        self._pending.clear()
        self._unfinished.clear()
        return taken
