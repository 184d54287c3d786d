"""Connections that had to go, or could not come, because a limit was reached, and what found no place in a pool:
counted each, logged at most once a second, with who it was and who has most."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataplane.link.sources import shown

if TYPE_CHECKING:
    from dataplane.link.pools import Key
    from dataplane.telemetry.requests import Recorder

log = logging.getLogger("dataplane.server")

PAUSE: Final = 1.0
"""Seconds between two lines about one limit."""


class Shortages:
    """One per worker. `clock` gives monotonic seconds."""

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._recorder, self._clock = recorder, clock
        self._next: dict[str, float] = {}
        self._unsaid: dict[str, int] = {}
        self._closed: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    def refused(self, limit: str, address: str) -> None:
        """A new connection, from this address."""
        self._recorder.limited(limit)
        self._refused[limit] = self._refused.get(limit, 0) + 1
        self._say(limit, address)

    def closed(self, limit: str, address: str) -> None:
        """An idle connection, for the sake of a new one."""
        self._recorder.idle_closed(limit)
        self._closed[limit] = self._closed.get(limit, 0) + 1
        self._say(limit, address)

    def filled(self, pool: str, key: Key, held: int, fullest: Callable[[], tuple[Key, int]]) -> None:
        """There was no place in a pool for somebody who holds so much of it (`link/pools.Full`)."""
        self._recorder.limited(pool)
        self._unsaid[pool] = self._unsaid.get(pool, 0) + 1
        now = self._clock()
        if now < self._next.get(pool, 0.0):
            return
        self._next[pool] = now + PAUSE
        who, most = fullest()
        log.warning(
            "share of a pool is used up (%s): %d refused since it was last reported; "
            "the last one is of %s, who holds %d; %s holds most: %d",
            pool,
            self._unsaid.pop(pool),
            shown(key),
            held,
            shown(who),
            most,
        )

    def _say(self, limit: str, address: str) -> None:
        now = self._clock()
        if now < self._next.get(limit, 0.0):
            return
        self._next[limit] = now + PAUSE
        log.warning(
            "limit of connections reached (%s): %d idle ones closed, %d new ones refused since it was last reported; "
            "the last one is of %s",
            limit,
            self._closed.pop(limit, 0),
            self._refused.pop(limit, 0),
            address or "a Unix socket",
        )
