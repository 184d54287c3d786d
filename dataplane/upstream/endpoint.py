"""One address that requests are sent to, with what this worker knows about it.

Endpoints outlive swaps (`table/carryover` keeps them by address), so their idle connections and scores do as well.
Connections of one transport (`settings.Transport`: TLS and TCP as policies want them) are a pool; an endpoint is itself
the pool of plain ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.carriers import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from OpenSSL import SSL

    from dataplane.upstream.gate import Gate
    from dataplane.upstream.health import Member
    from dataplane.upstream.settings import Transport
    from dataplane.upstream.shared import SharedConnections

INITIAL_LATENCY = 0.001
"""Seconds: optimistic, so that a new endpoint is tried."""


WARM = -1.0
"""`Endpoint.warming` of one that is not new."""


class Pooled(Upstream, Protocol):
    """A connection that carries one request at a time and is kept between two."""

    idle_since: float
    """When it was first seen unused (monotonic seconds); 0: it is in use, or not looked at yet."""

    def park(self) -> None:
        """Nobody needs it now: keep it for the next request."""

    def close(self) -> None: ...

    @property
    def is_gone(self) -> bool:
        """It is closed, whoever closed it."""


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
    )

    def __init__(self, address: str, port: int, unix_path: str = "") -> None:
        self.address = address
        self.port = port
        self.unix_path = unix_path
        self.transport: Transport | None = None
        """None: the plain way."""
        self.base: Endpoint | None = None
        """Whose pool it is; None: an endpoint itself."""
        self.label = _label(address, port, unix_path)
        """As it appears in logs."""
        self.idle: list[Pooled] = []
        self.gate: Gate | None = None
        """Who counts its connections, where policies limit them."""
        self.shared: SharedConnections | None = None
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

    def __init__(self, address: str, port: int, unix_path: str = "") -> None:
        super().__init__(address, port, unix_path)
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
            pool = self.pools[transport] = Pool(self.address, self.port, self.unix_path)
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
