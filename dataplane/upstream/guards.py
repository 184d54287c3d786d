"""What policies ask of a worker for the sake of a backend: to watch the health of its endpoints (`health`).

A `Guard` is made for a plan with such rules when the first request comes to it, and lives with that plan. What has to
outlive swaps is elsewhere: with the endpoints, and in the memory that workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dataplane.upstream.health import Events, Health, Watch

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.http.messages import ResponseHead
    from dataplane.link.evictions import Evictions
    from dataplane.upstream.endpoint import Endpoint


class Rules(NamedTuple):
    """What policies say for the sake of a backend; None: nothing."""

    health: Health | None = None

    def over(self, less: Rules | None) -> Rules:
        """These, and those of `less` where these say nothing."""
        return self if less is None else Rules(self.health or less.health)


class Guard:
    """Of one plan of a backend."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch

    def usable(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Those that may be chosen."""
        return endpoints if self._watch is None else self._watch.usable(endpoints)

    def answered(self, endpoint: Endpoint, head: ResponseHead, x: Exchange | None = None) -> None:
        """As `health.Watch.answered`."""
        if self._watch is not None:
            self._watch.answered(endpoint, head, x)

    def failed(self, endpoint: Endpoint) -> None:
        """As `health.Watch.failed`."""
        if self._watch is not None:
            self._watch.failed(endpoint)

    def __repr__(self) -> str:
        return f"Guard({self._watch})"


class Guards:
    """Makes them; one for each worker."""

    __slots__ = ("_clock", "_evictions", "events")

    def __init__(self, evictions: Evictions, clock: Callable[[], float], events: Events) -> None:
        self._evictions, self._clock, self.events = evictions, clock, events

    def of(self, backend: str, rules: Rules) -> Guard:
        """`backend`: its key."""
        health = rules.health
        return Guard(None if health is None else Watch(backend, health, self._evictions, self._clock, self.events))
