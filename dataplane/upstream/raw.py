"""Connections to endpoints whose bytes are no requests: one for each connection of a client, never kept for another.

`RawLease` chooses the endpoint and opens the connection, and tries others while none is open: nothing was sent by then.
The connection itself is a `raw_end.RawEnd`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from dataplane.link.pools import Key, key_of
from dataplane.upstream import balance
from dataplane.upstream.destinations import NOTHING, Named, NoDestination
from dataplane.upstream.opening import cause_of
from dataplane.upstream.raw_end import RawEnd
from dataplane.upstream.settings import OURSELVES, Client

if TYPE_CHECKING:
    from dataplane.http.messages import Peer
    from dataplane.upstream.endpoint import Endpoint, Limiter, Pool
    from dataplane.upstream.gate import Gate
    from dataplane.upstream.lease import BackendPlan, Leases
    from dataplane.upstream.raw_end import Holder

MAX_CONNECTS: Final = 3
"""Endpoints that are tried for one connection."""


class RawLease:
    """The way of one connection to an endpoint of a backend. One call of `begin`, then `release` at the end."""

    __slots__ = (
        "_client",
        "_closed",
        "_holder",
        "_leases",
        "_named",
        "_pending",
        "_plan",
        "_refuses",
        "is_over",
        "tried",
    )

    def __init__(
        self,
        holder: Holder,
        leases: Leases,
        closed: Callable[[], None],
        peer: Peer | None = None,
        refuses: Callable[[Endpoint], str] | None = None,
        named: Named = NOTHING,
    ) -> None:
        """`closed()`: an opened connection is gone. `peer`: the client that it is for; None: for none. `refuses`: why
        nothing may be sent to an endpoint, or "". `named`: the destination that it names, for backends that ask for
        one."""
        self._refuses, self._named = refuses, named
        self._holder, self._leases, self._closed = holder, leases, closed
        self._client = OURSELVES if peer is None else Client(peer.address, peer.port, peer.local)
        self._plan: BackendPlan | None = None
        self._pending: Endpoint | None = None
        self.is_over = False
        self.tried: list[Endpoint] = []
        """The last at the end."""

    @property
    def source(self) -> Key | None:
        """Whose share of those who wait it draws on; None: it is for no client."""
        return None if self._client is OURSELVES else key_of(self._client.address)

    def begin(self, plan: BackendPlan) -> None:
        """Open a connection to the backend of `plan`."""
        self._plan = plan
        if plan.refused_as_bytes:
            self._holder.raw_failed("refused", f"{plan.key}: {plan.refused_as_bytes}")
        elif plan.by_request:
            self._find()
        else:
            self._resolve()

    def _find(self) -> None:
        """The plan of the destination that it names; also called when that was looked up."""
        plan = self._plan
        if plan is None or self.is_over:
            return
        try:
            found = self._leases.toward(plan, self._named, self._find)
        except NoDestination as error:
            self._holder.raw_failed(error.cause, f"{plan.key}: {error}")
            return
        if found is None:
            return
        self._plan = found
        if found.refused_as_bytes:
            self._holder.raw_failed("refused", f"{found.key}: {found.refused_as_bytes}")
        else:
            self._resolve()

    @property
    def endpoint(self) -> Endpoint | None:
        """In use, or last used."""
        return self.tried[-1] if self.tried else None

    def release(self) -> None:
        """It is over: what is under way is dropped."""
        self.is_over = True
        self.leave_endpoint()

    def _resolve(self) -> None:
        plan = self._plan
        if plan is None or self.is_over:
            return
        endpoints: Sequence[Endpoint] | None = plan.endpoints
        if plan.host:
            endpoints = self._leases.resolve(plan, self._resolve)
            if endpoints is None:
                return
        if endpoints:
            self._connect(plan, usable(self._leases, plan, endpoints))
        elif plan.host:
            name = f"{plan.host.decode('latin-1')}:{plan.port}"
            self._holder.raw_failed("dns", f"{name} cannot be resolved")
        else:
            self._holder.raw_failed("endpoints", f"{plan.key}: it has no endpoints")

    def _connect(self, plan: BackendPlan, endpoints: Sequence[Endpoint]) -> None:
        left = [each for each in endpoints if each not in self.tried] or endpoints
        endpoint = balance.choose(left, self._leases.random)
        self.tried.append(endpoint)
        why = "" if self._refuses is None else self._refuses(endpoint)
        if why:
            self._holder.raw_failed("refused", f"{plan.key}: {why}")
            return
        self._pending = endpoint
        endpoint.pending += 1
        pool = endpoint if plan.transport is None else endpoint.pool(plan.transport)
        quota = None if plan.transport is None else plan.transport.quota
        if quota is None:
            self.dial(plan, endpoints, pool)
        else:
            gate = self._leases.rule_states.gate(quota, self._leases.connector)
            gate.admit(_Dial(self, plan, endpoints, pool, self._leases.connector.clock()))

    def dial(self, plan: BackendPlan, endpoints: Sequence[Endpoint], pool: Pool) -> None:
        """Open the connection to the endpoint that was chosen last."""
        endpoint = self.tried[-1]
        gate = pool.gate
        end = RawEnd(self._holder, partial(self._lost, gate), self._client)
        if gate is not None:
            gate.begin_opening(1)

        def done(cause: str) -> None:
            if gate is not None:
                gate.end_opening(None if cause else end, 1)
            if self.is_over:
                end.leave(False)
            elif not cause:
                self._holder.raw_ready(end)
            else:
                self.leave_endpoint()
                self._leases.failed(plan, endpoint)
                if len(self.tried) < MAX_CONNECTS and any(each not in self.tried for each in endpoints):
                    self._connect(plan, endpoints)
                else:
                    self._holder.raw_failed(cause_of(cause), cause)

        self._leases.connector.dial(pool, end, done)

    def _lost(self, gate: Limiter | None, end: RawEnd) -> None:
        if gate is not None:
            gate.lost(end)
        self._closed()

    def refuse(self, detail: str) -> None:
        """A limit of the backend does not allow for another connection."""
        self.leave_endpoint()
        self._holder.raw_failed("limit", detail)

    def leave_endpoint(self) -> None:
        """The endpoint has one less in flight: the connection is kept, and may well be idle."""
        endpoint, self._pending = self._pending, None
        if endpoint is not None:
            endpoint.pending -= 1


class _Dial:
    """One that waits for the right to open a connection (`gate.Waiting`)."""

    __slots__ = ("_endpoints", "_lease", "_plan", "_pool", "is_counted", "since", "source")

    def __init__(
        self, lease: RawLease, plan: BackendPlan, endpoints: Sequence[Endpoint], pool: Pool, since: float
    ) -> None:
        self._lease, self._plan, self._endpoints, self._pool, self.since = lease, plan, endpoints, pool, since
        self.source = lease.source
        self.is_counted = False

    @property
    def is_wanted(self) -> bool:
        return not self._lease.is_over

    def serve(self, gate: Gate) -> bool:
        gate.adopt(self._pool)
        may = gate.has_capacity or (gate.free_idle() and gate.has_capacity)
        if not may or not (self.is_counted or gate.takes_one_more):
            return False
        self._lease.dial(self._plan, self._endpoints, self._pool)
        return True

    def refuse(self, detail: str) -> None:
        self._lease.refuse(detail)


def has_tunnel(plan: BackendPlan) -> bool:
    """Whether connections to it go through a proxy."""
    return plan.transport is not None and plan.transport.tunnel is not None


def usable(leases: Leases, plan: BackendPlan, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Those of `endpoints` that policies have not taken out."""
    return endpoints if plan.rules is None else leases.rule_state(plan, plan.rules).usable(endpoints)
