"""The HTTP/2 connections to one endpoint, and who waits for a stream of them.

Requests that come while the first connection opens wait for it; where the endpoint takes no more streams another
connection is opened. All of it is bounded: connections, requests that wait (of which a client has its share), and how
long. Decides only; connections come from `opening.Connects.open`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.link.pools import STREAM_WAITERS, Key
from dataplane.net.endings import end_all
from dataplane.upstream.connecting import connect, leave_endpoint, not_connected
from dataplane.upstream.connections import SPEAKS_HTTP1
from dataplane.upstream.race import StreamRace, of_other_family
from dataplane.upstream.settings import PLAIN_TCP
from dataplane.upstream.waiting import Line, source_of_lease

if TYPE_CHECKING:
    from dataplane.upstream.connections import Shared
    from dataplane.upstream.endpoint import Endpoint, Lease, Pool
    from dataplane.upstream.opening import Connects

MAX_CONNECTIONS: Final = 32
"""To one endpoint, of one worker."""
MAX_WAITING: Final = 4096
"""Requests that wait for a stream of one endpoint."""
SLICE: Final = 64
"""Requests that are answered in one turn of the loop because no stream can be had: each takes 60 microseconds."""
SOONEST: Final = 0.1
"""Seconds between two looks for requests that have waited too long."""
EXPECTED: Final = 100
"""Streams that a connection is expected to take before it has said how many."""
QUIET: Final = 60.0
"""Seconds for which the log says no more about broken connections to an endpoint."""

log = logging.getLogger("dataplane.upstream")


class _Waiting(NamedTuple):
    holder: Lease
    number: int
    """Its lease when it began to wait."""
    endpoints: Sequence[Endpoint]
    """As in `Leases.take`; () when it sends again."""
    since: float
    either: bool
    """It may be sent over HTTP/1.1 as well."""
    source: Key | None
    """As `waiting.Waits`."""

    @property
    def is_wanted(self) -> bool:
        return self.holder.lease == self.number


class SharedConnections:
    """One for each pool that is spoken to over HTTP/2 (`Pool.shared`)."""

    __slots__ = (
        "_endpoint",
        "_has_turn",
        "_is_timed",
        "_opening",
        "_opens",
        "_quiet_until",
        "_unsaid",
        "_waiting",
        "connections",
    )

    def __init__(self, endpoint: Pool, opens: Connects) -> None:
        self._endpoint = endpoint
        self._opens = opens
        self.connections: list[Shared] = []
        self._opening = 0
        self._waiting: Line[_Waiting] = Line(STREAM_WAITERS, opens.full)
        self._is_timed = False
        self._has_turn = False
        """Those who wait are given more streams in the next turn of the loop."""
        self._quiet_until = 0.0
        self._unsaid = 0
        """Broken connections of which the log did not say anything."""

    @property
    def idle(self) -> int:
        """Connections without a stream."""
        return sum(not each.streams for each in self.connections)

    @property
    def streams(self) -> int:
        """Streams that are lent."""
        return sum(each.streams for each in self.connections)

    @property
    def waiting(self) -> int:
        """Requests that wait for a stream."""
        return sum(each.is_wanted for each in self._waiting)

    def take(self, holder: Lease, endpoints: Sequence[Endpoint], either: bool = False) -> None:
        """Lend a stream to `holder`, now or when there is one; with `either` a connection of HTTP/1.1 where the server
        chooses that."""
        if not self._waiting:
            for connection in self.connections:
                if connection.free_streams():
                    _lend(connection, holder, endpoints)
                    return
        if not self.connections and len(endpoints) > 1 and self._endpoint.gate is None:
            other = of_other_family(holder.endpoint, endpoints)
            if other is not None:
                fail = partial(_not_connected, holder, endpoints)
                StreamRace(self._opens, holder, self._endpoint, other, either, fail).begin()
                return
        source = source_of_lease(holder)
        if not self._has_place(source):
            self._refuse(holder, endpoints)
            return
        self._waiting.append(_Waiting(holder, holder.lease, endpoints, self._opens.clock(), either, source))
        self._waits(1)
        if not self._is_timed:
            self._is_timed = True
            self._opens.later(self._patience, self._expire)
        self._open()

    def _has_place(self, source: Key | None) -> bool:
        """Whether one more request of this client may wait."""
        if self._waiting.may_fit(source, MAX_WAITING - len(self._waiting)):
            return True
        self._waits(-self._waiting.drop_unwanted())
        return self._waiting.fits(source, MAX_WAITING - len(self._waiting))

    def _refuse(self, holder: Lease, endpoints: Sequence[Endpoint]) -> None:
        """It cannot wait: where others could, that is for its client, and not for the endpoint."""
        if len(self._waiting) >= MAX_WAITING:
            not_connected(holder, f"{self._endpoint.label}: too many requests wait for an HTTP/2 stream", endpoints)
            return
        leave_endpoint(holder)
        why = f"{self._endpoint.label}: too many requests of this client wait for an HTTP/2 stream"
        holder.lease_failed("limit", why)

    @property
    def _patience(self) -> float:
        """Seconds that a request waits at most: as long as opening a connection may take (`tcp.connectTimeout`)."""
        transport = self._endpoint.transport
        return (PLAIN_TCP if transport is None else transport.tcp).connect_timeout

    def _open(self) -> None:
        """Open as many connections as those who wait need, within the bound. An endpoint that takes no stream at all
        would take none on another."""
        if self._has_turn:  # there are streams
            return
        if any(not (each.streams or each.free_streams() or each.is_spent) for each in self.connections):
            return
        gate = self._endpoint.gate
        while self._opening * EXPECTED < len(self._waiting) and len(self.connections) + self._opening < MAX_CONNECTIONS:
            if gate is not None:
                if not gate.has_capacity:
                    return
                gate.begin_opening()
            self._opening += 1
            self._opens.open(self._endpoint, self._opened, any(each.either for each in self._waiting))

    def open_more(self) -> None:
        """A limit that was reached allows for further connections."""
        self._open()

    @property
    def has_capacity(self) -> bool:
        """A stream can be lent now."""
        return not self._waiting and any(each.free_streams() for each in self.connections)

    def _waits(self, more: int) -> None:
        if self._endpoint.gate is not None:
            self._endpoint.gate.waits(more)

    def _opened(self, connection: Shared | None, cause: str) -> None:
        gate = self._endpoint.gate
        if gate is not None and connection is not None:
            gate.end_opening(connection)
        self._opening_ended(connection, cause)
        if gate is not None and connection is None:  # now, when those who waited for it do not any more
            gate.end_opening(None)

    def _opening_ended(self, connection: Shared | None, cause: str) -> None:
        self._opening -= 1
        if connection is not None and connection.is_spent:
            connection.retire()
            connection, cause = None, f"connect to {self._endpoint.label} failed: it takes no requests (GOAWAY)"
        if connection is None:
            if cause == SPEAKS_HTTP1:
                self._instead()
            elif not self._opening and not any(not each.is_spent for each in self.connections):
                self._fail(cause)
            return
        self.connections.append(connection)
        connection.on_capacity = self._serve
        self._serve()
        if self._endpoint.closed:
            connection.retire()

    def _instead(self) -> None:
        """The server speaks HTTP/1.1: so do those who may."""
        waiting = self._waiting.leave()
        self._waits(-len(waiting))
        end_all(self._opens.writes.turns, [partial(self._go_instead, each) for each in waiting])

    def _go_instead(self, each: _Waiting) -> None:
        if not each.is_wanted:
            return
        if not each.either:
            not_connected(each.holder, f"{self._endpoint.label} does not speak HTTP/2 (ALPN)", each.endpoints)
        elif self._endpoint.idle and each.endpoints and self._endpoint.gate is None:
            up = each.holder.up = self._endpoint.idle.pop()
            each.holder.lease_ready(up)
        else:
            connect(self._opens, self._endpoint, each.holder, each.endpoints)

    def _serve(self) -> None:
        """The number of free streams has changed: give them to those that wait longest, as many as the share of this
        turn is for (`net/turns`): each sends its request at once."""
        self.connections = [each for each in self.connections if not each.is_spent or each.streams]
        if self._has_turn:
            return
        if self._waiting:
            self._lend_some()
        if not self._waiting:
            if self._endpoint.gate is not None:
                self._endpoint.gate.serve()
        elif not self._has_turn:
            self._open()

    def _lend_some(self) -> None:
        waiting, turns = self._waiting, self._opens.writes.turns
        if len(waiting) > 1:
            turns.begin()
        for connection in list(self.connections):
            while waiting and connection.free_streams():
                each = waiting.pop()
                self._waits(-1)
                if not each.is_wanted:
                    continue
                _lend(connection, each.holder, each.endpoints)
                if waiting and turns.is_spent():
                    self._has_turn = True
                    turns.add(self)
                    return

    def next_turn(self) -> None:
        """As `net.turns.Waiting`."""
        self._has_turn = False
        self._serve()

    def _fail(self, cause: str) -> None:
        """No connection can be had: those that wait are informed."""
        waiting = self._waiting.leave()
        self._waits(-len(waiting))
        self._fail_some(waiting[::-1], cause)

    def _fail_some(self, left: list[_Waiting], cause: str) -> None:
        """Those at the end of `left` now, others in later turns of the loop."""
        for _ in range(min(SLICE, len(left))):
            each = left.pop()
            if each.is_wanted:
                not_connected(each.holder, cause, each.endpoints)
        if left:
            self._opens.later(0.0, partial(self._fail_some, left, cause))

    def _expire(self) -> None:
        """Those who wait too long."""
        self._is_timed = False
        was = len(self.connections)
        self._leave_stingy()
        now, waiting, most = self._opens.clock(), self._waiting, self._patience
        for _ in range(SLICE):
            if not waiting or (waiting.first.is_wanted and now - waiting.first.since < most):
                break
            each = waiting.pop()
            self._waits(-1)
            if each.is_wanted:
                why = f"{self._endpoint.label} had no HTTP/2 stream free within {most:g} s"
                not_connected(each.holder, why, each.endpoints)
        if waiting and not self._is_timed:
            self._is_timed = True
            left = waiting.first.since + most - now
            self._opens.later(max(left, SOONEST) if left > 0 else 0.0, self._expire)
        if len(self.connections) < was:
            self._open()

    def _leave_stingy(self) -> None:
        """Close what takes no stream, and has none: it was waited for, and the next one may take some."""
        for connection in list(self.connections):
            if not (connection.streams or connection.free_streams() or connection.is_spent):
                self.connections.remove(connection)
                connection.close()

    def close_unused(self, now: float, seconds: float) -> int:
        """Close what has lent no stream for so long; how many these were."""
        closed = 0
        for connection in list(self.connections):
            if connection.is_late(now) or connection.streams:
                continue
            if not connection.idle_since:
                connection.idle_since = now
            elif now - connection.idle_since > seconds:
                self.connections.remove(connection)
                connection.close()
                closed += 1
        return closed

    def report(self, detail: str) -> None:
        """A connection broke: one line in the log, and none for a while, however many break."""
        now = self._opens.clock()
        if now < self._quiet_until:
            self._unsaid += 1
            return
        self._quiet_until = now + QUIET
        before, self._unsaid = self._unsaid, 0
        others = f" ({before} more since the last line)" if before else ""
        log.warning("http2 connection to %s is broken: %s%s", self._endpoint.label, detail, others)

    def retire(self) -> None:
        """No table knows the endpoint any more: connections close when what is under way has ended."""
        for connection in list(self.connections):
            connection.retire()

    def __repr__(self) -> str:
        return f"SharedConnections({self._endpoint.label}, {len(self.connections)}, waiting={len(self._waiting)})"


def _not_connected(holder: Lease, endpoints: Sequence[Endpoint], cause: str) -> None:
    not_connected(holder, cause, endpoints)


def _lend(connection: Shared, holder: Lease, endpoints: Sequence[Endpoint]) -> None:
    up = holder.up = connection.lend()
    if endpoints:
        holder.lease_ready(up)
    else:
        holder.lease_again(up)
