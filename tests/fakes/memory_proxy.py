"""A whole proxy in memory: a standalone file in, bytes in and out. No socket, no event loop, a clock that is moved.

    proxy = MemoryProxy(ROUTES)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n")
    assert client.received.startswith(b"HTTP/1.1 200")

Everything between the two ends is the product: table, chain, proxy, server, upstream connection. Policies call other
services over the same upstream connections, unless `calls` (`fakes/calls`) answers instead.
"""

from __future__ import annotations

import threading
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from dataplane.backends.registry import KINDS
from dataplane.backends.registry import ROWS as BACKENDS
from dataplane.chain.calls import Calls
from dataplane.chain.filter import Env, Row
from dataplane.export.exporter import Signal
from dataplane.filters.registry import ROWS
from dataplane.http.h2.frames import PREFACE
from dataplane.http.messages import Peer
from dataplane.link.buckets import Buckets
from dataplane.link.pools import Full
from dataplane.net.writes import Writes
from dataplane.proxy.attempt import mirrors, retries
from dataplane.proxy.context import Context, Limits
from dataplane.proxy.deadlines import STEP, Deadlines
from dataplane.server import inner
from dataplane.server.protocols import plan_of
from dataplane.table.applier import Applier
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.telemetry.access_log import MAX_QUEUED, AccessLog
from dataplane.telemetry.collector import Collector
from dataplane.telemetry.lines import LineWriter
from dataplane.telemetry.log_rows.registry import GROUPS
from dataplane.telemetry.metric_table import METRICS
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.connector import Count
from dataplane.upstream.endpoint import Endpoint, Pool
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.h2.shared_connection import SharedConnection
from dataplane.upstream.kinds import Kind
from dataplane.upstream.lease import Leases
from dataplane.upstream.opening import Proxies
from dataplane.upstream.raw_end import RawEnd
from dataplane.upstream.settings import Client
from dataplane.upstream.shared import SharedConnections
from dataplane.upstream.versions import BY_REQUEST, HTTP1
from gatewright.api.standalone import standalone
from gatewright.wire.v1.resource_pb2 import Resource
from tests.fakes import dates, rule_states
from tests.harness import leaks

ROUTES = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      backends:
      - host: 127.0.0.1:9000
"""


class FakeTransport:
    """The far end of a connection, seen from a test."""

    def __init__(
        self, protocol: Any, peer: tuple[str, int] = ("192.0.2.7", 40000), local: tuple[str, int] | None = None
    ) -> None:
        self.protocol = protocol
        self.peer, self.local = peer, local
        self.received = b""
        self.writes: list[bytes] = []
        self.reading = True
        self.open = True
        self.aborted = False
        self.eof = False
        self.high_water = 0
        protocol.connection_made(self)

    # what the protocol calls
    def write(self, data: bytes) -> None:
        assert self.open, "written to a closed connection"
        assert data, "nothing was written"
        self.received += data
        self.writes.append(data)

    def close(self) -> None:
        if self.open:
            self.open = False
            self.protocol.connection_lost(None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write_eof(self) -> None:
        self.eof = True

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return not self.open

    def set_write_buffer_limits(self, high: int) -> None:
        self.high_water = high

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str) -> Any:
        return {"peername": self.peer, "sockname": self.local}.get(name)

    # what a test calls
    def send(self, data: bytes) -> None:
        """Bytes arrive from the far end."""
        assert self.open, "sent on a closed connection"
        self.protocol.data_received(data)

    def half_close(self) -> None:
        if not self.protocol.eof_received():
            self.close()

    def lose(self, error: Exception | None = None) -> None:
        self.open = False
        self.protocol.connection_lost(error)

    def take(self) -> bytes:
        """What was received since the last look."""
        received, self.received = self.received, b""
        return received


class FakeUpstream(FakeTransport):
    is_dated = False
    """Its responses have the `date` of endpoints (`fakes/dates`), over HTTP/2 too."""
    answer = FakeTransport.send


class DatedUpstream(FakeUpstream):
    """What is given to `send` arrives as it is."""

    is_dated = True

    def answer(self, data: bytes) -> None:
        self.send(dates.dated(data))


class FakeClient(FakeTransport):
    """Does not show that `date`. Over HTTP/2, where it is no text, those that read frames do not."""

    is_http2 = False

    def send(self, data: bytes) -> None:
        self.is_http2 = self.is_http2 or PREFACE in data
        super().send(data)

    def write(self, data: bytes) -> None:
        super().write(data if self.is_http2 else dates.shown(data))


class FakeConnector:
    """Connections are there at once, unless `hold` is set: then `release` lets them come; `refuse` makes them fail."""

    def __init__(self, writes: Writes, count: Count) -> None:
        self.writes, self.count = writes, count
        self.before_opening: Callable[[], None] = lambda: None
        self.far_end: Callable[[Any], FakeUpstream] = DatedUpstream
        """Makes the far end of a connection, of its protocol."""
        self.upstreams: list[FakeUpstream] = []
        self.hold = False
        self.refuse = ""
        self.refused: set[str] = set()
        """Labels of endpoints to which connections fail."""
        self.proxies: Proxies | None = None
        self.of_clients: dict[Client, list[Pool]] = {}
        self.full: Full | None = None
        self.endpoints: set[Pool] = set()
        """Those that connections were opened to."""
        self.dialled: list[Pool] = []
        """Those that raw connections were tried to."""
        self.waiting: list[tuple[Pool, Callable[..., None]]] = []
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.on_share: Callable[[FakeUpstream], None] = lambda upstream: None
        """Called with each connection of HTTP/2 that was opened: its far end may say hello."""

    def connect(self, endpoint: Pool, done: Callable[..., None]) -> None:
        self.waiting.append((endpoint, done))
        if not self.hold:
            self.release()

    def dial(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None]) -> None:
        """A connection whose bytes pass as they are."""
        self.waiting.append((endpoint, partial(self._dialled, endpoint, connection, done)))
        if not self.hold:
            self.release()

    def _dialled(self, endpoint: Pool, connection: RawEnd, done: Callable[[str], None], _: Any, cause: str) -> None:
        self.count.upstream_opened("failed" if cause else "opened")
        if not cause:
            self.upstreams.append(self.far_end(connection))
            connection.opened()
        self.dialled.append(endpoint)
        done(cause)

    def belongs(self, pool: Pool) -> None:
        """For one client alone."""
        assert pool.transport is not None and pool.transport.client is not None
        pools = self.of_clients.setdefault(pool.transport.client, [])
        if pool not in pools:
            pools.append(pool)

    def client_left(self, peer: Peer) -> None:
        for pool in self.of_clients.pop(Client(peer.address, peer.port, peer.local), ()):
            for _ in pool.retire():
                pass

    def share(self, endpoint: Pool) -> SharedConnections:
        if endpoint.shared is None:
            endpoint.shared = SharedConnections(endpoint, self)
            self.endpoints.add(endpoint)
        return endpoint.shared

    def open(self, endpoint: Pool, done: Callable[..., None], either: bool = False) -> None:
        """A connection of HTTP/2: it is open when the far end has sent its SETTINGS."""
        self.waiting.append((endpoint, partial(self._opened, endpoint, done)))
        if not self.hold:
            self.release()

    def _opened(self, endpoint: Pool, done: Callable[..., None], connection: Any, cause: str) -> None:
        if cause:
            done(None, cause)
            return

        def is_open(why: str) -> None:
            self.count.upstream_opened("failed" if why else "opened")
            done(None if why else shared, why)

        def broke(reason: str, detail: str) -> None:
            self.count.upstream_fault(reason)
            self.share(endpoint).report(detail)

        shared = SharedConnection(endpoint, self.writes, is_open, self.count.upstream_closed, self.clock, broke)
        self.upstreams.append(self.far_end(shared))
        self.on_share(self.upstream)

    @property
    def upstream(self) -> FakeUpstream:
        """The newest connection."""
        return self.upstreams[-1]

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, call))

    def clock(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock of those who wait for a stream, until nothing is due any more."""
        self.now += seconds
        while due := [call for at, call in self.timers if at <= self.now]:
            self.timers = [timer for timer in self.timers if timer[0] > self.now]
            for call in due:
                call()

    def release(self) -> None:
        waiting, self.waiting = self.waiting, []
        for endpoint, done in waiting:
            if self.refuse or endpoint.label in self.refused:
                done(None, self.refuse or "refused")
                continue
            if isinstance(done, partial):
                done(None, "")
                continue
            self.endpoints.add(endpoint)
            self.count.upstream_opened("opened")
            done(self.opened(endpoint), "")

    def opened(self, endpoint: Endpoint) -> Any:
        """A new connection, whose far end is the last of `upstreams`."""
        connection = UpstreamConnection(endpoint, self.writes, self.count.upstream_closed)
        self.upstreams.append(self.far_end(connection))
        return connection


@lru_cache(maxsize=512)
def _loaded(text: str) -> tuple[Resource, ...]:
    """A file without what is in other files always means the same: it is read once, for all carriers and tests. Who
    changes a resource changes a copy."""
    loaded = standalone.load(text, "config.yaml")
    assert not loaded.problems, [str(problem) for problem in loaded.problems]
    return loaded.resources


def _changes(resources: Iterable[Resource], spoken: int) -> Iterator[Change]:
    """`spoken`: as for `MemoryProxy`."""
    for resource in resources:
        if spoken and resource.HasField("backend"):
            resource = Resource.FromString(resource.SerializeToString())
            own = [each for each in resource.backend.policies if each.HasField("backend_http")]
            for policy in own or [resource.backend.policies.add()]:
                policy.backend_http.version = policy.backend_http.version or spoken
        yield Change(RESOURCE_TYPE, resource.key, resource.SerializeToString())


class MemoryProxy:
    kinds: Mapping[str, Kind] = KINDS
    """Of backends. This and the next two are tables of the product, of which a test may put others in their place."""
    log_groups = GROUPS
    metric_rows = METRICS

    def __init__(
        self,
        text: str = ROUTES,
        rows: Sequence[Row] = ROWS,
        limits: Limits | None = None,
        writes: Writes | None = None,
        calls: Calls | None = None,
        spoken: int = BY_REQUEST,
        offload: Callable[[Callable[[], Any]], Any] | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`spoken`: the version of HTTP (`upstream/versions`) of endpoints whose backend names none. `offload`,
        `environment`: as in `Env`."""
        self.now = 1000.0
        self._spoken = spoken
        writes = writes or Writes(lambda flush: flush())  # unless told otherwise each write goes out at once
        self.metrics = Metrics.in_memory(self.metric_rows)
        recorder = Recorder(self.metrics)
        self.connector = FakeConnector(writes, recorder)
        self.timers: list[tuple[float, Callable[[], None]]] = []
        deadlines = Deadlines(lambda: self.now, lambda at, call: self._call_at(at, call))
        leases = Leases(
            {**BACKENDS, **self.kinds},
            self.connector,
            None,  # type: ignore[arg-type]  # tests set `context.resolver`
            lambda: 0.0,
            recorder.stale_retry,
            rule_states=rule_states.local(lambda: self.now, recorder),
        )
        calls = calls or HttpCalls(
            table=lambda: self.applier.current.table,
            leases=leases,
            wake_at=deadlines.wake_at,
            make_future=Pending,
            clock=lambda: self.now,
            called=recorder.called,
        )
        env = Env(
            clock=lambda: self.now,
            random=lambda: 0.0,
            calls=calls,
            wall_clock=lambda: self.now,
            spawn=self._spawn,
            offload=offload,
            environment=environment,
            session_key=bytes(32),
            buckets=Buckets.local(),
            make_future=Pending,
            call_at=self._call_at,
            full=lambda *refusal: self.context.shortages.filled(*refusal),
        )
        self.applier = Applier(rows, env, kinds=self.kinds)
        self.lines: list[bytes] = []
        self.clients: list[FakeTransport] = []
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.load(text)
        self.context = Context(
            current=self.applier.current,
            deadlines=deadlines,
            leases=leases,
            access_log=AccessLog(
                self.lines.append,
                lambda seconds, call: None,
                clock=lambda: self.now,
                turns=writes.turns,
                groups=self.log_groups,
            ),
            recorder=recorder,
            writes=writes,
            spawn=self._spawn,
            make_future=Pending,
            call_soon=lambda call: call(),
            limits=limits or Limits(),
            clock=lambda: self.now,
            random=lambda: 0.0,
            kinds=self.kinds,
        )
        if isinstance(calls, HttpCalls):
            calls.services = self.context
        self.exported: list[Any] = []
        """Records for collectors, of whatever signal."""
        self.context.exporters.add = self._export  # type: ignore[method-assign]  # there is no loop to send them on
        self.context.enter = partial(inner.enter, self.context)
        log = self.context.access_log
        log._lines = _AtOnce(self.lines.append, MAX_QUEUED, lambda _count: None, lambda _why, _missed: None)
        leaks.made(self)

    def load(self, text: str) -> None:
        """Make `text` the configuration, as a state."""
        self.take(_loaded(text))

    def take(self, resources: Iterable[Resource]) -> None:
        """The same for resources, of whichever source."""
        changes = list(_changes(resources, self._spoken))
        known = {change.name for change in changes}
        changes += [Change(RESOURCE_TYPE, key, None) for key in getattr(self, "keys", set()) - known]
        self.keys = known
        for _ in self.applier.apply(changes):
            pass
        assert not self.applier.outcome.refused, self.applier.outcome.refused

    def connect(
        self, peer: tuple[str, int] = ("192.0.2.7", 40000), port: int = 0, local: tuple[str, int] | None = None
    ) -> FakeTransport:
        """`port`: of the bind, where there are several; `local`: the address of ours that is connected to."""
        binds = self.applier.current.table.binds
        bind = next(key for key, each in binds.items() if port in (0, each.port))
        client = FakeClient(plan_of(self.context, bind).open(), peer, local)
        self.clients.append(client)
        return client

    def left(self) -> list[str]:
        """What is left when all clients are gone; they go now. For `tests/harness/oracle`, which may ask again: some
        proxies serve several tests."""
        for client in self.clients:
            if client.open:
                client.lose()
        self.connector.hold, self.connector.refuse = False, "the test is over"
        self.connector.release()
        if leaks.of_context(self.context):  # copies for mirrors and drained answers have a time of their own
            self.advance(max(mirrors.SECONDS, retries.DRAIN_TIME) + STEP)
        clients, self.clients = self.clients, []
        self.connector.refuse = ""
        self.context.access_log.close()
        return leaks.of_context(self.context, (client.protocol for client in clients))

    @property
    def upstream(self) -> FakeUpstream:
        """The newest upstream connection."""
        return self.connector.upstream

    def advance(self, seconds: float) -> None:
        """Move the clock and fire what is due."""
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, call in sorted(due, key=lambda timer: timer[0]):
            call()

    def log_lines(self) -> list[str]:
        """Access log lines so far."""
        self.context.access_log.close()
        return b"".join(self.lines).decode().splitlines()

    def _call_at(self, at: float, call: Callable[[], None]) -> Any:
        timer = (at, call)
        self.timers.append(timer)
        return _Cancel(lambda: self.timers.remove(timer) if timer in self.timers else None)

    def _export(self, name: str, collector: Collector, make: Callable[[], Signal[Any]], record: object) -> None:
        self.exported.append(record)

    def _spawn(self, task: Coroutine[Any, Any, None]) -> Any:
        """Run a coroutine as far as it goes; `Pending.set_result` runs it on."""
        return _Spawned(task)


class _AtOnce(LineWriter):
    """Lines are written by whoever puts them: what waits for a thread is tested by itself."""

    def _add(self, item: bytes | threading.Event) -> None:
        assert isinstance(item, bytes)  # nothing waits, so nobody waits for it
        self._write(item)
        self._gone += len(item)


class Http1Endpoints(MemoryProxy):
    """A proxy whose endpoints speak HTTP/1.1 with clients of either version."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named, spoken=HTTP1)


class _Cancel:
    def __init__(self, cancel: Callable[[], object]) -> None:
        self.cancel = cancel


class Pending:
    """A future without an event loop: whoever awaits it goes on inside `set_result`."""

    of_env = True

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._calls: list[Callable[[Any], None]] = []

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any) -> None:
        self._done, self._result = True, result
        calls, self._calls = self._calls, []
        for call in calls:
            call(self)

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self._calls.append(call)

    def __await__(self) -> Any:
        if not self._done:
            yield self
        return self._result


class _Spawned:
    """Stands for a Task."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work
        self._awaited: Any = None
        self._step(work.send, None)

    def cancel(self) -> None:
        self._step(self._work.throw, CancelledError())

    def _go_on(self, future: Any) -> None:
        if future is self._awaited:
            self._step(self._work.send, None)

    def _step(self, step: Callable[[Any], Any], value: Any) -> None:
        self._awaited = None
        try:
            self._awaited = step(value)
        except (StopIteration, CancelledError):
            return
        if self._awaited is None:  # `asyncio.sleep(0)`
            self._step(self._work.send, None)
        else:
            self._awaited.add_done_callback(self._go_on)
