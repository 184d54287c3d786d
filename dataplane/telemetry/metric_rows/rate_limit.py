"""Metrics of limits that a rate limit service counts."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric import Metric

DROPPED: Final = "rate_limit_descriptors_dropped_total"

ROWS: Final = (
    Metric(DROPPED, "counter", "Descriptors of global rate limits that were dropped, because an expression failed", ()),
)
