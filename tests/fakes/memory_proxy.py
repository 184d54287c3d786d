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

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from dataplane.chain.calls import Calls
from dataplane.chain.filter import Env, Row
from dataplane.filters.registry import ROWS
from dataplane.link.buckets import Buckets
from dataplane.net.writes import Writes
from dataplane.proxy.context import Context, Limits
from dataplane.proxy.deadlines import Deadlines
from dataplane.server.connection import Connection
from dataplane.table.applier import Applier
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.connection import UpstreamConnection
from dataplane.upstream.endpoint import Endpoint
from gatewright.api import standalone

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

    def __init__(self, protocol: Any, peer: tuple[str, int] = ("192.0.2.7", 40000)) -> None:
        self.protocol = protocol
        self.peer = peer
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

    def get_extra_info(self, name: str) -> Any:
        return self.peer if name == "peername" else None

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
    answer = FakeTransport.send


class FakeConnector:
    """Connections are there at once, unless `hold` is set: then `release` lets them come; `refuse` makes them fail."""

    def __init__(self, writes: Writes) -> None:
        self.writes = writes
        self.upstreams: list[FakeUpstream] = []
        self.hold = False
        self.refuse = ""
        self.waiting: list[tuple[Endpoint, Callable[..., None]]] = []

    def connect(self, endpoint: Endpoint, done: Callable[..., None]) -> None:
        self.waiting.append((endpoint, done))
        if not self.hold:
            self.release()

    def release(self) -> None:
        waiting, self.waiting = self.waiting, []
        for endpoint, done in waiting:
            if self.refuse:
                done(None, self.refuse)
                continue
            connection = UpstreamConnection(endpoint, self.writes)
            self.upstreams.append(FakeUpstream(connection))
            done(connection, "")


class MemoryProxy:
    def __init__(
        self,
        text: str = ROUTES,
        rows: Sequence[Row] = ROWS,
        limits: Limits | None = None,
        writes: Writes | None = None,
        calls: Calls | None = None,
    ) -> None:
        self.now = 1000.0
        writes = writes or Writes(lambda flush: flush())  # unless told otherwise each write goes out at once
        self.connector = FakeConnector(writes)
        self.timers: list[tuple[float, Callable[[], None]]] = []
        deadlines = Deadlines(lambda: self.now, lambda at, call: self._call_at(at, call))
        calls = calls or HttpCalls(
            table=lambda: self.applier.current.table,
            connector=self.connector,
            resolver=None,  # type: ignore[arg-type]
            wake_at=deadlines.wake_at,
            make_future=Pending,
            clock=lambda: self.now,
            random=lambda: 0.0,
        )
        env = Env(
            clock=lambda: self.now,
            random=lambda: 0.0,
            calls=calls,
            wall_clock=lambda: self.now,
            spawn=self._spawn,
            buckets=Buckets.local(),
        )
        self.applier = Applier(rows, env)
        self.lines: list[bytes] = []
        self.metrics = Metrics.in_memory()
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.load(text)
        self.context = Context(
            current=self.applier.current,
            deadlines=deadlines,
            connector=self.connector,  # type: ignore[arg-type]
            resolver=None,  # type: ignore[arg-type]
            access_log=AccessLog(self.lines.append, lambda seconds, call: None, clock=lambda: self.now),
            recorder=Recorder(self.metrics),
            writes=writes,
            spawn=self._spawn,
            make_future=Pending,
            call_soon=lambda call: call(),
            limits=limits or Limits(),
            clock=lambda: self.now,
            random=lambda: 0.0,
        )

    def load(self, text: str) -> None:
        """Make `text` the configuration, as a state."""
        loaded = standalone.load(text, "config.yaml")
        assert not loaded.problems, [str(problem) for problem in loaded.problems]
        changes = [Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in loaded.resources]
        known = {change.name for change in changes}
        changes += [Change(RESOURCE_TYPE, key, None) for key in getattr(self, "keys", set()) - known]
        self.keys = known
        for _ in self.applier.apply(changes):
            pass
        assert not self.applier.outcome.refused, self.applier.outcome.refused

    def connect(self, peer: tuple[str, int] = ("192.0.2.7", 40000)) -> FakeTransport:
        bind = next(iter(self.applier.current.table.binds))
        return FakeTransport(Connection(self.context, bind), peer)

    @property
    def upstream(self) -> FakeUpstream:
        """The newest upstream connection."""
        return self.connector.upstreams[-1]

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

    def _spawn(self, task: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as far as it goes; `Pending.set_result` runs it on."""
        _step(task)


class _Cancel:
    def __init__(self, cancel: Callable[[], object]) -> None:
        self.cancel = cancel


class Pending:
    """A future without an event loop: whoever awaits it goes on inside `set_result`."""

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._call: Callable[[Any], None] | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: Any) -> None:
        self._done, self._result = True, result
        if self._call is not None:
            self._call(self)

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        self._call = call

    def __await__(self) -> Any:
        if not self._done:
            yield self
        return self._result


def _step(task: Coroutine[Any, Any, None]) -> None:
    try:
        pending = task.send(None)
    except StopIteration:
        return
    pending.add_done_callback(lambda _: _step(task))
