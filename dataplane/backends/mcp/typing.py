"""What MCP needs of an exchange and of its worker, as protocols: both are above this package."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.holder import Holder
    from dataplane.carriers import Upstream
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Work
    from dataplane.http.body import Room
    from dataplane.http.heads import Head
    from dataplane.http.messages import Peer
    from dataplane.mcp.sealing import Sealer
    from dataplane.mcp.worker import Memory
    from dataplane.table.binds import ListenerPlan
    from dataplane.table.plans import BackendPlan, RoutePlan, RoutePolicies
    from dataplane.table.table import Table
    from dataplane.telemetry.requests import Recorder
    from dataplane.upstream.calls import HttpCalls


class McpServices(Protocol):
    """Of a worker (`proxy/context.Context`)."""

    make_future: Callable[[], Future]
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    room: Room
    recorder: Recorder
    spawn: Callable[[Coroutine[Any, Any, None]], Any]

    @property
    def calls(self) -> HttpCalls: ...

    @property
    def sealer(self) -> Sealer: ...

    @property
    def mcp_memory(self) -> Memory: ...

    @property
    def mcp_holder(self) -> Holder[Any, Any]: ...  # Any: its streams, which know it, and not the other way


class McpExchange(Protocol):
    """A request that was routed to MCP servers (`proxy/exchange.CarriedExchange`)."""

    context: McpServices
    table: Table
    policies: RoutePolicies
    backend_plan: BackendPlan
    plan: RoutePlan
    listener: ListenerPlan
    up: Upstream | None
    method: bytes
    target: bytes
    asked_target: bytes
    scheme: bytes
    authority: bytes
    asked_host: bytes
    request: Head
    client: Peer
    host_set: bool
    reason: str
    detail: str
    attributes: dict[str, object] | None

    def lease_ready(self, up: Upstream) -> None: ...

    def may_hold(self, wanted: int) -> int: ...

    def leave(self, path: str, value: object) -> None: ...

    def reply(self, reply: Reply) -> None: ...

    def work(self, work: Coroutine[Any, Any, Any]) -> Work: ...
