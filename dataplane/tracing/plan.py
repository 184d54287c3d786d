"""The tracing of one Gateway (`frontend.tracing`), built when configuration changes; and how a request's trace begins.

A request of a listener without tracing costs one look at an attribute; one that is not sampled costs the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import getrandbits
from typing import TYPE_CHECKING, Final

from dataplane.tracing import context as contexts
from dataplane.tracing import sampling
from dataplane.tracing.trace import Evaluate, Muted, Trace
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.collector import Collector

_TRACE_BITS: Final = 128
_SPAN_BITS: Final = 64


def _span_id() -> str:
    """Identifiers are no secrets."""
    return f"{getrandbits(_SPAN_BITS) or 1:016x}"


@dataclass(frozen=True, slots=True)
class Share:
    """Which part of the requests: `fixed` where no request decides (a bound of `sampling`), else an expression."""

    fixed: int | None = None
    evaluate: Evaluate | None = None

    def bound(self, x: Exchange) -> int:
        """As `sampling.bound`; an expression that fails samples nothing."""
        if self.evaluate is None:
            return self.fixed or 0
        try:
            return sampling.bound(self.evaluate(x))
        except CelError:
            return 0


NEVER: Final = Share(0)
ALWAYS: Final = Share(sampling.bound(True))


@dataclass(frozen=True, slots=True)
class TracingPlan:
    """What is traced, with which attributes, and who gets it (a part of `telemetry.plan.TelemetryPlan`)."""

    collector: Collector
    random: Share = NEVER
    """Of requests without a trace."""
    client: Share = ALWAYS
    """Of requests whose caller records a trace."""
    added: tuple[tuple[str, Evaluate], ...] = ()
    """Further attributes of the span of the request."""
    removed: frozenset[str] = frozenset()
    """Default attributes that it lacks, by their names in the access log or in OTLP."""
    resources: tuple[tuple[str, Evaluate], ...] = ()
    """Attributes of the resource."""
    reads_headers: bool = False
    reads_bodies: bool = False

    def begin(self, x: Exchange) -> Trace | Muted | None:
        """What is to be traced of a request whose listener is known; None: nothing, and its headers pass as they are.

        A trace that the caller does not record passes unchanged. One that it records and that is not among
        `clientSampling` goes on marked as not recorded, so that no service further upstream records a part of it."""
        head = x.request
        parent = None
        if b"traceparent:" in head.low:
            parent = contexts.parsed(head.get_all(contexts.TRACEPARENT), head.get_all(contexts.TRACESTATE))
        if parent is not None:
            if not parent.is_sampled:
                return None
            if not sampling.continues(parent, self.client.bound(x)):
                return Muted(parent.child(parent.span_id, False))
            return Trace(self, parent.child(_span_id(), True), parent.span_id, _span_id)
        limit = self.random.bound(x)
        if not limit:
            return None
        trace = getrandbits(_TRACE_BITS)
        if not sampling.is_among(trace, limit):
            return None
        return Trace(self, contexts.root(trace, getrandbits(_SPAN_BITS)), "", _span_id)
