"""What a listener's Gateway wants to know of exchanges: the parts of its telemetry, each of a policy of its own.

Built with the listener's plan (`table/policies`), from rows of the registry of policies whose field is
`telemetry.<part>`. Who makes lines, spans or series of exchanges is one of `Context.observers`, and finds its part
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dataplane.exchange import Exchange, Traced
    from dataplane.telemetry.log_plan import LogPlan
    from dataplane.telemetry.measures import Measured
    from dataplane.telemetry.metrics_plan import MetricsPlan


class Reads(Protocol):
    """What each part says of what it needs."""

    @property
    def reads_headers(self) -> bool:
        """Headers of the response: they are kept, also where no policy edits them."""

    @property
    def reads_bodies(self) -> bool:
        """Bodies that policies read are kept until the observers are done."""


class Traces(Reads, Protocol):
    """`tracing/plan.TracingPlan`."""

    def begin(self, x: Exchange) -> Traced | None:
        """What is to be traced of a request whose listener is known; None: nothing."""


@dataclass(frozen=True, slots=True)
class TelemetryPlan:
    """None: no policy says anything of that part, and its default holds."""

    log: LogPlan | None = None
    tracing: Traces | None = None
    metrics: MetricsPlan | None = None

    @property
    def reads_headers(self) -> bool:
        """Whether any part does."""
        return any(part.reads_headers for part in (self.log, self.tracing, self.metrics) if part is not None)

    @property
    def reads_bodies(self) -> bool:
        """Whether any part does."""
        return any(part.reads_bodies for part in (self.log, self.tracing, self.metrics) if part is not None)


def log_of(x: Exchange) -> LogPlan | None:
    """What is said of its line; None: nothing."""
    if x.listener is None:
        return None
    plan: TelemetryPlan | None = x.listener.telemetry  # type: ignore[assignment]  # above the package of its facts
    return None if plan is None else plan.log


def metrics_of(x: Measured) -> MetricsPlan | None:
    """What is wanted of its metrics; None: nothing."""
    if x.listener is None:
        return None
    plan: TelemetryPlan | None = x.listener.telemetry  # type: ignore[assignment]  # as above
    return None if plan is None else plan.metrics
