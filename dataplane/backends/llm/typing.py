"""What LLM providers need of an exchange and of its worker, as protocols: both are above this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.backends.terminating.contract import Routed, Services
from dataplane.chain.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dataplane.http.heads import Head
    from dataplane.table.plans import BackendPlan, RoutePolicies
    from dataplane.table.table import Table
    from dataplane.telemetry.requests import Recorder
    from dataplane.variables import ListenerFacts


class Shares(Turns, Protocol):
    """Of the turns of a worker's loop (`net/turns.Turns`)."""

    def begin(self) -> bool: ...

    def is_spent(self) -> bool: ...


class LlmServices(Services, Protocol):
    """Of a worker (`proxy/context.Context`)."""

    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    random: Callable[[], float]
    recorder: Recorder
    spawn: Callable[[Coroutine[Any, Any, None]], Any]

    @property
    def turns(self) -> Shares: ...


class Keeps(Protocol):
    """The content of a request, for another try (`proxy/attempt/replay.BodyCopy`)."""

    def no_more_tries(self) -> None: ...


class LlmExchange(Routed, Protocol):
    """A request that was routed to LLM providers (`proxy/exchange.CarriedExchange`)."""

    @property
    def context(self) -> LlmServices: ...

    @property
    def listener(self) -> ListenerFacts | None: ...

    table: Table
    policies: RoutePolicies
    backend_plan: BackendPlan
    path: bytes
    query: bytes
    started: float
    reason: str
    detail: str
    measures: object
    status: int
    response: Head | None
    retries: object | None
    body_copy: Keeps | None
    attempt_deadline: float
    attributes: dict[str, object] | None

    def leave(self, path: str, value: object) -> None: ...
