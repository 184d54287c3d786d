"""Connections to one backend where policies limit them (`backend.limits`): how many there are, who waits for one, and
when they are closed.

A `Gate` is what a worker has for one `limits.Quota`. Its counts are in the memory that workers share, so that limits
hold for the proxy: workers that look at the same moment may overstep them by one each. Requests wait in order, in this
worker. Where another worker waits for a connection that this one keeps idle, it is closed for the other's sake; the
other finds that out by looking again, `LOOK` seconds later. Backends without such limits have no gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.link.pools import CONNECTION_WAITERS
from dataplane.upstream.connecting import leave_endpoint, open_for
from dataplane.upstream.versions import EITHER, HTTP1
from dataplane.upstream.waiting import Line, Waits, source_of_lease

if TYPE_CHECKING:
    from dataplane.link.loads import Loads
    from dataplane.upstream.connections import Pooled
    from dataplane.upstream.endpoint import Endpoint, Lease, Pool, Streams
    from dataplane.upstream.limits import Quota
    from dataplane.upstream.opening import OpensStreams

LOOK: Final = 0.02
"""Seconds between two looks at what other workers have given back, or wait for."""
WAIT: Final = 10.0
"""Seconds that a request waits at most while no further connection may be opened."""
GIVE_WAY: Final = 0.05
"""Seconds between two connections that are closed for other workers while requests wait in this one."""
LOOKS: Final = 256
"""Endpoints whose connections are looked at for one request."""
SWEEP: Final = 10.0
"""Most seconds between two looks for connections that are too old, or too long without a request."""
BUSY: Final = "limits.maxConnections"


class Events(Protocol):
    """Who counts (`telemetry/requests.Recorder`)."""

    def backend_limited(self, backend: str, limit: str) -> None: ...

    def backend_load(self, backend: str, connections: int, pending: int) -> None:
        """So many more connections, and requests that wait for one."""

    def backend_connection_closed(self, backend: str, limit: str) -> None:
        """A connection was closed because of this limit."""


class Waiting(Waits, Protocol):
    """Who waits for a connection."""

    since: float
    is_counted: bool
    """It is one of those that wait, and need not be asked for once more."""

    def serve(self, gate: Gate) -> bool:
        """Take a connection, or open one; False: there is none, and none may be opened."""

    def refuse(self, detail: str) -> None:
        """It gets none: a limit does not allow for it."""


class Gate:
    """As `opening.Opens` it opens connections of HTTP/1.1 that are counted."""

    __slots__ = (
        "__weakref__",
        "_clock",
        "_connections",
        "_events",
        "_gave_way",
        "_is_looking",
        "_is_sweeping",
        "_live",
        "_loads",
        "_opening",
        "_opens",
        "_pending",
        "_pending_rows",
        "_queue",
        "_said",
        "_shared_waiting",
        "pools",
        "quota",
    )

    def __init__(
        self, quota: Quota, loads: Loads, opens: OpensStreams, clock: Callable[[], float], events: Events
    ) -> None:
        self.quota = quota
        self._loads, self._opens, self._clock, self._events = loads, opens, clock, events
        self._connections = loads.rows(f"connections|{quota.backend}".encode())
        self._pending_rows = loads.rows(f"pending|{quota.backend}".encode())
        self.pools: set[Pool] = set()
        """Whose connections these are."""
        self._live: dict[Any, float] = {}
        """Connections, with the moment from which they take no further request; 0: none."""
        self._opening = 0
        self._pending = 0
        """Requests for which a connection of HTTP/1.1, or of bytes, is being opened."""
        self._queue: Line[Waiting] = Line(CONNECTION_WAITERS, opens.full)
        self._shared_waiting = 0
        """Requests that wait for a stream."""
        self._said = (0, 0)
        """Connections and waiting requests, as shared memory has them of this gate."""
        self._is_looking = self._is_sweeping = False
        self._gave_way = -GIVE_WAY
        """When a connection was closed for others while requests waited here: they get it, if they look in time."""

    # --- requests

    def take(self, holder: Lease, pool: Pool, endpoints: Sequence[Endpoint], version: int) -> None:
        """As `lease.Leases.take`, once the endpoint is chosen, of `pool`. `endpoints`: () when it sends again."""
        self.admit(_Request(holder, pool, endpoints, version, self._clock()))

    def admit(self, waiting: Waiting) -> None:
        """Give it a connection now, or when there is one; or refuse it."""
        if not self._queue and waiting.serve(self):
            return
        if not self._may_wait(waiting):
            self._refuse(waiting, "maxPending", "" if self._left <= 0 else ": its client has its share of these")
            return
        self._events.backend_limited(self.quota.backend, "maxConnections")
        waiting.is_counted = True
        self._queue.append(waiting)
        self._say()
        self._look_soon()

    def _refuse(self, waiting: Waiting, limit: str, why: str) -> None:
        backend = self.quota.backend
        if limit == "maxPending":
            self._events.backend_limited(backend, limit)
        waiting.refuse(f"{backend}: limits.{limit}{why}")

    def _may_wait(self, waiting: Waiting) -> bool:
        """Whether there is a place to wait for it: where no policy says how many there are, in its client's share."""
        source = waiting.source if self.quota.has_shares else None
        if self._queue.may_fit(source, self._left):
            return True
        self._queue.drop_unwanted()
        self._say()
        return self._queue.fits(source, self._left)

    @property
    def _left(self) -> int:
        """Places for those who wait."""
        most = self.quota.pending
        return 1 if most is None else most - self._loads.counted(self._pending_rows)

    @property
    def takes_one_more(self) -> bool:
        """One more request may wait for a connection that is being opened."""
        return self._left > 0

    @property
    def has_capacity(self) -> bool:
        """A connection may be opened."""
        most = self.quota.connections
        return most is None or self._loads.counted(self._connections) < most

    @property
    def waiting(self) -> int:
        """Requests that wait because no connection may be opened."""
        return len(self._queue)

    @property
    def connections(self) -> int:
        """Of this worker, those that are being opened among them."""
        return self._opening + len(self._live)

    # --- connections

    def adopt(self, pool: Pool) -> None:
        """Its connections are counted here."""
        if pool.gate is None:
            pool.gate = self
            self.pools.add(pool)

    def connect(self, pool: Pool, done: Callable[[Pooled | None, str], None]) -> None:
        """As `opening.Opens.connect`."""
        self.adopt(pool)
        if not self.has_capacity:
            done(None, BUSY)
            return
        self.begin_opening(1)

        def ended(up: Pooled | None, cause: str) -> None:
            self.end_opening(up, 1)
            done(up, cause)

        self._opens.connect(pool, ended)

    def later(self, seconds: float, call: Callable[[], None]) -> object:
        return self._opens.later(seconds, call)

    def belongs(self, pool: Pool) -> None:
        """As `opening.Opens.belongs`."""
        self._opens.belongs(pool)

    def share(self, pool: Pool) -> Streams:
        """The connections of HTTP/2 of a pool (`endpoint.Streams`)."""
        self.adopt(pool)
        return pool.shared or self._opens.share(pool)

    def begin_opening(self, pending: int = 0) -> None:
        """A connection is being opened. `pending`: requests that wait for it, and are counted nowhere else."""
        self._opening += 1
        self._pending += pending
        self._say()

    def end_opening(self, connection: Any, pending: int = 0) -> None:
        """It is open; None: it could not be opened, or is counted by `kept`."""
        self._opening -= 1
        self._pending -= pending
        is_open = connection is not None and not connection.is_gone
        if is_open:
            self._enter(connection)
        self._say()
        if not is_open:
            self.serve()

    def kept(self, connection: Pooled, pool: Pool) -> None:
        """A connection of HTTP/1.1 is in `pool`, for the next request."""
        connection.idle_since = self._clock()
        if connection not in self._live:
            self._enter(connection)
            self._say()
        if self._is_old(connection):
            self._close(pool, connection, "maxConnectionDuration")
        elif self._queue and not self._owes_others():
            self.serve()
        elif self._others_wait():
            if self._queue:
                self._gave_way = self._clock()
                self._look_soon()
            self._close(pool, connection, "maxConnections")
        elif not self.has_capacity:
            self._look_soon()

    def lost(self, connection: Any) -> None:
        """It is gone."""
        if self._live.pop(connection, None) is not None:
            self._say()
            self.serve()

    def waits(self, more: int) -> None:
        """So many requests more wait for a stream."""
        self._shared_waiting += more
        self._say()

    def lend_idle(self, pool: Pool) -> Pooled | None:
        """An unused connection of `pool` that may be used again."""
        now, idle = self._clock(), pool.idle
        while idle:
            connection = idle.pop()
            if self._is_old(connection):
                self._closed(connection, "maxConnectionDuration")
            elif now - connection.idle_since > self.quota.idle:
                self._closed(connection, "idleTimeout")
            else:
                return connection
        return None

    def free_idle(self) -> bool:
        """Close an unused connection, of whichever endpoint, so that another one may be opened when it is gone."""
        for pool in self.pools:
            if pool.idle:
                self._close(pool, pool.idle[0], "maxConnections")
                return True
            for connection in [] if pool.shared is None else pool.shared.connections:
                if not connection.streams:
                    self._events.backend_connection_closed(self.quota.backend, "maxConnections")
                    connection.close()
                    return True
        return False

    def serve(self) -> None:
        """There may be a connection for those who wait longest."""
        queue = self._queue
        while queue and self._clock() >= self._gave_way + 2 * LOOK:
            first = queue.pop()
            if first.is_wanted and not first.serve(self):
                queue.put_back(first)
                break
        self._say()
        if self._shared_waiting and not queue and self.has_capacity:
            for pool in list(self.pools):
                if pool.shared is not None and pool.shared.waiting:
                    pool.shared.open_more()

    def forget(self, pool: Pool) -> None:
        """No table has its endpoint any more."""
        self.pools.discard(pool)

    def retire_old(self, pool: Pool) -> None:
        """Connections of HTTP/2 that are too old take no further stream."""
        for connection in [] if pool.shared is None else list(pool.shared.connections):
            if not connection.is_spent and self._is_old(connection):
                self._events.backend_connection_closed(self.quota.backend, "maxConnectionDuration")
                connection.retire()

    # --- inside

    def _enter(self, connection: Any) -> None:
        age = self.quota.age
        self._live[connection] = 0.0 if age is None else self._clock() + age
        if not self._is_sweeping:
            self._is_sweeping = True
            self._opens.later(self._interval, self._sweep)

    def _is_old(self, connection: Any) -> bool:
        until = self._live.get(connection, 0.0)
        return bool(until) and self._clock() >= until

    def _close(self, pool: Pool, connection: Pooled, limit: str) -> None:
        pool.idle.remove(connection)
        self._closed(connection, limit)

    def _closed(self, connection: Pooled, limit: str) -> None:
        self._events.backend_connection_closed(self.quota.backend, limit)
        connection.close()

    def _owes_others(self) -> bool:
        """Other workers wait, and this one has more than its part, also while requests wait here."""
        most = self.quota.connections
        if most is None or self._clock() - self._gave_way < GIVE_WAY:
            return False
        return self._others_wait() and len(self._live) > most // self._loads.workers

    def _others_wait(self) -> bool:
        """Requests of other workers wait while no connection may be opened."""
        if self.quota.connections is None or self.has_capacity:
            return False
        return self._loads.counted(self._pending_rows) > self._said[1]

    def _say(self) -> None:
        """Put what this worker has where the others read it."""
        before = self._said
        now = self._said = (self.connections, len(self._queue) + self._pending + self._shared_waiting)
        if now != before:
            connections, pending = now[0] - before[0], now[1] - before[1]
            if connections:
                self._loads.count(self._connections, connections)
            if pending:
                self._loads.count(self._pending_rows, pending)
            self._events.backend_load(self.quota.backend, connections, pending)

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._opens.later(LOOK, self._look)

    def _look(self) -> None:
        """At what other workers do; and for requests that wait too long."""
        self._is_looking = False
        now, queue = self._clock(), self._queue
        while queue and (not queue.first.is_wanted or now - queue.first.since >= WAIT):
            first = queue.pop()
            self._say()
            if first.is_wanted:
                self._refuse(first, "maxConnections", f": no connection was free within {WAIT:g} s")
        self.serve()
        if queue:
            self._look_soon()
        elif self._others_wait():
            self.free_idle()
        if not self.has_capacity and self._live:
            self._look_soon()

    @property
    def _interval(self) -> float:
        return max(LOOK, min(SWEEP, self.quota.idle / 4, (self.quota.age or SWEEP) / 4))

    def _sweep(self) -> None:
        """Close what is too old, or unused for too long."""
        now, quota = self._clock(), self.quota
        for pool in list(self.pools):
            for connection in pool.idle[:]:
                if self._is_old(connection):
                    self._close(pool, connection, "maxConnectionDuration")
                elif now - connection.idle_since > quota.idle:
                    self._close(pool, connection, "idleTimeout")
            if pool.shared is not None:
                self.retire_old(pool)
                for _ in range(pool.shared.close_unused(now, quota.idle)):
                    self._events.backend_connection_closed(quota.backend, "idleTimeout")
        self._is_sweeping = bool(self._live)
        if self._is_sweeping:
            self._opens.later(self._interval, self._sweep)

    def __repr__(self) -> str:
        return f"Gate({self.quota.backend}, {self.connections} connections, {len(self._queue)} wait)"


class _Request:
    """One that waits for a connection of HTTP."""

    __slots__ = ("_endpoints", "_holder", "_number", "_pool", "_version", "is_counted", "since", "source")

    def __init__(self, holder: Lease, pool: Pool, endpoints: Sequence[Endpoint], version: int, since: float) -> None:
        self._holder, self._number, self._pool = holder, holder.lease, pool
        self._endpoints, self._version, self.since = endpoints, version, since
        self.source = source_of_lease(holder)
        self.is_counted = False

    @property
    def is_wanted(self) -> bool:
        return self._holder.lease == self._number

    def serve(self, gate: Gate) -> bool:
        pool = self._pool
        gate.adopt(pool)
        if self._lent(gate, pool):
            return True
        if gate.has_capacity:
            return self._opened(gate, pool)
        if gate.quota.connections is None:
            return False
        for endpoint, other in self._others():
            if self._lent(gate, other, endpoint):
                return True
        return gate.free_idle() and gate.has_capacity and self._opened(gate, pool)

    def _others(self) -> Iterator[tuple[Endpoint, Pool]]:
        """Pools of other endpoints that would do, where there is one."""
        transport = self._pool.transport
        assert transport is not None  # it has a quota
        for endpoint in islice(self._endpoints, LOOKS):
            pool = endpoint.pools.get(transport)
            if pool is not None and pool is not self._pool:
                yield endpoint, pool

    def _version_of(self, pool: Pool) -> int:
        return pool.spoken if self._version == EITHER and pool.spoken else self._version

    def _lent(self, gate: Gate, pool: Pool, endpoint: Endpoint | None = None) -> bool:
        """Whether there was an unused connection of `pool`, or a stream. `endpoint`: whose it is, where another one was
        chosen."""
        if self._version_of(pool) == HTTP1:
            up = gate.lend_idle(pool)
            if up is None:
                return False
            self._move(endpoint)
            self._holder.up = up
            if self._endpoints:
                self._holder.lease_ready(up)
            else:
                self._holder.lease_again(up)
            return True
        gate.retire_old(pool)
        if pool.shared is None or not pool.shared.has_capacity:
            return False
        self._move(endpoint)
        pool.shared.take(self._holder, self._endpoints, self._version == EITHER)
        return True

    def _move(self, endpoint: Endpoint | None) -> None:
        """It goes to another endpoint than the one that was chosen."""
        holder = self._holder
        if endpoint is None or holder.endpoint is None:
            return
        holder.endpoint.pending -= 1
        endpoint.pending += 1
        holder.endpoint = endpoint
        if holder.retries is not None and holder.retries.tried:
            holder.retries.tried[-1] = endpoint

    def _opened(self, gate: Gate, pool: Pool) -> bool:
        """Open a connection."""
        if not self.is_counted and not gate.takes_one_more:
            return False
        if self._version_of(pool) == HTTP1:
            open_for(gate, pool, self._holder, self._endpoints)
        else:
            gate.share(pool).take(self._holder, self._endpoints, self._version == EITHER)
        return True

    def refuse(self, detail: str) -> None:
        leave_endpoint(self._holder)
        self._holder.lease_failed("limit", detail)
