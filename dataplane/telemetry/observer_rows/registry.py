"""The observers of all kinds of backends, made for a worker with what counts there."""

from __future__ import annotations

from typing import Final

from dataplane.telemetry.observer import Makes
from dataplane.telemetry.observer_rows import a2a, rate_limit

OBSERVERS: Final[tuple[Makes, ...]] = (a2a.observer, rate_limit.observer)
