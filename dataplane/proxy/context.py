"""What one worker's exchanges share: the capabilities and counters that the request path uses."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dataplane.http import connection_rules
from dataplane.http.connection_rules import ConnectionRules
from dataplane.http.rules import DEFAULT, HttpRules
from dataplane.link.loads import Loads
from dataplane.link.pools import BodyMemory
from dataplane.link.shared import Region
from dataplane.net.crowd import Crowd
from dataplane.proxy.in_flight import InFlight
from dataplane.table.binds import BindPlan, choose
from dataplane.telemetry.handshakes import HandshakeLog
from dataplane.telemetry.observer_rows.registry import OBSERVERS
from dataplane.telemetry.refusals import Refusals
from dataplane.telemetry.shortages import Shortages
from dataplane.tls.handshakes import Handshakes
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.dial.proxies import Proxies
from dataplane.upstream.look_ups import LookUp, not_asked
from dataplane.upstream.own_pages import OwnPages

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.export.exporters import Exporters
    from dataplane.export.logs import LogExports
    from dataplane.export.tracing import SpanObserver
    from dataplane.http.messages import Peer
    from dataplane.net.turns import Turns
    from dataplane.net.writes import Writes
    from dataplane.proxy.deadlines import Deadlines
    from dataplane.table.current import Current
    from dataplane.telemetry.access_log import AccessLog
    from dataplane.telemetry.connections import ConnectionRecord
    from dataplane.telemetry.log_plan import LogPlan
    from dataplane.telemetry.observer import Makes, Observer
    from dataplane.telemetry.requests import Recorder
    from dataplane.upstream.kinds import Kind, Services
    from dataplane.upstream.lease import Leases, Resolves

log = logging.getLogger("dataplane.proxy")


_UNBOUNDED = 2**31


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Of the process: what requests that name their destination may reach, and what not."""

    allow: tuple[str, ...] = ()
    """Networks that are allowed whatever they are."""
    api_server: tuple[str, ...] = ()
    """Addresses of the cluster's API server."""
    own: OwnPages = field(default_factory=OwnPages)
    """The proxy's pages, which are allowed by nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a downstream connection (FrontendHTTP). Bytes and seconds."""

    max_headers: int = 100
    max_head: int = 65_536
    """Request line and header lines."""
    max_line: int = 32_768
    """Request line; in HTTP/2 the target."""
    max_header_list: int = 16_384
    """HTTP/2: all fields of a head, decoded, each with 32 bytes on top (RFC 9113 6.5.2)."""
    max_streams: int = 100
    """HTTP/2: requests of one connection at the same time."""
    header_timeout: float = 10.0
    idle_timeout: float = 600.0
    half_closed: float = 30.0
    """Seconds without a byte of response after which a client that has ended its sending side counts as gone."""
    content_buffer: int = 65_536
    """Bytes of content taken in before there is somewhere to send them."""
    buffered_bodies: int = 268_435_456
    """Bytes of request bodies that one worker buffers for steps that read them and for other tries, of all its
    clients."""
    body_timeout: float = 60.0
    """Seconds for a body that a step waits for, beside what `body_rate` grants."""
    body_rate: int = 16_384
    """Bytes of such a body that prolong its time by a second."""
    write_buffer: int = 65_536
    """Bytes waiting for a slow reader before the other side is asked to stop."""
    linger: float = 1.0
    """Seconds that a refused client's remaining bytes are read and dropped, so that it can read our answer."""


def _request_ids() -> Callable[[], bytes]:
    """Unique ids in the form of a UUID: a random prefix per worker and a counter; no entropy is drawn per request."""
    prefix = f"{random.SystemRandom().getrandbits(80):020x}"
    head = f"{prefix[:8]}-{prefix[8:12]}-4{prefix[13:16]}-8{prefix[17:20]}-"
    counter = 0

    def next_id() -> bytes:
        nonlocal counter
        counter += 1
        return b"%b%012x" % (start, counter)

    start = head.encode()
    return next_id


class _LogExports:
    """Records of the access log for collectors (`telemetry/access_log.Exports`), made when there is one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: LogExports | None = None

    @property
    def _exports(self) -> LogExports:
        if self._made is None:
            from dataplane.export.logs import LogExports  # most workers have no collector

            self._made = LogExports(self._context.exporters)
        return self._made

    def line(self, plan: LogPlan, x: Exchange, seconds: float, at: int) -> None:
        self._exports.line(plan, x, seconds, at)

    def connection(self, plan: LogPlan, record: ConnectionRecord, seconds: float, at: int) -> None:
        self._exports.connection(plan, record, seconds, at)


def _no_binds(bind: str, transport: Any, peer: Peer) -> None:
    raise RuntimeError("no connections are taken here")


@dataclass(slots=True)
class Context:
    """One per worker."""

    current: Current
    deadlines: Deadlines
    leases: Leases
    access_log: AccessLog
    recorder: Recorder
    writes: Writes
    spawn: Callable[[Coroutine[Any, Any, None]], Any]
    """Run a coroutine as a Task that is watched and ended with the worker."""
    make_future: Callable[[], Any]
    call_soon: Callable[[Callable[[], None]], Any]
    """Run a function when the present events are handled."""
    limits: Limits = Limits()
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    request_id: Callable[[], bytes] = field(default_factory=_request_ids)
    draining: bool = False
    listening: dict[tuple[str, int], str] = field(default_factory=dict)
    """Where this proxy listens, as `server/raw/loops.Listening`."""
    loads: Loads = field(default_factory=Loads.local)
    """What the workers of the proxy carry."""
    descriptors: Callable[[], int] = lambda: _UNBOUNDED
    """File descriptors that this worker has for connections, of clients and to endpoints."""
    enter: Callable[[str, Any, Peer], None] = _no_binds
    """Take a connection to the bind with this key that did not come by one of its sockets: its transport (asyncio's by
    shape), and who is at the other end (`server/inner`)."""
    observer_rows: Sequence[Makes] = OBSERVERS
    """Those of kinds of backends."""
    _exporters: Exporters | None = None
    _spans: SpanObserver | None = None
    observers: tuple[Observer, ...] = field(init=False)
    """They see each exchange that has ended, in this order."""
    more_observers: tuple[Observer, ...] = field(init=False)
    """The same, and who sees only exchanges of which something was noted: others cost them nothing."""
    connections: Crowd[Any] = field(init=False)
    """Of clients."""
    admitted: int = 0
    """Requests in flight, of those that count (`proxy/request/admission`)."""
    shortages: Shortages = field(init=False)
    handshakes: Handshakes = field(init=False)
    """Of clients: when their steps are taken,"""
    handshake_log: HandshakeLog = field(init=False)
    """and what is said of them."""
    refusals: Refusals = field(init=False)
    wall_clock: Callable[[], float] = time.time
    """Seconds since the epoch: for what is dated."""
    session_key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    """Seals what clients keep for us."""
    _calls: HttpCalls | None = None
    common: Region | None = None
    """Memory of all workers of the proxy; None: there are no others."""
    index: int = 0
    """Of this worker among them."""
    shares_sessions: bool = False
    """Other proxies may have the key, and go on with them."""
    sockets: str = ""
    """Folder of the Unix sockets by which the workers of the proxy ask each other; "": there are no others."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Of backends, by name."""
    _of_kinds: dict[str, Services] = field(default_factory=dict)
    """Services of kinds that were asked for."""
    look_up: LookUp = not_asked
    """Of host names, for kinds of backends that keep addresses themselves."""
    holds: Callable[[str, int], bool] = lambda address, port: False
    """Whether an address and port are an endpoint of a backend that is configured."""
    forwarding: Forwarding = Forwarding()
    """Where requests that name their destination may lead."""
    mirrors: InFlight = field(init=False)
    _has_dropped: bool = False
    body_memory: BodyMemory = field(init=False)
    """For request bodies that are buffered."""

    @property
    def turns(self) -> Turns:
        return self.writes.turns

    @property
    def resolver(self) -> Resolves:
        return self.leases.resolver

    @resolver.setter
    def resolver(self, resolver: Resolves) -> None:
        self.leases.resolver = resolver

    @property
    def calls(self) -> HttpCalls:
        """Calls of policies and of backends that end requests themselves."""
        if self._calls is None:
            self._calls = HttpCalls(
                table=lambda: self.current.table,
                leases=self.leases,
                wake_at=self.deadlines.wake_at,
                make_future=self.make_future,
                clock=self.clock,
                services=self,
                called=self.recorder.called,
            )
        return self._calls

    @property
    def exporters(self) -> Exporters:
        """Of records for collectors."""
        if self._exporters is None:
            from dataplane.export.exporters import Exporters  # most workers have no collector

            self._exporters = Exporters(self.calls, self.spawn, self.recorder.exported)
        return self._exporters

    def _observe_spans(self, x: Exchange, seconds: float) -> None:
        if x.trace is None:
            return
        if self._spans is None:
            from dataplane.export.tracing import SpanObserver  # as above

            self._spans = SpanObserver(self.exporters, self.clock)
        self._spans.observe(x, seconds)

    def of_kind(self, name: str) -> Any:  # Any: what the kind has made, which it alone knows
        """What this worker keeps for the kind of backend of this name (`kinds.Kind.services`); None: nothing."""
        found = self._of_kinds.get(name)
        if found is None:
            found = self.kinds[name].services(self)
            if found is not None:
                self._of_kinds[name] = found
        return found

    @property
    def worker_sockets(self) -> int:
        """Descriptors by which other workers of the proxy ask this one."""
        return sum(each.sockets for each in self._of_kinds.values())

    async def flush(self) -> None:
        """The worker ends: what collectors have not got yet is sent, for a moment."""
        if self._exporters is not None:
            await self._exporters.close()

    def close(self) -> None:
        """The worker ends: give back what outlives exchanges."""
        for each in self._of_kinds.values():
            each.close()

    def rules(self, bind: str, host: bytes) -> HttpRules:
        """How a head for this host is read: as the listener wants that will take the request."""
        current = self.current
        if current.prepared is not None:
            current.catch_up()
        plan = current.table.binds.get(bind)
        listener = None if plan is None else choose(plan, host)
        return DEFAULT if listener is None else listener.http

    def bind_of(self, key: str) -> BindPlan | None:
        """The bind with this key, for a connection that begins."""
        current = self.current
        if current.prepared is not None:
            current.catch_up()
        return current.table.binds.get(key)

    def connection_rules(self, bind: str, listener: str = "") -> ConnectionRules:
        """How a connection that begins now on this bind is carried; `listener`: key of the one that it is for, where
        that is known by then."""
        current = self.current
        if current.prepared is not None:
            current.catch_up()
        plan = current.table.binds.get(bind)
        if plan is None:
            return connection_rules.DEFAULT
        own = plan.of_key.get(listener)
        return plan.connection if own is None else own.http.connection

    def headers_dropped(self, count: int) -> None:
        """Count headers of a request that were left out for their names; the first time, log it."""
        self.recorder.headers_dropped(count)
        if not self._has_dropped:
            self._has_dropped = True
            log.warning(
                "request headers are dropped whose names have `_` or other characters than letters, digits and hyphens"
                " (frontend.http.headerUnderscores); gatewright_request_headers_dropped_total counts them"
            )

    def _forget_heads(self) -> None:
        for connection in self.connections:
            connection.forget_heads()

    def __post_init__(self) -> None:
        self.current.heads_changed = self._forget_heads
        own = [make(self.recorder) for make in self.observer_rows]
        self.observers = (self.recorder.ended, self.access_log.record)
        self.more_observers = (self.recorder.ended, *own, self._observe_spans, self.access_log.record)
        self.access_log.exports = _LogExports(self)
        self.leases.services = self.of_kind
        self.leases.through(Proxies(lambda: self.current.table, self.leases, self.recorder.upstream_closed))
        self.connections = Crowd(self.loads)
        self.shortages = Shortages(self.recorder, self.clock)
        self.leases.connector.full = self.shortages.filled
        self.mirrors = InFlight(self.shortages.filled)
        self.handshakes = Handshakes(self.writes.turns)
        self.handshake_log = HandshakeLog(self.recorder, self.clock)
        self.refusals = Refusals(self.recorder, self.clock)
        self.body_memory = BodyMemory(
            self.limits.buffered_bodies,
            self.loads,
            lambda: self.current.table.limits.held_bytes,
            self.shortages.filled,
        )
