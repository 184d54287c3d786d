"""One address that requests are sent to, with what this worker knows about it.

Endpoints outlive swaps (`table/carryover` keeps them by address), so their idle connections and scores do as well.
Connections of one transport (`settings.Transport`: TLS and TCP as policies want them) are a pool; an endpoint is itself
the pool of plain ones. Who borrows a connection is a `Lease`; what stands in a pool beside idle connections is given by
`Streams` and `Limiter`. These know each other, so they are stated in one file; who carries them out is above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.carriers import Consumer
from dataplane.upstream.balance import WARM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from OpenSSL import SSL

    from dataplane.carriers import Upstream
    from dataplane.http.messages import Peer
    from dataplane.upstream.connections import Pooled, Shared
    from dataplane.upstream.health import Member
    from dataplane.upstream.limits import Tally
    from dataplane.upstream.settings import Transport

INITIAL_LATENCY = 0.001
"""Seconds: optimistic, so that a new endpoint is tried."""


class Tried(Protocol):
    """Where tries of one request went."""

    tried: list[Endpoint]
    """The last at the end."""


class Lease(Consumer, Protocol):
    """Fields of what holds, or wants, an upstream carrier. `upstream/lease` alone writes them: a lease is no object
    of its own, so that the plain path makes none.

    - `endpoint`: in use, or last used: it stays for the log.
    - `up`: the carrier while it is held. None: not yet, or no more.
    - `leased`: the endpoint counts this request as pending.
    - `lease`: number of this lease: a connection that opens for an older one is kept for others.
    - `attempt`: how often it was sent again.
    - `counted`: by whom it is counted among the requests to its backend; None: it is not. The code that ends the holder
      calls `uncount`, or does the same.
    - `retries`: knows the endpoints of earlier tries, of which others are chosen where there are. None: none count.
    """

    endpoint: Endpoint | None
    up: Upstream | None
    leased: bool
    lease: int
    attempt: int
    counted: Tally | None
    attributes: Any
    """What policies have found out for its sake, by name (`Exchange.attributes`); None: nothing. Any: mappings of
    holders differ in whether they may be written."""
    version: bytes
    scheme: bytes
    """Of the client; what is sent by ourselves has b"HTTP/1.1" and b"http"."""

    @property
    def client(self) -> Peer | None:
        """Whose request it is; None: the gateway's own."""

    @property
    def peer(self) -> str | None:
        """Address of the client for whose sake it is, as policies know it (`Exchange.peer`); None: for no client's."""

    @property
    def is_grpc(self) -> bool:
        """Its content type is gRPC's. Asked only of those with content."""

    @property
    def retries(self) -> Tried | None: ...

    def lease_ready(self, up: Upstream) -> None:
        """`up` is this holder's now: begin."""

    def lease_again(self, up: Upstream) -> None:
        """As `lease_ready`, after a loss that was stale: send the same once more."""

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        """There is no carrier. `cause`: "dns" (the name has no address), "endpoints" (there are none), "refused"
        (nothing may be sent to this backend), "forbidden" (nothing to the destination that the request names), "limit"
        (no more at this time), "connect", "tunnel" (the proxy on the way opened none).
        `others`: there are endpoints that were not tried."""


class Streams(Protocol):
    """The connections of HTTP/2 of one pool, and who waits for a stream (`shared.SharedConnections`)."""

    connections: list[Shared]

    @property
    def idle(self) -> int:
        """Connections without a stream."""

    @property
    def streams(self) -> int:
        """Streams that are lent."""

    @property
    def waiting(self) -> int:
        """Requests that wait for a stream."""

    @property
    def has_capacity(self) -> bool:
        """A stream can be lent now."""

    def take(self, holder: Lease, endpoints: Sequence[Endpoint], either: bool = False) -> None:
        """Lend a stream to `holder`, now or when there is one; with `either` a connection of HTTP/1.1 where the server
        chooses that. `endpoints`: () when it sends again."""

    def open_more(self) -> None:
        """A limit that was reached allows for further connections."""

    def close_unused(self, now: float, seconds: float) -> int:
        """Close what has lent no stream for so long; how many these were."""

    def report(self, detail: str) -> None:
        """A connection broke."""

    def retire(self) -> None:
        """No table knows the endpoint any more."""


class Limiter(Protocol):
    """Who counts the connections of a pool, where policies limit them (`gate.Gate`)."""

    @property
    def has_capacity(self) -> bool:
        """A connection may be opened."""

    def take(self, holder: Lease, pool: Pool, endpoints: Sequence[Endpoint], version: int) -> None:
        """A connection of `pool`, or a stream of one, for `holder`, as the limits allow."""

    def begin_opening(self, pending: int = 0) -> None:
        """A connection is being opened. `pending`: requests that wait for it, and are counted nowhere else."""

    def end_opening(self, connection: object | None, pending: int = 0) -> None:
        """It is open; None: it could not be opened, or is counted by `kept`."""

    def kept(self, connection: Pooled, pool: Pool) -> None:
        """A connection of HTTP/1.1 is in `pool`, for the next request."""

    def lost(self, connection: object) -> None:
        """It is gone."""

    def waits(self, more: int) -> None:
        """So many requests more wait for a stream."""

    def serve(self) -> None:
        """There may be a connection for those who wait longest."""

    def forget(self, pool: Pool) -> None:
        """No table has its endpoint any more."""


class Pool:
    """Connections to an endpoint that are made in one way. `idle` is used as a stack: the last used stays warm."""

    __slots__ = (
        "address",
        "base",
        "closed",
        "empty_since",
        "gate",
        "idle",
        "label",
        "last",
        "port",
        "shared",
        "spoken",
        "transport",
        "unix_path",
        "workload",
    )

    def __init__(self, address: str, port: int, unix_path: str = "", workload: str = "") -> None:
        self.address = address
        self.port = port
        self.unix_path = unix_path
        self.workload = workload
        """`namespace/service account` of a workload of the mesh that is reached by its tunnels; "": it is none."""
        self.transport: Transport | None = None
        """None: the plain way."""
        self.base: Endpoint | None = None
        """Whose pool it is; None: an endpoint itself."""
        self.label = _label(address, port, unix_path)
        """As it appears in logs."""
        self.idle: list[Pooled] = []
        self.gate: Limiter | None = None
        """Who counts its connections, where policies limit them."""
        self.shared: Streams | None = None
        """Connections of HTTP/2; None: none was ever asked for."""
        self.spoken = 0
        """With TLS: the version of HTTP that the server chose when it could; 0: it was not asked yet."""
        self.last: SSL.Connection | None = None
        """With TLS: the newest connection, whose session the next one may resume. Alive, because OpenSSL forgets the
        session of a connection that is freed before it was shut down."""
        self.empty_since = 0.0
        """Of one that is not plain: when it was first seen without a connection (monotonic seconds); 0: it has some."""
        self.closed = False

    def retire(self) -> Iterator[None]:
        """Keep no connection, in steps of one (10 us): there may be a thousand."""
        self.closed = True
        while self.idle:
            self.idle.pop().close()
            yield
        if self.shared is not None:
            self.shared.retire()
        if self.gate is not None:
            self.gate.forget(self)

    @property
    def scheme(self) -> bytes:
        """Of the URIs that its connections are asked for: `:scheme` comes from the connection, not from the client
        (RFC 9113 8.3.1, RFC 9110 4.2)."""
        return b"http" if self.transport is None or self.transport.tls is None else b"https"

    @property
    def is_empty(self) -> bool:
        """No connection is kept."""
        return not self.idle and not (self.shared is not None and self.shared.connections)

    def __repr__(self) -> str:
        return f"Pool({self.label}, idle={len(self.idle)})"


class Endpoint(Pool):
    """An IP address and port, or the path of a Unix socket."""

    __slots__ = ("health", "latency", "members", "pending", "pools", "share", "warming")

    def __init__(self, address: str, port: int, unix_path: str = "", workload: str = "") -> None:
        super().__init__(address, port, unix_path, workload)
        self.pending = 0
        self.latency = INITIAL_LATENCY
        self.health = 1.0
        """Sliding average over responses (`balance`): 1 all were well, 0 none was."""
        self.warming = WARM
        """Since when it is warming up; 0: since it will be looked at; WARM: it is warm."""
        self.share = 1.0
        """What part of its requests it gets where there is a choice, of 1 (`balance.share`)."""
        self.members: dict[str, Member] | None = None
        """By key of a backend whose policies watch health; None: no such backend has it."""
        self.pools: dict[Transport, Pool] = {}
        """Those of connections that are not plain."""

    def pool(self, transport: Transport) -> Pool:
        """The connections of this transport."""
        pool = self.pools.get(transport)
        if pool is None:
            pool = self.pools[transport] = Pool(self.address, self.port, self.unix_path, self.workload)
            pool.transport, pool.base, pool.closed = transport, self, self.closed
        return pool

    def close_idle(self) -> None:
        """No table knows this endpoint any more: keep no connection to it."""
        for _ in self.retire():
            pass

    def retire(self) -> Iterator[None]:
        """As `close_idle`, in steps of one connection."""
        yield from super().retire()
        for pool in self.pools.values():
            yield from pool.retire()
        for member in (self.members or {}).values():
            member.forget()

    def __repr__(self) -> str:
        return f"Endpoint({self.label}, pending={self.pending}, idle={len(self.idle)})"


def _label(address: str, port: int, unix_path: str) -> str:
    if unix_path:
        return f"unix:{unix_path}"
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
