"""Endpoints that are not well, as one worker sees them: why connections to them fail, how unhealthy they are, until
when they are evicted. For the operator's pages and for the control plane (`messages.Troubles`); nothing decides by it.

Written when a connection fails or a health changes, never for a request that is answered well. An entry goes when a
connection comes, the endpoint is healthy again or gone, and `FORGET` seconds after its last failure. Bounded: an
endpoint too many takes the place of the one that failed longest ago.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dataplane.link.messages import Trouble

MOST_ENDPOINTS: Final = 128
MOST_BACKENDS: Final = 8
"""Named of one endpoint."""
LONGEST: Final = 256
"""Characters of a name or reason."""
FORGET: Final = 60.0
"""Seconds after which a failure says nothing about now: the connection that shows so may be another worker's."""
PAUSE: Final = 1.0
"""Seconds between two reports at least, for each `ROWS_OF_PAUSE` rows that the one before had: a report has all."""
ROWS_OF_PAUSE: Final = 128
PAUSE_OF_COUNTS: Final = 10.0
"""The same, where nothing but the number of failures is another one."""

NO_BACKEND: Final = ""
"""Of a failure that no try was made for, or none was judged by yet: the other one of two that raced."""


@dataclass(slots=True)
class _Entry:
    """What is known of one endpoint of one backend."""

    unhealthy: int = 0
    evicted_until: float = 0.0
    server_name: str = ""
    reason: str = ""
    failures: int = 0
    last_failure: float = 0.0

    def fail(self, server_name: str, reason: str, now: float, failures: int = 1) -> None:
        self.server_name, self.reason, self.last_failure = server_name, reason, now
        self.failures += failures

    def recover(self) -> None:
        self.server_name = self.reason = ""
        self.failures, self.last_failure = 0, 0.0

    def is_well(self, now: float) -> bool:
        return not self.failures and not self.unhealthy and self.evicted_until <= now


class Troubles:
    """One per worker. `clock`: monotonic seconds, the same for all processes of the proxy."""

    __slots__ = ("_clock", "_counted_at", "_due", "_has_counts", "_has_news", "_of")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._of: dict[str, dict[str, _Entry]] = {}
        """By endpoint, by backend; the endpoint that had something new last is the last one."""
        self._has_news = self._has_counts = False
        self._due = self._counted_at = 0.0

    def connection_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        """`server_name`: that of TLS, or ""."""
        name, why = server_name[:LONGEST], reason[:LONGEST]
        found = self._entry(endpoint, NO_BACKEND)
        is_known = any((each.server_name, each.reason) == (name, why) for each in self._of[endpoint[:LONGEST]].values())
        found.fail(name, why, self._clock())
        self._note(not is_known)

    def try_failed(self, backend: str, endpoint: str) -> None:
        """A try of `backend` brought no response: a failure of the connection, if there was one, was that try's."""
        backends = self._of.get(endpoint[:LONGEST])
        failed = None if backends is None else backends.pop(NO_BACKEND, None)
        if backends is not None and failed is not None and failed.failures:
            self._note(backend not in backends)
            found = self._entry(endpoint, backend)
            found.fail(failed.server_name, failed.reason, failed.last_failure, failed.failures)

    def connected(self, endpoint: str, server_name: str) -> None:
        """A connection came: those with this name work again."""
        for entry in self._of.get(endpoint[:LONGEST], {}).values():
            if entry.failures and entry.server_name == server_name[:LONGEST]:
                entry.recover()
                self._has_news = True

    def health(self, backend: str, endpoint: str, unhealthy: int) -> None:
        """In percent; 0: it is well."""
        if unhealthy or backend in self._of.get(endpoint[:LONGEST], ()):
            entry = self._entry(endpoint, backend)
            self._note(not (entry.unhealthy and unhealthy))
            entry.unhealthy = unhealthy

    def unwatched(self, backend: str, endpoint: str) -> None:
        """It is gone, or no policy watches it any more: it counts as not evicted."""
        entry = self._of.get(endpoint[:LONGEST], {}).get(backend)
        if entry is not None:
            entry.unhealthy, entry.evicted_until = 0, 0.0
            self._has_news = True

    def evicted(self, backend: str, endpoint: str, seconds: float) -> None:
        self._entry(endpoint, backend).evicted_until = self._clock() + seconds
        self._has_news = True

    def report(self) -> tuple[Trouble, ...] | None:
        """As `rows`, when there is something new and it is time to say it; else None."""
        now = self._clock()
        self._clean(now)
        is_due = self._has_news or (self._has_counts and now >= self._counted_at + PAUSE_OF_COUNTS)
        if not is_due or now < self._due:
            return None
        self._has_news = self._has_counts = False
        rows = self.rows()
        self._due, self._counted_at = now + PAUSE * max(1.0, len(rows) / ROWS_OF_PAUSE), now
        return rows

    def rows(self) -> tuple[Trouble, ...]:
        """All entries, those of the endpoint that had something new last first."""
        return tuple(
            Trouble(
                backend,
                endpoint,
                entry.unhealthy,
                entry.evicted_until,
                entry.server_name,
                entry.reason,
                entry.failures,
                entry.last_failure,
            )
            for endpoint, backends in reversed(self._of.items())
            for backend, entry in backends.items()
        )

    def _note(self, is_news: bool) -> None:
        self._has_news |= is_news
        self._has_counts = True

    def _entry(self, endpoint: str, backend: str) -> _Entry:
        name = endpoint[:LONGEST]
        backends = self._of.pop(name, None)
        if backends is None:
            backends = {}
            if len(self._of) >= MOST_ENDPOINTS:
                del self._of[next(iter(self._of))]
        self._of[name] = backends
        found = backends.get(backend)
        if found is None:
            if len(backends) >= MOST_BACKENDS:
                del backends[next(iter(backends))]
            found = backends[backend] = _Entry()
        return found

    def _clean(self, now: float) -> None:
        """Drop what is over."""
        for endpoint, backends in list(self._of.items()):
            for backend, entry in list(backends.items()):
                if entry.evicted_until and entry.evicted_until <= now:
                    entry.evicted_until = 0.0
                    self._has_news = True
                if entry.failures and now - entry.last_failure > FORGET:
                    entry.recover()
                    self._has_news = True
                if entry.is_well(now):
                    del backends[backend]
            if not backends:
                del self._of[endpoint]
