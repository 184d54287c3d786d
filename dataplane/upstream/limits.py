"""How much a backend is asked at a time (`backend.limits`), by all workers of a proxy together.

Counts are in the memory that workers share (`link/loads`): each adds to its own, and compares the sum. Two that look at
the same moment may both find that one more fits: a limit is overstepped by at most one for each further worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from dataplane.link.loads import Loads


IDLE_TIMEOUT: Final = 90.0
"""Seconds that an unused connection to an endpoint is kept, where no policy says it."""
MAX_PENDING: Final = 1024
"""Requests that wait for a connection of a backend with `maxConnections`, where no policy says it; of these each client
has its share."""


class Quota(NamedTuple):
    """What limits say about the connections to one backend (`upstream/gate`). Part of the `settings.Transport` of
    its connections, so that they are shared with no other backend; None: there is no limit."""

    backend: str
    """Its key."""
    connections: int | None = None
    """Open, or being opened."""
    pending: int | None = None
    """Requests that wait for one."""
    idle: float = IDLE_TIMEOUT
    """Seconds that one is kept without a request."""
    age: float | None = None
    """Seconds after which one takes no further request."""
    has_shares: bool = False
    """A client has no more than its share of `pending`: no policy has said how many may wait for this backend."""


class Limits(NamedTuple):
    """The limits of one policy; None: there is none."""

    requests: int | None = None
    """In flight."""
    retry_budget: int | None = None
    """Requests that are tried again, in percent of those in flight."""
    connections: int | None = None
    """Open, or being opened."""
    pending: int | None = None
    """Requests that wait for a connection."""
    idle: float | None = None
    """Seconds that a connection is kept without a request."""
    age: float | None = None
    """Seconds after which a connection takes no further request."""

    @property
    def counts_requests(self) -> bool:
        return self.requests is not None or self.retry_budget is not None

    def quota(self, backend: str) -> Quota | None:
        """What of it is about the connections to the backend with this key; None: nothing."""
        if (self.connections, self.pending, self.idle, self.age) == (None, None, None, None):
            return None
        is_default = self.pending is None and self.connections is not None
        pending = MAX_PENDING if is_default else self.pending
        return Quota(backend, self.connections, pending, self.idle or IDLE_TIMEOUT, self.age, is_default)


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
