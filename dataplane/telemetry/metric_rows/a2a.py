"""Metrics of A2A agents."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric import Metric

REQUESTS: Final = "a2a_requests_total"

ROWS: Final = (
    Metric(
        REQUESTS,
        "counter",
        "Calls of A2A agents ended, by method, last state of the task and outcome: answered, error, denied, failed",
        ("method", "state", "outcome"),
        512,
        per_request=True,
    ),
)
