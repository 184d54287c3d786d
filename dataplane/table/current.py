"""The one reference that a swap changes."""

from __future__ import annotations

from dataplane.table.table import Table


class Current:
    """`table` is read once per exchange and assigned once per swap, both on the loop's thread."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table = Table()

    def __repr__(self) -> str:
        return f"Current(version={self.table.version})"
