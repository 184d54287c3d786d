"""Passive health of the endpoints of a backend (`backend.health`): who is unhealthy, who is evicted, who returns.

A `Watch` is what a worker has for one backend and the rules that cover a request to it. It learns how each try ended
and says which endpoints may be chosen. Evictions and failures in a row count once for the proxy (`link/evictions`), the
score of an endpoint is this worker's own. Nothing here waits or writes to a socket, and a backend without rules has no
watch: its requests pay nothing.

The list of usable endpoints is made when an eviction changed something, or one is over; between that a choice costs two
comparisons, however many endpoints there are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.http.statuses import SWITCHING
from dataplane.upstream import balance

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead
    from dataplane.link.evictions import Evictions, Record

NEVER: Final = float("inf")

log = logging.getLogger("dataplane.upstream")


class Eviction(NamedTuple):
    """When an endpoint is evicted and for how long (BackendEviction), as `link/evictions.Rule`."""

    duration: float = 3.0
    """Seconds; of the second eviction in a row twice as long, and so on."""
    restore: int | None = None
    """Percent of health on return; None: as it was."""
    failures: int | None = None
    """Unhealthy responses in a row that evict; 0: no number does."""
    threshold: int | None = None
    """Percent of health below which an unhealthy response evicts."""


@dataclass(frozen=True, slots=True)
class Health:
    """The rules of one policy."""

    condition: Callable[[Exchange], bool] | None = None
    """Whether a response is unhealthy; None: any 5xx is. What brings no response is unhealthy in any case."""
    eviction: Eviction | None = None
    """None: no endpoint is evicted."""


class Refused(NamedTuple):
    """An endpoint takes no more requests, for so many seconds; None: it does not say for how long."""

    seconds: float | None = None


class Events(Protocol):
    """Who counts (`telemetry/requests.Recorder`)."""

    def endpoint_failed(self, backend: str, endpoint: str) -> None:
        """A try brought no response, whatever policies there are."""

    def endpoint_unhealthy(self, backend: str, endpoint: str) -> None:
        """A try ended unhealthy, as the backend's policy has it."""

    def backend_limited(self, backend: str, limit: str) -> None:
        """A request, or another try of one, was not made because of this limit of the backend's."""

    def endpoint_evicted(self, backend: str, endpoint: str, seconds: float) -> None: ...

    def endpoint_health(self, backend: str, endpoint: str, unhealthy: int | None) -> None:
        """How unhealthy it is now, in percent, as this worker has it; None: it is gone, or not watched now."""


class Watchable(balance.Scored, Protocol):
    """An endpoint, as its health is watched."""

    label: str
    closed: bool
    members: dict[str, Member] | None
    """By key of a backend whose policies watch health; None: no such backend has it."""


WatchableT = TypeVar("WatchableT", bound=Watchable)


class Member:
    """What a worker knows of an endpoint as one of a backend's. It lives as long as the endpoint (`Endpoint.members`),
    so it outlives swaps."""

    __slots__ = ("_show", "_shown", "health", "judged_by", "record", "restored")

    def __init__(self, record: Record, show: Callable[[Member, int | None], None]) -> None:
        """`show` is called with how unhealthy the endpoint is, in percent, when that changes, and with None when it is
        gone or unwatched."""
        self.record = record
        self._show, self._shown = show, 0
        self.judged_by: Health | None = None
        """The rules by which `health` was set last."""
        self.health = 1.0
        """Sliding average over responses: 1 all were healthy, 0 none was."""
        self.restored = 0.0
        """The end of the eviction after which `health` was set last."""

    def judged(self, endpoint: Watchable, health: float, rules: Health) -> None:
        self.health, self.judged_by = health, rules
        balance.set_health(endpoint, health)
        if not endpoint.closed:  # of one that is gone it would never be taken back
            self._report(round((1 - health) * 100))

    def forget(self) -> None:
        """The endpoint is gone, or no policy watches it any more."""
        if self._shown or self.record.until():
            self._shown = 0
            self._show(self, None)

    def _report(self, unhealthy: int) -> None:
        if unhealthy != self._shown:
            self._shown = unhealthy
            self._show(self, unhealthy)


class Watched:
    """Which endpoints a worker shows as unhealthy, so that it can take that back when their policy is no more."""

    __slots__ = ("_backends",)

    def __init__(self) -> None:
        self._backends: dict[Member, str] = {}

    def shown(self, backend: str, member: Member, is_unhealthy: bool) -> None:
        if is_unhealthy:
            self._backends[member] = backend
        else:
            self._backends.pop(member, None)

    def forget(self, is_watched: Callable[[str, Health], bool]) -> None:
        """Take back what is shown of endpoints where `is_watched(backend, rules)`, of the rules that they were judged
        by last, is not true."""
        for member, backend in list(self._backends.items()):
            if member.judged_by is None or not is_watched(backend, member.judged_by):
                member.forget()

    def __bool__(self) -> bool:
        return bool(self._backends)


class Watch(Generic[WatchableT]):
    """Of one backend and one set of rules."""

    __slots__ = (
        "_backend",
        "_changes",
        "_clock",
        "_events",
        "_evictions",
        "_next",
        "_of",
        "_usable",
        "_watched",
        "rules",
    )

    def __init__(
        self,
        backend: str,
        rules: Health,
        evictions: Evictions,
        clock: Callable[[], float],
        events: Events,
        watched: Watched,
    ) -> None:
        """`backend`: its key. `clock`: monotonic seconds, the same for all workers. `watched`: those of this worker."""
        self.rules = rules
        self._watched = watched
        self._backend, self._evictions, self._clock, self._events = backend, evictions, clock, events
        self._of: Sequence[WatchableT] | None = None
        self._usable: Sequence[WatchableT] = ()
        self._changes = -1
        self._next = 0.0
        """When the next eviction is over."""

    def usable(self, endpoints: Sequence[WatchableT], far: Sequence[WatchableT] = ()) -> Sequence[WatchableT]:
        """Those of `endpoints` that are not evicted; when all are, those of `far` (which are always the same beside
        these); else all of `endpoints`."""
        if self.rules.eviction is None:
            return endpoints
        evictions = self._evictions
        if endpoints is not self._of or evictions.changes != self._changes or self._clock() >= self._next:
            self._changes, self._of = evictions.changes, endpoints
            now, self._next = self._clock(), NEVER
            self._usable = self._sorted_out(endpoints, now) or self._sorted_out(far, now) or endpoints
        return self._usable

    def has_usable(self, endpoints: Sequence[WatchableT]) -> bool:
        """Whether one of `endpoints` (not empty) is not evicted."""
        return self.rules.eviction is None or self.usable(endpoints) is not endpoints

    def is_evicted(self, endpoint: WatchableT) -> bool:
        """Whether it gets no requests at this moment."""
        return self.rules.eviction is not None and self.member(endpoint).record.until() > self._clock()

    def _sorted_out(self, endpoints: Sequence[WatchableT], now: float) -> Sequence[WatchableT]:
        usable = []
        for endpoint in endpoints:
            member = self.member(endpoint)
            until = member.record.until()
            if until > now:
                self._next = min(self._next, until)
            else:
                if until != member.restored:
                    self._restore(endpoint, member, until)
                usable.append(endpoint)
        return tuple(usable)

    def _restore(self, endpoint: WatchableT, member: Member, until: float) -> None:
        """It has returned."""
        member.restored = until
        restore = None if self.rules.eviction is None else self.rules.eviction.restore
        if restore is not None:
            member.judged(endpoint, restore / 100, self.rules)

    def answered(
        self, endpoint: WatchableT, head: ResponseHead, x: Exchange | None, refused: Refused | None = None
    ) -> None:
        """A response began with `head`. `x`: the exchange that it is for, whose values the condition may read; None:
        of a call or a mirror there is none. `refused`: it took no more requests, which is unhealthy unless the
        condition says otherwise."""
        condition = self.rules.condition
        is_unhealthy = head.status >= 500 or refused is not None
        if condition is not None:
            is_unhealthy = _holds(condition, head, x)
        self._count(endpoint, is_unhealthy, None if refused is None else refused.seconds)

    def failed(self, endpoint: WatchableT) -> None:
        """A try brought no response: no connection, a lost one, nothing in time, or what is no HTTP."""
        self._count(endpoint, True)

    def _count(self, endpoint: WatchableT, is_unhealthy: bool, asked: float | None = None) -> None:
        member = self.member(endpoint)
        if not is_unhealthy:
            if member.health < 1.0:
                member.judged(endpoint, balance.smoothed(member.health, 1.0), self.rules)
            member.record.succeeded(self._clock())
            return
        member.judged(endpoint, balance.smoothed(member.health, 0.0), self.rules)
        self._events.endpoint_unhealthy(self._backend, endpoint.label)
        eviction = self.rules.eviction
        if eviction is None:
            return
        seconds = member.record.failed(self._clock(), eviction, member.health, asked)
        if seconds:
            self._events.endpoint_evicted(self._backend, endpoint.label, seconds)
            log.info("%s: endpoint %s is evicted for %g s", self._backend, endpoint.label, seconds)

    def member(self, endpoint: WatchableT) -> Member:
        members = endpoint.members
        if members is None:
            members = endpoint.members = {}
        found = members.get(self._backend)
        if found is None:
            show = partial(self._show, endpoint.label)
            found = members[self._backend] = Member(self._evictions.record(self._backend, endpoint.label), show)
        return found

    def _show(self, label: str, member: Member, unhealthy: int | None) -> None:
        self._watched.shown(self._backend, member, bool(unhealthy))
        self._events.endpoint_health(self._backend, label, unhealthy)

    def __repr__(self) -> str:
        return f"Watch({self._backend}, {self.rules})"


def summary(endpoints: Iterable[Watchable], now: float) -> dict[str, dict[str, dict[str, float]]]:
    """What this worker knows, for the page of the operator: by backend, by endpoint. Of endpoints without a policy that
    watches them there is nothing."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for endpoint in endpoints:
        for backend, member in (endpoint.members or {}).items():
            record = member.record
            found.setdefault(backend, {})[endpoint.label] = {
                "health": round(member.health * 100),
                "evicted_for_seconds": round(max(record.until() - now, 0.0), 3),
                "evictions_in_a_row": record.evictions(),
                "failures_in_a_row": record.failures(),
            }
    return found


def _holds(condition: Callable[[Exchange], bool], head: ResponseHead, x: Exchange | None) -> bool:
    """The condition, of a response that may be let go yet: the exchange is left as it was."""
    if head.status == SWITCHING:  # nothing judges a tunnel
        return False
    if x is None:
        x = Exchange(None, b"", b"", Head(b"\r\n"), 0.0)
    status, response = x.status, x.response
    x.status, x.response = head.status, Head(head.block, head.low)
    try:
        return condition(x)
    finally:
        x.status, x.response = status, response
