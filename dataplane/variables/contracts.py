"""What variables read of services, plans and endpoints, all of which stand above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dataplane.http.rules import HttpRules
    from dataplane.link.pools import BodyMemory


class Services(Protocol):
    """What the exchanges of one worker share, as policies and expressions use it (`proxy/context.Context`)."""

    @property
    def clock(self) -> Callable[[], float]:
        """Monotonic seconds."""

    @property
    def make_future(self) -> Callable[[], Any]:  # Any: asyncio's, which no package of this layer imports
        """A future of the worker's loop."""

    @property
    def turns(self) -> ComputingTurns:
        """Those of the worker's loop."""

    @property
    def body_memory(self) -> BodyMemory:
        """For bodies that are held."""


class ComputingTurns(Protocol):
    """What is read of `net.turns.Turns`, which knows no expressions."""

    number: int
    is_costly: bool

    def add(self, waiting: Any, source: str = "", /) -> None:  # Any: `net.turns.Waiting`
        """`waiting` goes on in the next turn."""

    def has_time(self) -> bool:
        """Whether work of unknown length may go on in this turn; else it asks for another one (`add`)."""

    def has_gone_on(self, *sources: str) -> None:
        """It did, for these peers."""

    def compute(self, *sources: str) -> int:
        """An evaluation is about to take long, for these peers. Which turn this is."""

    def is_full(self, *sources: str) -> bool:
        """Nothing that can wait or be left out is computed for one of these peers any more in this turn."""


class ListenerFacts(Protocol):
    """What is read of a `binds.ListenerPlan` below the tables."""

    key: str
    name: str
    gateway: str
    port: int
    log: str
    log_json: str
    http: HttpRules

    @property
    def telemetry(self) -> TelemetryFacts | None:
        """What its Gateway wants to know of exchanges; None: no policy says so."""


class TelemetryFacts(Protocol):
    """What is read of a `telemetry.plan.TelemetryPlan` below that package."""

    @property
    def reads_bodies(self) -> bool: ...


class RouteFacts(Protocol):
    """What is read of a `plans.RoutePlan` below the tables."""

    key: str
    log: str
    log_json: str
    rule: str
    rule_index: int
    kind: str


class BackendFacts(Protocol):
    """What is read of a `plans.BackendPlan` below the tables."""

    key: str

    @property
    def type(self) -> str: ...

    @property
    def protocol(self) -> str: ...


class EndpointFacts(Protocol):
    """What is read of an `upstream.endpoint.Endpoint` here."""

    @property
    def label(self) -> str: ...
