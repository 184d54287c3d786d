"""A part of what a worker counted, at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.telemetry.series import Series


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`at`: nanoseconds since 1970; `start`: when counting began, 0 where that is not known (another worker had the
    numbers before)."""

    resource: tuple[tuple[str, str], ...]
    start: int
    at: int
    series: tuple[tuple[Series, list[int]], ...]
