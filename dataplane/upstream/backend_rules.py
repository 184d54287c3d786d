"""What policies ask of a worker for the sake of a backend: to watch the health of its endpoints (`health`), to send
no more than so much at a time (`limits`), to choose an endpoint by a key (`hashing`), and to keep sessions where they
are (`persistence`).

A `RuleState` is made for a plan with such rules when the first request comes to it, and lives with that plan. What has
to outlive swaps is elsewhere: with the endpoints, and in the memory that workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakValueDictionary

from dataplane.upstream import gate, health
from dataplane.upstream.gate import Gate
from dataplane.upstream.hashing import Hash, Ring
from dataplane.upstream.health import Health, Refused, Watch, Watched
from dataplane.upstream.limits import Limits, Quota, Tally
from dataplane.upstream.persistence import Persistence

if TYPE_CHECKING:
    from dataplane.chain.filter import Filter
    from dataplane.exchange import Exchange
    from dataplane.http.messages import ResponseHead
    from dataplane.link.evictions import Evictions
    from dataplane.link.loads import Loads
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.opening import Connects


class Rules(NamedTuple):
    """What policies say for the sake of a backend; None: nothing."""

    health: Health | None = None
    backend_limits: Limits | None = None
    backend_hash: Hash | None = None
    session_persistence: Filter | None = None
    """The step that has read the session of a request."""

    def over(self, less: Rules | None) -> Rules:
        """These, and those of `less` where these say nothing."""
        if less is None:
            return self
        return Rules(
            self.health or less.health,
            self.backend_limits or less.backend_limits,
            self.backend_hash or less.backend_hash,
            self.session_persistence or less.session_persistence,
        )


class Events(health.Events, gate.Events, Protocol):
    """Who counts (`telemetry/requests.Recorder`)."""


class RuleState:
    """Of one plan of a backend."""

    __slots__ = ("_persistence", "_ring", "_watch", "tally")

    def __init__(
        self,
        watch: Watch[Endpoint] | None,
        tally: Tally | None,
        persistence: Persistence | None = None,
        ring: Ring | None = None,
    ) -> None:
        self._watch = watch
        self._persistence = persistence
        self._ring = ring
        self.tally = tally
        """Counts what is under way; None: nothing limits it."""

    def choosable(
        self, holder: object, backend: str, endpoints: Sequence[Endpoint], far: Sequence[Endpoint]
    ) -> Sequence[Endpoint]:
        """As `usable`, for the request of `holder`: one alone where a policy says which."""
        usable = self.usable(endpoints, far)
        if self._persistence is not None:
            usable = self._persistence.among(holder, backend, usable, lambda: self._not_evicted(far))
        return usable if self._ring is None else self._ring.among(holder, usable)

    def _not_evicted(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        watch = self._watch
        return endpoints if watch is None else [each for each in endpoints if not watch.is_evicted(each)]

    def usable(self, endpoints: Sequence[Endpoint], far: Sequence[Endpoint] = ()) -> Sequence[Endpoint]:
        """Those that may be chosen. As `health.Watch.usable`."""
        return endpoints if self._watch is None else self._watch.usable(endpoints, far)

    def has_usable(self, endpoints: Sequence[Endpoint]) -> bool:
        """As `health.Watch.has_usable`."""
        return self._watch is None or self._watch.has_usable(endpoints)

    def answered(
        self, endpoint: Endpoint, head: ResponseHead, x: Exchange | None = None, refused: Refused | None = None
    ) -> None:
        """As `health.Watch.answered`."""
        if self._watch is not None:
            self._watch.answered(endpoint, head, x, refused)

    def failed(self, endpoint: Endpoint) -> None:
        """As `health.Watch.failed`."""
        if self._watch is not None:
            self._watch.failed(endpoint)

    def __repr__(self) -> str:
        return f"RuleState({self._watch}, {self.tally})"


class RuleStates:
    """Makes them; one for each worker."""

    __slots__ = ("_clock", "_evictions", "_gates", "_loads", "events", "watched")

    def __init__(self, evictions: Evictions, loads: Loads, clock: Callable[[], float], events: Events) -> None:
        self._evictions, self._loads, self._clock, self.events = evictions, loads, clock, events
        self.watched = Watched()
        """Endpoints whose health is shown."""
        self._gates: WeakValueDictionary[Quota, Gate] = WeakValueDictionary()
        """As long as there is a connection pool that has one."""

    def of(self, backend: str, rules: Rules) -> RuleState:
        """`backend`: its key."""
        watch: Watch[Endpoint] | None = None
        tally: Tally | None = None
        if rules.health is not None:
            watch = Watch(backend, rules.health, self._evictions, self._clock, self.events, self.watched)
        if rules.backend_limits is not None and rules.backend_limits.counts_requests:
            tally = Tally(backend, rules.backend_limits, self._loads)
        persistence = None if rules.session_persistence is None else Persistence()
        return RuleState(watch, tally, persistence, None if rules.backend_hash is None else Ring(rules.backend_hash))

    def gate(self, quota: Quota, connects: Connects) -> Gate:
        """The one for these limits."""
        gate = self._gates.get(quota)
        if gate is None:
            gate = self._gates[quota] = Gate(quota, self._loads, connects, self._clock, self.events)
        return gate
