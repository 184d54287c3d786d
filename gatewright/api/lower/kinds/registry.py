"""The kinds of backends as rows: how each becomes wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gatewright.api.lower.kinds.ai import Ai
from gatewright.api.lower.kinds.aws import Aws
from gatewright.api.lower.kinds.dynamic import Dynamic
from gatewright.api.lower.kinds.kind import Kind
from gatewright.api.lower.kinds.mcp import Mcp
from gatewright.api.lower.kinds.static import Agent, Static

_ROWS: Final[tuple[Kind, ...]] = (Static(), Mcp(), Ai(), Agent(), Aws(), Dynamic())

ROWS: Final[Mapping[str, Kind]] = {row.facts.name: row for row in _ROWS}
"""By name: a row of `checks/backend_kinds.KINDS` that works has one here."""


def of_object(spec: Any, rows: Mapping[str, Kind] = ROWS) -> tuple[Kind, Any] | None:
    """The kind of a GatewayBackend and its model; None: it is none that works."""
    return next(
        ((row, model) for row in rows.values() if (model := getattr(spec, row.facts.name, None)) is not None), None
    )


def of_file(written: Any, rows: Mapping[str, Kind] = ROWS) -> tuple[Kind, Any] | None:
    """The same for a backend of the standalone file, or what has a host in it."""
    for row in rows.values():
        found = getattr(written, row.facts.file_field, None)
        if found is not None:
            return row, row.of_file(found)
    return None
