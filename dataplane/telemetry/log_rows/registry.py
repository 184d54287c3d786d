"""The log fields of all kinds of backends, in the order of a line."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.log_rows import a2a, llm, mcp

GROUPS: Final = (a2a.GROUP, mcp.GROUP, llm.GROUP)
