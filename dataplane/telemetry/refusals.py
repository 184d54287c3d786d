"""Connections of clients that were refused before anything of their protocol was read: counted each, logged at most
once a second for each reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dataplane.telemetry.requests import Recorder

log = logging.getLogger("dataplane.server")

PAUSE: Final = 1.0
"""Seconds between two lines about one reason."""


class Refusals:
    """One per worker. `clock` gives monotonic seconds."""

    __slots__ = ("_clock", "_next", "_recorder", "_since")

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._recorder, self._clock = recorder, clock
        self._next: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def refused(self, reason: str, address: str, detail: str = "") -> None:
        """A connection, from this address; `detail`: what decided. `reason` is of a table, so there are few."""
        self._recorder.connection_refused(reason)
        self._since[reason] = self._since.get(reason, 0) + 1
        now = self._clock()
        if now < self._next.get(reason, 0.0):
            return
        self._next[reason] = now + PAUSE
        log.warning(
            "connections refused (%s): %d since it was last reported; the last one is of %s%s",
            reason,
            self._since.pop(reason, 0),
            address or "a Unix socket",
            f": {detail}" if detail else "",
        )
