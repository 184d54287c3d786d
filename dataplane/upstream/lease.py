"""Leases: the one place that chooses an endpoint, borrows a connection to it, counts, sends again when the connection
was stale, and gives back. Requests of clients, calls of policies and mirrors use it alike.

A lease is no object: it is fields of its holder (`endpoint.Lease`), written here and in `connecting`, which opens what
is missing. Where a connection is idle, a lease costs one look at a list. What becomes of a loss that is not repaired
here is its holder's to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from dataplane.carriers import REFUSED, UNSENT
from dataplane.http.methods import IDEMPOTENT
from dataplane.upstream import balance
from dataplane.upstream.connecting import connect, leave_endpoint
from dataplane.upstream.versions import EITHER, HTTP1, HTTP2, HTTP_2, chosen, in_one, offered

if TYPE_CHECKING:
    from dataplane.chain.chain import Chain
    from dataplane.exchange import Exchange
    from dataplane.http.messages import Peer, ResponseHead
    from dataplane.upstream.backend_rules import Rules, RuleState, RuleStates
    from dataplane.upstream.destinations import Destinations, Named
    from dataplane.upstream.endpoint import Endpoint as Endpoint  # noqa: PLC0414 (as `Lease`)
    from dataplane.upstream.endpoint import Lease as Lease  # noqa: PLC0414 (given on: kinds of backends know no endpoint)
    from dataplane.upstream.endpoint import Pool
    from dataplane.upstream.health import Refused
    from dataplane.upstream.opening import Dials, Proxies
    from dataplane.upstream.outgoing import Finisher
    from dataplane.upstream.settings import Transport

MAX_RESENT = 2
"""How often a request is sent again because idle connections turned out to be closed."""

UNSEEN = (UNSENT, REFUSED)
"""Losses after which any method may be sent again: the endpoint did nothing with the request."""


class BackendPlan(Protocol):
    """What a kind of backend reads of its plan (`table/plans.BackendPlan`)."""

    key: str
    kind: str
    host: bytes
    port: int
    version: int
    """One of `upstream/versions`."""
    transport: Transport | None
    """How connections are made; None: the plain way."""
    request_timeout: float | None
    """Seconds for one try, to the head of its response (BackendHTTP); None: no limit of its own."""
    refused: str
    """Why nothing may be sent to it."""

    @property
    def refused_as_bytes(self) -> str:
        """The same of what is no request."""

    rules: Rules | None
    """What policies say for its sake (`upstream/backend_rules`); `kind` is then "with_rules"."""
    of_kind: object
    """What its kind has made of it (`kinds.Kind.plan`); None: it only forwards."""
    authority: bytes
    """Its own name, for the Host header; b"": it has none."""
    rule_state: RuleState | None
    """Who carries out `rules`; None: there are none, or no request has come yet."""

    @property
    def by_request(self) -> bool:
        """Each request or connection names its destination: this plan is for none yet."""

    @property
    def steps(self) -> Chain | None:
        """Steps of the backend, before the finishers; None: there are none."""

    @property
    def finishers(self) -> Sequence[Finisher] | None:
        """Who finishes what is sent to it (`upstream/outgoing`); None: no finisher."""

    @property
    def endpoints(self) -> Sequence[Endpoint]: ...

    @property
    def far(self) -> Sequence[Endpoint]:
        """For when all of `endpoints` are evicted."""


class Backend(Protocol):
    """A kind of backend (`backends/registry`): what becomes of a request that was routed to one. The same for requests
    of clients, calls of policies and mirrors."""

    def begin(self, holder: Lease, plan: BackendPlan, leases: Leases) -> None:
        """Carry `holder`'s request to the backend of `plan`. What only forwards takes a lease. What ends the request
        itself implements `Upstream` and calls `lease_ready` with that; it may hold several leases of its own."""


class Resolves(Protocol):
    """`resolver.Resolver`."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> Sequence[Endpoint] | None: ...


class Leases:
    """One per worker. `backends`: rows of `backends/registry` by name. `random` draws uniformly from [0, 1).
    `count_stale()`: a request is sent again. `rule_states` carries out policies for the sake of a backend."""

    __slots__ = ("backends", "connector", "count_stale", "proxies", "random", "resolver", "rule_states", "services")

    def __init__(
        self,
        backends: Mapping[str, Backend],
        connector: Dials,
        resolver: Resolves,
        random: Callable[[], float],
        count_stale: Callable[[], None] = lambda: None,
        *,
        rule_states: RuleStates,
    ) -> None:
        self.backends = backends
        self.rule_states = rule_states
        self.connector = connector
        self.resolver = resolver
        self.random = random
        self.count_stale = count_stale
        self.proxies: Proxies | None = None
        """Of tunnels; None until they are put together (`through`)."""
        self.services: Callable[[str], Destinations] = _no_services
        """What the worker keeps for a kind whose requests name their destination."""

    def through(self, proxies: Proxies) -> None:
        """Tunnels lead through these."""
        self.proxies = self.connector.proxies = proxies

    def begin(self, holder: Lease, plan: BackendPlan) -> None:
        """Carry a request to the backend of `plan`, in the way of its kind."""
        self.backends[plan.kind].begin(holder, plan, self)

    def rule_state(self, plan: BackendPlan, rules: Rules) -> RuleState:
        """Who carries out `rules`, those of `plan`."""
        state = plan.rule_state
        if state is None:
            state = plan.rule_state = self.rule_states.of(plan.key, rules)
        return state

    def failed(self, plan: BackendPlan, endpoint: Endpoint | None) -> None:
        """A try on `endpoint` of `plan` brought no response."""
        if endpoint is None:
            return
        self.rule_states.events.endpoint_failed(plan.key, endpoint.label)
        if plan.rule_state is not None:
            plan.rule_state.failed(endpoint)
        else:
            balance.judge(endpoint, False)

    def client_left(self, peer: Peer) -> None:
        """The connection of a client is gone: what was connected for it alone is no longer needed."""
        if self.connector.of_clients:
            self.connector.client_left(peer)

    def admits(self, holder: Lease, plan: BackendPlan, state: RuleState) -> bool:
        """Whether `holder` may be sent to `plan`: the limits that `state` keeps allow for it, and count it from now on.
        Otherwise the holder was informed."""
        tally = state.tally
        if tally is None or holder.counted is not None:
            return True
        if tally.admit():
            holder.counted = tally
            return True
        self.rule_states.events.backend_limited(plan.key, "maxRequests")
        holder.lease_failed("limit", f"{plan.key}: limits.maxRequests")
        return False

    def resolve(self, plan: BackendPlan, ready: Callable[[], None]) -> Sequence[Endpoint] | None:
        """What the name of `plan` resolves to, () when it does not. None: not known yet, `ready` will be called. Behind
        a tunnel it is the proxy that resolves names."""
        if self.proxies is not None and plan.transport is not None and plan.transport.tunnel is not None:
            return self.proxies.named(plan.host, plan.port)
        return self.resolver.endpoints(plan.host, plan.port, ready)

    def toward(self, plan: BackendPlan, named: Named, ready: Callable[[], None]) -> BackendPlan | None:
        """As `destinations.Destinations`, of a plan that is for none yet."""
        found: BackendPlan | None = self.services(plan.kind).toward(plan, named, ready)
        return found

    def resolved(self, holder: Lease, plan: BackendPlan, kind: Backend) -> Sequence[Endpoint]:
        """What the name of `plan` resolves to. (): the holder was informed that it does not, or `kind` begins again
        when there is an answer."""
        number = holder.lease

        def begin() -> None:
            if holder.lease == number:  # else it is not waited for any more
                kind.begin(holder, plan, self)

        endpoints = self.resolve(plan, begin)
        if endpoints is None:
            return ()
        if not endpoints:
            holder.lease_failed("dns", f"{plan.host.decode('latin-1')}:{plan.port} cannot be resolved")
        return endpoints

    def take(self, holder: Lease, endpoints: Sequence[Endpoint], plan: BackendPlan) -> None:
        """Choose one of `endpoints` (not empty) of `plan` and borrow a connection to it, or a stream of one."""
        if holder.retries is not None:
            endpoint = _other(endpoints, holder.retries.tried, self.random)
        else:
            endpoint = endpoints[0] if len(endpoints) == 1 else balance.choose(endpoints, self.random)
        holder.endpoint = endpoint
        endpoint.pending += 1
        holder.leased = True
        if plan.transport is not None:
            pool = pool_of(self.connector, endpoint, plan.transport, holder)
            self._take_of(pool, holder, endpoints, plan.version)
            return
        if (plan.version or holder.version == HTTP_2 or (holder.length and holder.is_grpc)) and (
            plan.version or chosen(holder)
        ) == HTTP2:
            (endpoint.shared or self.connector.share(endpoint)).take(holder, endpoints)
            return
        idle = endpoint.idle
        if idle:
            up = holder.up = idle.pop()
            holder.lease_ready(up)
        else:
            connect(self.connector, endpoint, holder, endpoints)

    def _take_of(self, pool: Pool, holder: Lease, endpoints: Sequence[Endpoint], version: int) -> None:
        """As `take`, of connections that are not plain. `version`: what the backend's plan says."""
        transport = pool.transport
        tls = transport.tls if transport is not None else None
        if not version:
            version = chosen(holder) if tls is None else offered(holder, tls.versions)
            if version == HTTP2 and transport is not None and transport.is_absolute:
                version = in_one(holder)
        if version == EITHER and pool.spoken:
            version = pool.spoken
        if pool.transport is not None and pool.transport.quota is not None:
            gate = pool.gate or self.rule_states.gate(pool.transport.quota, self.connector)
            gate.take(holder, pool, endpoints, version)
        elif version != HTTP1:
            (pool.shared or self.connector.share(pool)).take(holder, endpoints, version == EITHER)
        elif pool.idle:
            up = holder.up = pool.idle.pop()
            holder.lease_ready(up)
        else:
            connect(self.connector, pool, holder, endpoints)

    def lost(
        self,
        holder: Lease,
        plan: BackendPlan,
        cause: str,
        stale: bool,
        repeatable: bool,
        tries: int = 0,
        is_idempotent: bool = False,
    ) -> bool:
        """A connection was lost before any of the response: whether the request is sent once more, on a new connection
        (another idle one may be just as stale). `repeatable`: the holder still has all of its content. `tries`: how
        many of its attempts were not made here.

        A method that is not idempotent is sent again only when nothing of it was written (RFC 9110 9.2.2), or its
        content says that it does no harm (`is_idempotent`)."""
        leave_endpoint(holder)
        up, holder.up = holder.up, None
        safe = is_idempotent or cause in UNSEEN or holder.method in IDEMPOTENT
        if not (stale and repeatable and safe) or holder.attempt - tries >= MAX_RESENT:
            return False
        holder.attempt += 1
        self.count_stale()
        endpoint: Endpoint = holder.endpoint  # type: ignore[assignment]  # it was leased
        endpoint.pending += 1
        holder.leased = True
        pool: Pool = endpoint
        if plan.transport is not None:
            pool = pool_of(self.connector, endpoint, plan.transport, holder)
        if up is not None and up.is_shared:
            pool.shared.take(holder, ())  # type: ignore[union-attr]  # it lent that stream
        else:
            connect(self.connector, pool, holder, ())
        return True


def _no_services(kind: str) -> Destinations:
    raise RuntimeError(f"{kind} is not served here")


def pool_of(connector: Dials, endpoint: Endpoint, transport: Transport, holder: Lease) -> Pool:
    """The connections of this transport for a request; for its client alone where they say for whom they are."""
    if transport.tunnel is not None:
        assert connector.proxies is not None  # who serves a table has them
        if holder.upgrade:  # which a forward proxy passes on in a tunnel alone (RFC 6455 4.1)
            transport = transport.tunnelled
        transport = connector.proxies.way(transport)
    if not transport.tcp.proxy_version:
        return endpoint.pool(transport)
    pool = endpoint.pool(transport.of(holder.client))
    connector.belongs(pool)
    return pool


def _other(endpoints: Sequence[Endpoint], tried: list[Endpoint], random: Callable[[], float]) -> Endpoint:
    """An endpoint that was not tried yet; when all were, another than the last one; else the only one."""
    left = endpoints
    if tried and len(endpoints) > 1:
        left = [each for each in endpoints if each not in tried]
        left = left or [each for each in endpoints if each is not tried[-1]]
    chosen = balance.choose(left, random)
    tried.append(chosen)
    return chosen


def answered(
    plan: BackendPlan, endpoint: Endpoint, head: ResponseHead, x: Exchange | None = None, refused: Refused | None = None
) -> None:
    """`endpoint` of `plan` sent the head of a response: what that says of its health. `x`: the exchange that it is for,
    if there is one. `refused`: as `health.Watch.answered`."""
    if plan.rule_state is not None:
        plan.rule_state.answered(endpoint, head, x, refused)
    elif head.status >= 500 or endpoint.health != 1.0:
        balance.judge(endpoint, head.status < 500)


def uncount(holder: Lease, was_retried: bool = False) -> None:
    """The holder is over: it is none of the requests to its backend any more. `was_retried`: as `Tally.ended`."""
    tally, holder.counted = holder.counted, None
    if tally is not None:
        tally.ended(was_retried)


def release(holder: Lease) -> None:
    """The lease is over, whatever has come of it: what is under way for it is no longer needed."""
    leave_endpoint(holder)
    holder.lease += 1
    up, holder.up = holder.up, None
    if up is not None:
        up.reset()
