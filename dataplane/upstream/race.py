"""Two connections at a time where endpoints are of both IP families, so that a family that does not work delays no
request for long (Happy Eyeballs, RFC 8305).

The endpoint that was chosen is tried first. When it is not connected after `DELAY` seconds, or fails, one of the other
family is tried beside it; the first that is connected has the request. The other one is kept for later requests. Where
all endpoints are of one family nothing of this is made. `Race` is about connections of HTTP/1.1; `StreamRace` about the
first ones of HTTP/2 to an endpoint, which all who wait for a stream share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dataplane.upstream import balance

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.upstream.connections import Pooled
    from dataplane.upstream.endpoint import Endpoint, Lease, Pool
    from dataplane.upstream.opening import Opens, OpensStreams

DELAY: Final = 0.25
"""Seconds that the first one has for itself (RFC 8305 5, Connection Attempt Delay)."""
LOOKS: Final = 256
"""Endpoints of which one of the other family is looked for."""


def of_other_family(endpoint: Endpoint | None, endpoints: Sequence[Endpoint]) -> Endpoint | None:
    """One of `endpoints` whose IP family is not that of `endpoint`; None: there is none."""
    if endpoint is None or len(endpoints) < 2 or endpoint.unix_path:
        return None
    is_v6 = ":" in endpoint.address
    return next((each for each in islice(endpoints, LOOKS) if (":" in each.address) != is_v6), None)


def _beside(opens: Opens, pool: Pool, second: Endpoint) -> Pool:
    """The pool of `second` that is as `pool`."""
    if pool.transport is None:
        return second
    found = second.pool(pool.transport)
    if pool.transport.client is not None:
        opens.belongs(found)
    return found


class Race:
    """One connection for `holder`, unless its lease is over by then."""

    __slots__ = ("_causes", "_end", "_holder", "_is_over", "_number", "_opens", "_pools", "_second")

    def __init__(
        self, opens: Opens, holder: Lease, pool: Pool, second: Endpoint, end: Callable[[Pooled | None, str], None]
    ) -> None:
        """`pool`: of the endpoint that the holder has. `second`: of the other family. `end` gets the outcome,
        once, while the lease goes on; `holder.endpoint` is by then the one that is connected."""
        self._opens, self._holder, self._number, self._end = opens, holder, holder.lease, end
        self._second: Endpoint | None = second
        self._pools = pool, _beside(opens, pool, second)
        self._causes: list[str] = []
        self._is_over = False

    def begin(self) -> None:
        self._opens.later(DELAY, self._begin_second)
        self._opens.connect(self._pools[0], self._first_done)

    def _begin_second(self) -> None:
        """The first one is late, or has failed: whichever of both is noticed first counts."""
        if not self._is_over and self._second is not None and self._holder.lease == self._number:
            pool, second = self._pools[1], self._second
            self._second = None
            self._opens.connect(pool, lambda up, cause: self._second_done(second, up, cause))

    def _first_done(self, up: Pooled | None, cause: str) -> None:
        if self._is_missed(up):
            return
        if up is not None:
            self._finish(up, "")
        elif self._second is not None:
            self._causes.append(cause)
            self._begin_second()
        else:
            self._failed(cause)

    def _second_done(self, second: Endpoint, up: Pooled | None, cause: str) -> None:
        if self._is_missed(up):
            return
        if up is None:
            self._failed(cause)
            return
        _goes_to(self._holder, second)
        self._finish(up, "")

    def _failed(self, cause: str) -> None:
        """One of the two: both have to."""
        self._causes.append(cause)
        if len(self._causes) == len(self._pools):
            self._finish(None, "; ".join(self._causes))

    def _is_missed(self, up: Pooled | None) -> bool:
        """It is not waited for any more."""
        if not self._is_over and self._holder.lease == self._number:
            return False
        self._is_over = True
        if up is not None:
            up.park()
        return True

    def _finish(self, up: Pooled | None, cause: str) -> None:
        self._is_over = True
        self._end(up, cause)


def _goes_to(holder: Lease, second: Endpoint) -> None:
    """The endpoint that was chosen for `holder` is late or fails: it has this one instead."""
    first: Endpoint = holder.endpoint  # type: ignore[assignment]  # it was leased
    balance.judge(first, False)  # so that the next request begins with the other one
    first.pending -= 1
    second.pending += 1
    holder.endpoint = second
    if holder.retries is not None:
        holder.retries.tried.append(second)


class StreamRace:
    """One stream of HTTP/2 for `holder`, or what is spoken instead, unless its lease is over by then.

    The winner has opened a connection that others wait for as well, so nothing is closed: the runner that is late is
    no longer wanted where it waits.
    """

    __slots__ = ("_causes", "_either", "_end", "_holder", "_is_over", "_number", "_opens", "_pools", "_second")

    def __init__(
        self,
        opens: OpensStreams,
        holder: Lease,
        pool: Pool,
        second: Endpoint,
        either: bool,
        end: Callable[[str], None],
    ) -> None:
        """`pool`: of the endpoint that the holder has. `second`: of the other family. `either`: as `SharedConnections
        .take`. `end(cause)` is called when both have failed, while the lease goes on."""
        self._opens, self._holder, self._number, self._end = opens, holder, holder.lease, end
        self._pools, self._either = (pool, _beside(opens, pool, second)), either
        self._second: Endpoint | None = second
        self._causes: list[str] = []
        self._is_over = False

    @property
    def is_on(self) -> bool:
        return not self._is_over and self._holder.lease == self._number

    def begin(self) -> None:
        self._opens.later(DELAY, self._begin_second)
        first: Endpoint = self._holder.endpoint  # type: ignore[assignment]  # it was leased
        self._run(self._pools[0], first)

    def _begin_second(self) -> None:
        """The first one is late, or has failed: whichever of both is noticed first counts."""
        second, self._second = self._second, None
        if second is not None and self.is_on:
            self._run(self._pools[1], second)

    def _run(self, pool: Pool, endpoint: Endpoint) -> None:
        shared = pool.shared or self._opens.share(pool)
        runner: Any = Runner(self, endpoint, self._holder.peer)  # Any: it is a part of a Lease
        shared.take(runner, (endpoint,), self._either)

    def won(self, endpoint: Endpoint, up: Upstream) -> None:
        self._is_over = True
        if endpoint is not self._holder.endpoint:
            _goes_to(self._holder, endpoint)
        self._holder.up = up
        self._holder.lease_ready(up)

    def lost(self, cause: str) -> None:
        if not self.is_on:
            return
        self._causes.append(cause)
        if len(self._causes) == len(self._pools):
            self._is_over = True
            self._end("; ".join(self._causes))
        else:
            self._begin_second()


class Runner:
    """Who waits for a stream in place of the holder; the part of `endpoint.Lease` that is asked of such."""

    __slots__ = ("_race", "endpoint", "leased", "peer", "retries", "up")

    def __init__(self, race: StreamRace, endpoint: Endpoint, peer: str | None) -> None:
        self._race, self.peer = race, peer
        self.endpoint: Endpoint | None = endpoint
        self.up: Upstream | None = None
        self.leased = False
        """The holder's lease counts."""
        self.retries = None

    @property
    def lease(self) -> int:
        """Another number once it is not wanted any more."""
        return 0 if self._race.is_on else -1

    def lease_ready(self, up: Upstream) -> None:
        assert self.endpoint is not None
        self._race.won(self.endpoint, up)

    def lease_failed(self, _cause: str, detail: str, _are_others: bool = False) -> None:
        self._race.lost(detail)
