"""Metrics of dynamic forward proxies."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric import Metric

KNOWN: Final = "forward_destinations"
LOOK_UPS: Final = "forward_look_ups_total"

ROWS: Final = (
    Metric(KNOWN, "gauge", "Destinations that dynamic forward proxies remember"),
    Metric(LOOK_UPS, "counter", "Names of such destinations that were looked up, by outcome", ("outcome",), 4),
)
