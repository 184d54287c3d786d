"""What MCP needs of an exchange and of its worker, as protocols: both are above this package."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.holder import Holder
    from dataplane.backends.mcp.memory_queue import MemoryQueue
    from dataplane.carriers import Upstream
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.credentials.sealing import Sealer
    from dataplane.exchange import Traced, Work
    from dataplane.http.heads import Head
    from dataplane.http.messages import Peer
    from dataplane.link.pools import BodyMemory
    from dataplane.link.shared import Region
    from dataplane.mcp.worker import Memory
    from dataplane.table.binds import ListenerPlan
    from dataplane.table.plans import BackendPlan, RoutePlan, RoutePolicies
    from dataplane.table.table import Table
    from dataplane.telemetry.requests import Recorder
    from dataplane.telemetry.shortages import Shortages
    from dataplane.upstream.calls import HttpCalls


class McpServices(Protocol):
    """What a worker keeps for MCP (`services.Services`)."""

    answers: MemoryQueue
    """Who waits for memory for them."""
    holder: Holder[Any, Any]  # Any: its streams, which know it, and not the other way
    """Of streams of the older transport."""
    memory: Memory
    """Of sessions."""
    sealer: Sealer
    """Seals what clients keep for us."""


class Wakes(Protocol):
    def wake_at(self, moment: float, sleeper: Any) -> None:  # Any: a Sleeper
        """As `proxy/deadlines`."""


class McpWorker(Protocol):
    """Of a worker (`proxy/context.Context`)."""

    make_future: Callable[[], Future]
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    body_memory: BodyMemory
    shortages: Shortages
    recorder: Recorder
    spawn: Callable[[Coroutine[Any, Any, None]], Any]
    deadlines: Wakes
    session_key: bytes
    """Seals what clients keep for us."""
    shares_sessions: bool
    """Other proxies may have the key, and go on with them."""
    common: Region | None
    """Memory of all workers of the proxy; None: there are no others."""
    index: int
    """Of this worker among them."""
    sockets: str
    """Folder of the Unix sockets by which the workers of the proxy ask each other; "": there are no others."""

    @property
    def calls(self) -> HttpCalls: ...

    def of_kind(self, name: str) -> McpServices: ...


class McpExchange(Protocol):
    """A request that was routed to MCP servers (`proxy/exchange.CarriedExchange`)."""

    context: McpWorker
    table: Table
    policies: RoutePolicies
    backend_plan: BackendPlan
    plan: RoutePlan
    listener: ListenerPlan
    up: Upstream | None
    measures: object
    trace: Traced | None
    method: bytes
    target: bytes
    asked_target: bytes
    scheme: bytes
    authority: bytes
    asked_host: bytes
    request: Head
    client: Peer
    peer: str
    """Address of the client."""
    host_set: bool
    reason: str
    detail: str
    attributes: dict[str, object] | None

    def lease_ready(self, up: Upstream) -> None: ...

    def may_hold(self, wanted: int) -> int: ...

    def leave(self, path: str, value: object) -> None: ...

    def reply(self, reply: Reply) -> None: ...

    def work(self, work: Coroutine[Any, Any, Any]) -> Work: ...
