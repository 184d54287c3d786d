"""Metrics of MCP servers."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric import Metric

REQUESTS: Final = "mcp_requests_total"

ROWS: Final = (
    Metric(
        REQUESTS,
        "counter",
        "Messages of MCP clients, by method, target, tool and outcome",
        ("method", "target", "tool", "outcome"),
        1024,
        per_request=True,
    ),
)
