"""Revisions of the protocol, by their dates."""

from __future__ import annotations

from typing import Final

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Those with sessions, oldest first."""
KNOWN: Final = frozenset(LEGACY)
NEWEST: Final = LEGACY[-1]
UNSPOKEN: Final = "2025-03-26"
"""What a request is of that names none (MCP 2025-06-18, Transports)."""


def lowest(versions: list[str]) -> str:
    """What all of these speak: dates sort as text."""
    return min(versions)
