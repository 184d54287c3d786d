"""The rooms of a worker on the test's own event loop, with real sockets on both sides and a clock that is moved.

    async with serving(TEXT) as proxy:
        status, body = await proxy.get("/")
        proxy.advance(2)
        assert await proxy.is_clean()

Between a proxy in memory (`memory_proxy`: no sockets) and one of processes (`proxy_process`: nothing can be looked at).
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from dataplane.backends.registry import KINDS
from dataplane.backends.registry import ROWS as BACKENDS
from dataplane.chain.filter import Env, Row
from dataplane.filters.registry import ROWS
from dataplane.net import udp
from dataplane.net.writes import Writes
from dataplane.proxy.attempt import mirrors, retries
from dataplane.proxy.context import Context
from dataplane.proxy.deadlines import STEP, Deadlines
from dataplane.proxy.steps.waiting import StepFuture
from dataplane.server.acceptor import Acceptor
from dataplane.table.applier import Applier
from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.connector import Connector
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import Leases
from dataplane.upstream.look_ups import of_system
from dataplane.upstream.resolver import Resolver
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
from tests.fakes import rule_states
from tests.harness import leaks
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.unit.translate.golden import World

Prepare = Callable[[Sequence[resource_pb2.Resource]], Sequence[resource_pb2.Resource]]


class Timer:
    """A call of `SocketProxy.call_at` that is to come."""

    def __init__(self, all_of_them: set[Timer], moment: float, call: Callable[[], None]) -> None:
        self.moment, self._call, self._all = moment, call, all_of_them
        self.handle: asyncio.TimerHandle | None = None
        self._all.add(self)

    def fire(self) -> None:
        if self in self._all:
            self.cancel()
            self._call()

    def cancel(self) -> None:
        self._all.discard(self)
        if self.handle is not None:
            self.handle.cancel()


class SocketProxy:
    """Made by `serving`."""

    def __init__(
        self,
        rows: Sequence[Row] = ROWS,
        prepare: Prepare = list,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.prepare = prepare
        loop = self._loop = asyncio.get_running_loop()
        self._skew = 0.0
        self.tasks: set[asyncio.Task[None]] = set()
        self._lines: list[bytes] = []
        self._metrics = Metrics.in_memory()
        recorder, writes = Recorder(self._metrics), Writes(loop.call_soon)
        self.timers: set[Timer] = set()
        self.deadlines = Deadlines(self.clock, self.call_at)
        self.connector = Connector(loop, writes, recorder)
        self.resolver = Resolver(loop, Endpoint, partial(of_system, loop))
        leases = Leases(
            BACKENDS,
            self.connector,
            self.resolver,
            random.random,
            recorder.stale_retry,
            rule_states=rule_states.local(time.monotonic, recorder),
        )
        make_future = partial(StepFuture, loop=loop)
        calls = HttpCalls(
            lambda: self.applier.current.table,
            leases,
            self.deadlines.wake_at,
            make_future,
            self.clock,
        )
        self.applier = Applier(
            rows,
            Env(
                self.clock,
                random.random,
                calls,
                spawn=self._spawn,
                make_future=make_future,
                environment=environment,
                call_at=self.call_at,
            ),
            kinds=KINDS,
        )
        self.context = Context(
            current=self.applier.current,
            deadlines=self.deadlines,
            leases=leases,
            access_log=AccessLog(self._lines.append, loop.call_later),
            recorder=recorder,
            writes=writes,
            spawn=self._spawn,
            make_future=make_future,
            call_soon=loop.call_soon,
            clock=self.clock,
            kinds=KINDS,
        )
        calls.services = self.context
        self.acceptor = Acceptor(self.context, loop)
        self.port = self.udp_port = 0

    def clock(self) -> float:
        return time.monotonic() + self._skew

    def call_at(self, moment: float, call: Callable[[], None]) -> Timer:
        """As a loop's, on the clock that is moved."""
        timer = Timer(self.timers, moment, call)
        timer.handle = self._loop.call_at(moment - self._skew, timer.fire)
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock, and wake whoever is due."""
        self._skew += seconds
        self.deadlines.sweep()
        for timer in sorted(self.timers, key=lambda timer: timer.moment):
            if timer.moment <= self.clock():
                timer.fire()

    async def load(self, text: str) -> None:
        """Make a standalone file with one bind the configuration; it is served on a free port."""
        loaded = standalone.load(text, "config.yaml")
        assert not loaded.problems, [str(problem) for problem in loaded.problems]
        await self._serve([Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in self.prepare(loaded.resources)])

    async def load_objects(self, text: str, gateway: str = "default/web") -> None:
        """The same of the objects of a Gateway with one port, as the control plane translates them."""
        world = World()
        world.put(text)
        batches = [each for batch in world.batches for each in batch]
        await self._serve([Change(url, name, data) for owner, url, name, data in batches if owner == gateway])

    async def _serve(self, changes: Sequence[Change]) -> None:
        for _ in self.applier.apply(changes):
            continue
        assert not self.applier.outcome.refused, self.applier.outcome.refused
        ((bind, plan),) = self.applier.current.table.binds.items()
        if plan.has_streams:
            listening = socket.create_server(("127.0.0.1", 0))
            self.port = listening.getsockname()[1]
            await self.acceptor.listen(bind, listening)
        if plan.datagrams is not None:
            receiving = udp.listen("0.0.0.0", 0, shared=False)
            self.udp_port = receiving.getsockname()[1]
            await self.acceptor.listen(bind, receiving)

    async def get(self, headers: str = "") -> bytes:
        """The whole answer to a GET on a connection of its own."""
        return await self.ask("GET", "/", headers=headers)

    async def ask(self, method: str, target: str, body: bytes = b"", headers: str = "") -> bytes:
        """The whole answer to a request on a connection of its own."""
        if body:
            headers += f"Content-Length: {len(body)}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            head = f"{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n"
            writer.write(head.encode() + body)
            async with asyncio.timeout(PATIENCE):
                return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    def log_line(self) -> str:
        """The line of the one request so far."""
        (line,) = self.log_lines()
        return line

    def log_lines(self) -> list[str]:
        """Those so far, of requests and of connections that are over."""
        self.context.access_log.flush()
        self.context.access_log.close()
        return b"".join(self._lines).decode().splitlines()

    def count(self, name: str, *labels: str) -> int:
        """A counter or gauge."""
        return int(self._metrics.slots[self._metrics.counter(name, *labels)])

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        """All series of a metric, by their labels."""
        return {each.labels: values[0] for each, values in self._metrics.series() if each.metric.name == name}

    def connections(self) -> int:
        """Open to upstreams, in use or idle."""
        slots = self._metrics.slots
        return int(slots[self._metrics.counter("upstream_connections_active")])

    def pending(self) -> int:
        """Requests and calls under way, as endpoints count them."""
        return sum(each.pending for plan in self.applier.current.table.backends.values() for each in plan.endpoints)

    def waiting(self) -> int:
        """Exchanges whose steps wait."""
        exchanges = [each.exchange for each in self.context.connections]
        return sum(each is not None and each.waiting is not None for each in exchanges)

    def idle(self) -> int:
        """Connections that wait for their next use."""
        plans = self.applier.current.table.backends.values()
        return sum(len(each.idle) for plan in plans for each in plan.endpoints)

    async def settled(self) -> None:
        """Nothing is held by what has ended; clients that are still there are cut."""
        for connection in list(self.context.connections):
            connection.transport.abort()
        self.acceptor.datagrams.close()
        if leaks.of_context(self.context):  # copies for mirrors and drained answers have a time of their own
            self.advance(max(mirrors.SECONDS, retries.DRAIN_TIME) + STEP)
        await until(lambda: not leaks.of_context(self.context), lambda: str(leaks.of_context(self.context)))

    async def close(self) -> None:
        await self.acceptor.close()
        self.acceptor.datagrams.close()
        for connection in list(self.context.connections):
            connection.transport.abort()
        self.deadlines.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.connector.close()
        await self.resolver.close()
        await until(lambda: not self.context.connections and not self.connections(), "the end of connections")
        self.context.access_log.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


@asynccontextmanager
async def serving(
    text: str,
    rows: Sequence[Row] = ROWS,
    prepare: Prepare = list,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    of_objects: bool = False,
) -> AsyncIterator[SocketProxy]:
    """A proxy with this standalone file, until the block ends; `prepare`: what becomes of its resources first;
    `environment`: its variables. `of_objects`: with these objects of a Gateway."""
    proxy = SocketProxy(rows, prepare, environment)
    await (proxy.load_objects(text) if of_objects else proxy.load(text))
    try:
        yield proxy
        await proxy.settled()
    finally:
        await proxy.close()
