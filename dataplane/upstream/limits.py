"""How much a backend is asked at a time (`backend.limits`), by all workers of a proxy together.

Counts are in the memory that workers share (`link/loads`): each adds to its own, and compares the sum. Two that look at
the same moment may both find room for one more: a limit is overstepped by at most one for each further worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dataplane.link.loads import Loads


class Limits(NamedTuple):
    """The limits of one policy; None: there is none."""

    requests: int | None = None
    """In flight."""
    retry_budget: int | None = None
    """Requests that are tried again, in percent of those in flight."""


class Tally:
    """What is under way to one backend, and whether there may be more of it. One for each plan: the counts belong to
    the backend's key, so they outlive swaps."""

    __slots__ = ("_loads", "_requests", "_retried", "limits")

    def __init__(self, backend: str, limits: Limits, loads: Loads) -> None:
        self.limits = limits
        self._loads = loads
        self._requests = loads.rows(f"requests|{backend}".encode())
        self._retried = loads.rows(f"retried|{backend}".encode())

    def admit(self) -> bool:
        """Count a request that begins; False: it is one too many, and not counted."""
        loads, most = self._loads, self.limits.requests
        loads.count(self._requests, 1)
        if most is not None and loads.counted(self._requests) > most:
            loads.count(self._requests, -1)
            return False
        return True

    def retry(self) -> bool:
        """Count a request, which was admitted, as one that is tried again; False: that would be one too many."""
        loads, budget = self._loads, self.limits.retry_budget
        loads.count(self._retried, 1)
        if budget is not None:
            retried = loads.counted(self._retried)
            if retried > 1 and retried * 100 > budget * loads.counted(self._requests):
                loads.count(self._retried, -1)
                return False
        return True

    def ended(self, was_retried: bool) -> None:
        """An admitted request is over. `was_retried`: `retry` has counted it."""
        self._loads.count(self._requests, -1)
        if was_retried:
            self._loads.count(self._retried, -1)

    def __repr__(self) -> str:
        requests, retried = self._loads.counted(self._requests), self._loads.counted(self._retried)
        return f"Tally({requests} in flight, {retried} tried again)"
