"""Who gets exchanges that have ended, at their end, before the log lets go of them: all of them (`Context.observers`),
or those of which something was noted (`Exchange.noted`, `Context.more_observers`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Observer = Callable[["Exchange", float], None]
"""Of an exchange, and the seconds that it took. It returns at once: what it makes of many is made later, in batches."""


class Counts(Protocol):
    """What observers count with (`requests.Recorder`)."""

    def count(self, metric: str, *labels: str) -> None: ...

    def count_for(self, x: Exchange, metric: str, *labels: str) -> None: ...


Makes = Callable[[Counts], Observer]
"""Makes one for a worker."""
