"""Counts of one exchange whose Gateway adds labels to metrics: they wait until it has ended, as the labels do.

Kept in `Exchange.measures` by `requests.Recorder`, where `frontend.metrics` says so alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from dataplane.telemetry.metric import Extra
    from dataplane.variables import ListenerFacts

MOST: Final = 256
"""Counts that wait; further ones of the same exchange are dropped: policies make far fewer."""
MOST_SETS: Final = 512
"""Different sets of label values that a worker counts apart, of all Gateways; the others are counted as `overflow`."""

Count = Callable[["Extra"], None]
"""Counts something with these further labels."""


class Measured(Protocol):
    """What is read of an exchange to count it, also by kinds of backends."""

    measures: object

    @property
    def listener(self) -> ListenerFacts | None: ...


class Measures:
    """`extra`: the labels, once they are known."""

    __slots__ = ("_waiting", "extra")

    def __init__(self) -> None:
        self.extra: Extra | None = None
        self._waiting: list[Count] = []

    def add(self, count: Count) -> None:
        """Count now, or when the exchange has ended."""
        if self.extra is not None:
            count(self.extra)
        elif len(self._waiting) < MOST:
            self._waiting.append(count)

    def record(self, extra: Extra) -> None:
        """The exchange has ended."""
        self.extra = extra
        waiting, self._waiting = self._waiting, []
        for count in waiting:
            count(extra)
