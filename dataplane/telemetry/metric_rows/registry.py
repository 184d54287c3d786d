"""The metrics of all kinds of backends."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.metric_rows import a2a, dynamic, llm, mcp, rate_limit

ROWS: Final = (*a2a.ROWS, *mcp.ROWS, *llm.ROWS, *rate_limit.ROWS, *dynamic.ROWS)
