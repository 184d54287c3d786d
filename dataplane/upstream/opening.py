"""Who opens connections to endpoints, as those who want one see it (`connector.Connector`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dataplane.http.messages import Peer
    from dataplane.upstream.connections import Pooled, Shared
    from dataplane.upstream.endpoint import Pool, Streams
    from dataplane.upstream.raw_end import RawEnd
    from dataplane.upstream.settings import Client


class Opens(Protocol):
    """Connections that carry one request at a time."""

    def connect(self, endpoint: Pool, done: Callable[[Pooled | None, str], None]) -> None:
        """Open a connection; `done(connection, "")` or `done(None, cause)` is called."""

    def later(self, seconds: float, call: Callable[[], None]) -> Any: ...  # the loop's handle, or a fake's

    def belongs(self, pool: Pool) -> None:
        """Its connections are for one client: it is retired when `Dials.client_left` says so."""


class OpensStreams(Opens, Protocol):
    """And those whose streams are lent."""

    def share(self, endpoint: Pool) -> Streams:
        """Those of HTTP/2 of a pool that has had none; from then on they are `endpoint.shared`."""


class Connects(OpensStreams, Protocol):
    """And the opening of the latter."""

    @property
    def endpoints(self) -> Collection[Pool]:
        """Those that connections were opened to, and may still be open."""

    def open(self, endpoint: Pool, done: Callable[[Shared | None, str], None], either: bool = False) -> None:
        """Open a connection of HTTP/2; `done(connection, "")` or `done(None, cause)` is called. `either`: the server
        may choose HTTP/1.1; the cause is then `connections.SPEAKS_HTTP1`."""

    def clock(self) -> float:
        """Monotonic seconds."""


class Dials(Connects, Protocol):
    """And connections whose bytes are no requests."""

    before_opening: Callable[[], None]
    """Called before each connection is opened: there may have to be room for it."""

    @property
    def of_clients(self) -> Mapping[Client, Sequence[Pool]]:
        """Connections that are made for one client alone; empty where no policy asks for that."""

    def client_left(self, peer: Peer) -> None:
        """The connection of this client is gone."""

    def dial(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None]) -> None: ...
