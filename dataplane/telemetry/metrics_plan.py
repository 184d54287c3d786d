"""What a Gateway wants of metrics (`frontend.metrics`): further labels of those about requests, and who gets them all.

Built when configuration changes (`filters/frontend/metrics`), kept by each listener's plan. Labels are evaluated once
for each request, when it has ended (`measures`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataplane.telemetry.log_values import json_of
from gatewright.cel.errors import CelError
from gatewright.cel.values import NONE

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.telemetry.collector import Collector
    from dataplane.telemetry.metric import Extra

Evaluate = Callable[["Exchange"], Any]
"""The value of an expression on an exchange that ended. Raises CelError."""

UNKNOWN: Final = "unknown"
"""Of a label whose expression fails, or has no value."""


@dataclass(frozen=True, slots=True)
class MetricsPlan:
    """The metrics of one Gateway (a part of `telemetry.plan.TelemetryPlan`)."""

    labels: tuple[tuple[str, Evaluate], ...] = ()
    value_bytes: int = 0
    """Of each value of a label; what is longer is cut."""
    collector: Collector | None = None
    """The collector that gets all metrics; None: only the page for Prometheus has them."""
    interval: float = 60.0
    """Seconds between two messages to it."""
    reads_headers: bool = False
    reads_bodies: bool = False

    def extra(self, x: Exchange) -> Extra:
        """Further labels of an exchange that ended, and their values."""
        return tuple((name, self._value(evaluate, x)) for name, evaluate in self.labels)

    def _value(self, evaluate: Evaluate, x: Exchange) -> str:
        try:
            value = evaluate(x)
            if value is None or value is NONE:
                return UNKNOWN
            text = str(value) if isinstance(value, str) else (json_of(value) or UNKNOWN)
        except CelError:
            return UNKNOWN
        return text.encode("utf-8", "replace")[: self.value_bytes].decode("utf-8", "ignore")
