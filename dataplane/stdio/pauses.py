"""Growing pauses before a start that has failed is tried again. One for each cause: what one client's `initialize` does
to a server is not held against the others. Pure; the clock is given.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
"""Seconds before the next start after one that has failed."""
MOST_CAUSES: Final = 1024
"""Causes that are remembered: the one that failed longest ago is forgotten."""


class Cause(NamedTuple):
    """What was started, by digest, and a digest of what the client said at its beginning."""

    command: str
    hello: bytes = b""


class _Failure(NamedTuple):
    in_a_row: int
    until: float


class Pauses:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: OrderedDict[Cause, _Failure] = OrderedDict()

    def left(self, cause: Cause) -> float:
        """Seconds until the next start; 0: now."""
        failure = self._failures.get(cause)
        return 0.0 if failure is None else max(0.0, failure.until - self._clock())

    def failed(self, cause: Cause) -> float:
        """One more did: the pause that begins, or goes on: what was started before it failed together with that."""
        left = self.left(cause)
        if left:
            return left
        before = self._failures.pop(cause, _Failure(0, 0.0))
        pause: float = min(FIRST_PAUSE * 2**before.in_a_row, LONGEST_PAUSE)
        self._failures[cause] = _Failure(min(before.in_a_row + 1, _ENOUGH), self._clock() + pause)
        while len(self._failures) > MOST_CAUSES:
            self._failures.popitem(last=False)
        return pause

    def succeeded(self, cause: Cause) -> None:
        """All is forgiven."""
        self._failures.pop(cause, None)

    def __repr__(self) -> str:
        return f"Pauses({len(self._failures)} causes)"


_ENOUGH: Final = 16
"""Failures in a row that make the longest pause."""
