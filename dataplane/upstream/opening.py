"""Who opens connections to endpoints, as those who want one see it (`connector.Connector`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.upstream.connections import Pooled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dataplane.http.messages import Peer
    from dataplane.link.pools import Full
    from dataplane.net.writes import Writes
    from dataplane.upstream.connections import Shared
    from dataplane.upstream.endpoint import Endpoint, Pool, Streams
    from dataplane.upstream.raw_end import RawEnd
    from dataplane.upstream.settings import Client, Transport, Tunnel


class NotOpened(Exception):
    """A connection was not opened. The text is for log and answer; `reason` says it without names."""

    outcome = "failed"
    """As it is counted (`connector.Count.upstream_opened`)."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class TunnelFailed(NotOpened):
    """A forward proxy gave no tunnel. `reason` is of few kinds, whatever a proxy sends."""

    outcome = "tunnel"


class NoTunnel(str):
    """Why there is no connection, where it is for want of a tunnel: text that passes through code that waits for a
    connection as any other, and is recognized at the end (`cause_of`)."""

    __slots__ = ()


def cause_of(detail: str) -> str:
    """The cause of a connection that could not be opened: "tunnel" or "connect"."""
    return "tunnel" if isinstance(detail, NoTunnel) else "connect"


class Opens(Protocol):
    """Connections that carry one request at a time."""

    def connect(self, endpoint: Pool, done: Callable[[Pooled | None, str], None]) -> None:
        """Open a connection; `done(connection, "")` or `done(None, cause)` is called."""

    def later(self, seconds: float, call: Callable[[], None]) -> Any: ...  # the loop's handle, or a fake's

    def belongs(self, pool: Pool) -> None:
        """Its connections are for one client: it is retired when `Dials.client_left` says so."""


class OpensStreams(Opens, Protocol):
    """And those whose streams are lent."""

    full: Full | None
    """Called for each client that finds no place among those who wait."""

    def share(self, endpoint: Pool) -> Streams:
        """Those of HTTP/2 of a pool that has had none; from then on they are `endpoint.shared`."""


class Connects(OpensStreams, Protocol):
    """And the opening of the latter."""

    writes: Writes
    """Of the worker: with its turns."""

    @property
    def endpoints(self) -> Collection[Pool]:
        """Those that connections were opened to, and may still be open."""

    def open(self, endpoint: Pool, done: Callable[[Shared | None, str], None], either: bool = False) -> None:
        """Open a connection of HTTP/2; `done(connection, "")` or `done(None, cause)` is called. `either`: the server
        may choose HTTP/1.1; the cause is then `connections.SPEAKS_HTTP1`."""

    def clock(self) -> float:
        """Monotonic seconds."""


class Forwards(Pooled, Protocol):
    """A connection to a forward proxy whose requests are in absolute form (`dial/forwarded.ForwardedConnection`)."""

    credentials: bytes
    """Header lines for the proxy, with every request."""
    proxy: str
    """Its name in messages."""


class Proxies(Protocol):
    """Forward proxies that tunnels lead through (`dial/proxies.Proxies`)."""

    def named(self, host: bytes, port: int) -> Sequence[Endpoint]:
        """A name as the endpoint that it is behind a proxy: the proxy resolves it."""

    def way(self, transport: Transport) -> Transport:
        """The same with what the proxy's plan says now, for finding connections that were made so."""

    def forwarding(self, pool: Pool, writes: Writes, closed: Callable[[], None]) -> Forwards:
        """What carries requests in absolute form, not connected yet. `closed()`: it is gone, once it was."""

    async def open(
        self,
        tunnel: Tunnel,
        host: str,
        port: int,
        make: Callable[[], Any],
        forwarded: Forwards | None = None,
    ) -> Any:
        """Connect a protocol that `make` makes to `host` and `port` through the proxy; its transport (asyncio's by
        shape). `forwarded`: what `make` gives, where it sends requests for them to the proxy itself. Raises
        `NotOpened`."""


class Tunnels(Protocol):
    """Tunnels of a mesh (`dial/hbone.Tunnels`)."""

    async def open(self, address: str, port: int, workload: str, make: Callable[[], Any]) -> Any:
        """Connect a protocol that `make` makes to a port of a workload; its transport. Raises `NotOpened`."""


class Dials(Connects, Protocol):
    """And connections whose bytes are no requests."""

    proxies: Proxies | None
    """Of tunnels; None until they are put together."""

    before_opening: Callable[[], None]
    """Called before each connection is opened: others may have to be closed for it."""

    @property
    def of_clients(self) -> Mapping[Client, Sequence[Pool]]:
        """Connections that are made for one client alone; empty where no policy asks for that."""

    def client_left(self, peer: Peer) -> None:
        """The connection of this client is gone."""

    def dial(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None]) -> None: ...
