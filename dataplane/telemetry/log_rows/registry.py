"""Log fields that few requests have, those of kinds of backends among them, in the order of a line."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.log_rows import a2a, dynamic, llm, mcp, tracing

GROUPS: Final = (tracing.GROUP, a2a.GROUP, mcp.GROUP, llm.GROUP, dynamic.GROUP)
ANSWERS: Final = tuple(name for group in GROUPS for name in group.answers)
