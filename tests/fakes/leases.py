"""The neighbours of what lends connections to endpoints: who wants one, connections, and who opens them when asked."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from dataplane.net.writes import Writes
from dataplane.upstream.endpoint import Endpoint, Pool
from dataplane.upstream.shared import SharedConnections


class Holder:
    """One that wants a connection, and notes what it hears."""

    client: Any = None
    peer: str | None = None
    is_grpc = False

    def __init__(self, endpoint: Endpoint | None = None, method: bytes = b"GET") -> None:
        self.endpoint, self.method = endpoint, method
        self.up: Any = None
        self.leased = endpoint is not None
        if endpoint is not None:
            endpoint.pending += 1
        self.lease = self.attempt = self.length = 0
        self.counted: Any = None
        self.version, self.scheme, self.upgrade = b"HTTP/1.1", b"http", b""
        self.retries: Any = None
        self.heard: list[Any] = []

    def tries(self, *endpoints: Endpoint) -> Holder:
        """It was sent to these before."""
        self.retries = SimpleNamespace(tried=list(endpoints))
        return self

    def lease_ready(self, up: Any) -> None:
        self.heard.append(("ready", up))

    def lease_again(self, up: Any) -> None:
        self.heard.append(("again", up))

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        self.heard.append((cause, detail, others))


class Up:
    """A connection that carries one request at a time."""

    is_shared = False

    def __init__(self, pool: Pool | None = None, idle_since: float = 0.0) -> None:
        self.pool, self.idle_since = pool, idle_since
        self.is_gone = False
        self.heard: list[str] = []

    def park(self) -> None:
        self.heard.append("park")
        if self.pool is not None:
            self.pool.idle.append(self)

    def close(self) -> None:
        self.heard.append("close")
        self.is_gone = True

    def reset(self) -> None:
        self.heard.append("reset")


class Many:
    """A connection of HTTP/2 that takes so many streams."""

    def __init__(self, most: int = 100, streams: int = 0, idle_since: float = 0.0) -> None:
        self.most, self.streams, self.idle_since = most, streams, idle_since
        self.is_spent = self.is_gone = self.late = False
        self.on_capacity: Callable[[], None] = lambda: None
        self.heard: list[str] = []

    def free_streams(self) -> int:
        return 0 if self.is_spent else self.most - self.streams

    def lend(self) -> Any:
        assert self.free_streams() > 0
        self.streams += 1
        return SimpleNamespace(connection=self, is_shared=True)

    def retire(self) -> None:
        self.heard.append("retire")
        self.is_spent = True

    def close(self) -> None:
        self.heard.append("close")
        self.is_gone = True

    def is_late(self, now: float) -> bool:
        return self.late


class Opening:
    """Opens nothing by itself: `asked` has what is to be opened, with whom to tell. A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.writes = Writes(lambda call: call())
        self.asked: list[tuple[str, Pool, Callable[..., None]]] = []
        self.either: list[bool] = []
        self.dialled: list[Any] = []
        """What bytes pass through, as it was given to be opened."""
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.belonging: list[Pool] = []
        self.endpoints: set[Pool] = set()
        self.full: Any = None
        self.of_clients: dict[Any, Any] = {}
        self.left: list[Any] = []

    def connect(self, endpoint: Pool, done: Callable[..., None]) -> None:
        self.asked.append(("connect", endpoint, done))

    def open(self, endpoint: Pool, done: Callable[..., None], either: bool = False) -> None:
        self.asked.append(("open", endpoint, done))
        self.either.append(either)

    def dial(self, endpoint: Pool, connection: Any, done: Callable[[str], None]) -> None:
        self.dialled.append(connection)
        self.asked.append(("dial", endpoint, lambda _, cause: done(cause)))

    def comes(self, connection: Any, cause: str = "") -> None:
        """The first that was asked for is there, or fails."""
        self.asked.pop(0)[2](connection, cause)

    def share(self, endpoint: Pool) -> SharedConnections:
        if endpoint.shared is None:
            endpoint.shared = SharedConnections(endpoint, self)
        return endpoint.shared

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, call))

    def belongs(self, pool: Pool) -> None:
        self.belonging.append(pool)

    def client_left(self, peer: Any) -> None:
        self.left.append(peer)

    def clock(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        """Time, and timers that are due meanwhile, in their order."""
        end = self.now + seconds
        while due := [each for each in self.timers if each[0] <= end + 1e-9]:
            first = min(due, key=lambda each: each[0])
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end
