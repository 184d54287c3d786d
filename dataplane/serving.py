"""Composition root of the request path: table, proxy, acceptor, put together, and what the agent may send them.

Made by `worker` for the process, of what the agent says first; it knows no link.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import resource
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dataplane.backends import registry
from dataplane.chain.filter import Env, Row
from dataplane.link import messages
from dataplane.link.buckets import Buckets
from dataplane.link.commits import Commits
from dataplane.link.evictions import Evictions
from dataplane.link.last_served import LastServed
from dataplane.link.loads import Loads
from dataplane.link.messages import Message, Record, WantedBind
from dataplane.link.shared import Region
from dataplane.net.heap import GivesBack
from dataplane.net.writes import Writes
from dataplane.proxy.context import Context, Forwarding
from dataplane.proxy.deadlines import Deadlines
from dataplane.proxy.steps.waiting import StepFuture
from dataplane.proxy.usage import usage
from dataplane.server import admission
from dataplane.server.acceptor import Acceptor
from dataplane.settings import WorkerSettings
from dataplane.table.applier import Applier
from dataplane.table.current import Current
from dataplane.table.store import Change
from dataplane.telemetry import lines, process_log
from dataplane.telemetry.access_log import AccessLog
from dataplane.telemetry.certificates import STAPLES, Expiries
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.requests import Recorder
from dataplane.telemetry.watches import Watches
from dataplane.upstream import health
from dataplane.upstream.backend_rules import RuleStates
from dataplane.upstream.connector import Connector
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import Leases
from dataplane.upstream.look_ups import LookUps
from dataplane.upstream.own_pages import OwnPages
from dataplane.upstream.resolver import Resolver

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from dataplane.export.metrics import MetricsExport

log = logging.getLogger("dataplane.worker")

STDOUT = 1
"""The descriptor that the access log is written to."""
ENDING = 100
"""Turns of the loop that connections which were cut, and their exchanges, have to end, so that the log has their last
lines."""


@dataclass(frozen=True, slots=True)
class Host:
    """What a worker needs of the process that it runs in, and does to it."""

    clock: Callable[[], float] = time.monotonic
    """Of the loop as well; finer than the loop's own reading of it."""
    descriptors: Callable[[], int] = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    """File descriptors that it may have."""
    stdout: Callable[[], Callable[[bytes], None]] = lambda: lines.file_writer(STDOUT)
    """Makes the writer of the access log."""
    configure_log: Callable[[str, str], None] = process_log.configure
    set_levels: Callable[[str, Mapping[str, str]], None] = process_log.set_levels
    first_state_serves: Callable[[], None] = gc.freeze


class Serving:
    """The request path, put together, and what the agent asks of it."""

    def __init__(
        self,
        hello: messages.Hello,
        region: Region,
        common: Region,
        rows: Sequence[Row],
        host: Host,
        send: Callable[[Message], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings = WorkerSettings.from_link(hello.settings)
        self.index = hello.index
        host.configure_log(settings.log_format, f"worker-{hello.index}")
        host.set_levels(settings.log_default, settings.log_modules)
        self.metrics = metrics = Metrics(region.section("slots"), region.section("directory"))
        start = 0 if any(metrics.series()) else time.time_ns()  # a worker before this one has counted
        metrics.reset_gauges()
        self._expiries = Expiries(metrics)
        self._staples = Expiries(metrics, STAPLES)
        self._send = send
        self._commits = Commits(common)
        self._current = Current(self._commits.read)
        self._heard_of_commit = asyncio.Event()
        self._tasks = Tasks(loop)
        writes = Writes(loop.call_soon, LastServed.of(region))
        self._access_log = AccessLog(
            host.stdout(), loop.call_later, settings.log_format == "json", self._dropped, host.clock, writes.turns
        )
        self._first_state_serves = host.first_state_serves
        self._recorder = recorder = Recorder(metrics, host.clock)
        buckets = Buckets.of(common)
        own = OwnPages(settings.own_pages)
        self._connector = Connector(loop, writes, recorder, own)
        self._look_ups = LookUps(loop)
        self._resolver = Resolver(loop, Endpoint, self._look_ups.look_up)
        self._context = self._made_context(hello, host, common, buckets, writes, own)
        self._acceptor = Acceptor(self._context, loop)
        self._connector.before_opening = partial(admission.spare_descriptor, self._context)
        recorder.held = lambda: self._context.body_memory.used
        self._context.body_memory.emptied = GivesBack(loop.call_later).asked
        env = env_of(self._context, buckets, loop)
        self._applier = Applier(
            rows, env, self._current, settings.zone, registry.load, kinds=registry.KINDS, in_mesh=settings.in_mesh
        )
        if settings.in_mesh:
            self._join_mesh()
        self._applier.remains.wake = self._tidy_soon
        self._context.holds = self._applier.holds
        self._started = start
        self._metrics_export: MetricsExport | None = None
        self._records: deque[Record] = deque()
        self._is_tidying = False
        self.state = 0
        self._connector.close_idle = close_idle = partial(admission.close_idle, self._context, admission.AT_ONCE)
        self._watches = Watches(loop.call_later, metrics, self._publish, close_idle)

    def _made_context(
        self, hello: messages.Hello, host: Host, common: Region, buckets: Buckets, writes: Writes, own: OwnPages
    ) -> Context:
        """What every exchange of this worker has in common."""
        loop, loads = asyncio.get_running_loop(), Loads.of(common, hello.index)
        return Context(
            current=self._current,
            deadlines=Deadlines(host.clock, loop.call_at),
            leases=Leases(
                registry.ROWS,
                self._connector,
                self._resolver,
                random.random,
                self._recorder.stale_retry,
                rule_states=RuleStates(Evictions.of(common, buckets), loads, host.clock, self._recorder),
            ),
            access_log=self._access_log,
            recorder=self._recorder,
            writes=writes,
            spawn=self._tasks.spawn,
            make_future=partial(StepFuture, loop=loop),
            call_soon=loop.call_soon,
            clock=host.clock,
            session_key=self.settings.session_key.value,
            loads=loads,
            common=common,
            index=hello.index,
            shares_sessions=self.settings.shares_sessions,
            sockets=self.settings.sockets,
            kinds=registry.KINDS,
            look_up=self._look_ups.look_up,
            forwarding=Forwarding(self.settings.forward_allow, self.settings.api_server, own),
            descriptors=lambda: admission.for_connections(host.descriptors(), self._acceptor.listening()),
        )

    def _join_mesh(self) -> None:
        """Loads what only a mesh needs."""
        from dataplane.upstream.dial.hbone import Tunnels

        self._connector.tunnels = Tunnels(lambda: self._current.table, self._connector)

    def _publish(self) -> bool:
        """As `Watches` asks for it."""
        self._applier.take_back(self._context.leases.rule_states.watched)
        troubles = self._recorder.troubles.report()
        if troubles is not None:
            self._send(messages.Troubles(troubles))
        if self._metrics_export is not None:
            self._metrics_export.look()
        return self._recorder.publish()

    async def collect(self, message: messages.Changes, _fd: int) -> None:
        self._records.extend(message.records)

    async def apply(self, message: messages.StateEnd, _fd: int) -> None:
        """Make the next table in slices, with traffic between them; say so; swap with the other workers."""
        began = self._context.clock()
        records, self._records = self._records, deque()
        self._current.number = message.number
        work = self._applier.apply(_taken(records))
        preparing = await self._go_on(work)
        self._commits.prepare(self.index, message.number)
        self._current.catch_up()  # the last worker to prepare a state commits it
        self._send(self._prepared(message.number))
        await self._committed()
        self._recorder.observe("swap_duration_seconds", self._context.clock() - began)
        self.state, is_first = message.number, self.state == 0
        dropping = await self._go_on(work)
        self._swapped(max(preparing, dropping))
        if is_first and message.number:
            self._first_state_serves()

    async def _go_on(self, work: Iterator[None]) -> float:
        """Work until there is no more, or a table is prepared that may not serve yet.

        Answers the longest hold of the loop in seconds; what other processes take away shows in the lag.
        """
        longest, hold = 0.0, Stall()
        for _ in work:
            longest = max(longest, hold.seconds())
            if self._current.prepared is not None:
                return longest
            await asyncio.sleep(0)
            hold = Stall()
        return max(longest, hold.seconds())

    async def _committed(self) -> None:
        """Until the swap, by `commit` or by a request that came before the news of it."""
        while self._current.prepared is not None:
            self._heard_of_commit.clear()
            await self._heard_of_commit.wait()

    def _tidy_soon(self) -> None:
        """The last exchange of an old table has ended."""
        if not self._is_tidying:
            self._is_tidying = True
            asyncio.get_running_loop().call_soon(self._tidy)

    def _tidy(self) -> None:
        self._is_tidying = False
        if self._applier.tidy():
            self._tidy_soon()

    def commit(self) -> None:
        """The agent has committed a state."""
        self._current.catch_up()
        self._heard_of_commit.set()

    async def open_bind(self, message: messages.OpenBind, fd: int) -> Message:
        await self._acceptor.listen(message.key, socket.socket(fileno=fd))
        return messages.BindOpened(message.key)

    async def close_bind(self, message: messages.CloseBind, _fd: int) -> Message:
        await self._acceptor.stop(message.key)
        return messages.BindClosed(message.key)

    async def drain(self, minimum: float, maximum: float) -> None:
        """Accept for `minimum` seconds; let requests end for at most `maximum`."""
        await self._acceptor.drain(minimum, maximum)

    async def close(self) -> None:
        """Let go of everything."""
        self._acceptor.cut()
        for _ in range(ENDING):
            if not self._context.connections and not self._context.writes.turns:
                break
            await asyncio.sleep(0)
        self._watches.stop()
        self._access_log.flush(whole=True)
        if self._metrics_export is not None:
            await self._metrics_export.last()
        await self._context.flush()
        self._context.deadlines.close()
        self._context.close()
        await self._tasks.end()
        await self._connector.close()
        await self._resolver.close()
        await self._look_ups.close()
        self._access_log.close()

    def dump(self) -> dict[str, Any]:
        """What this worker serves."""
        table, outcome = self._current.table, self._applier.outcome
        binds = {
            key: {
                "port": plan.port,
                "listeners": sorted({each.key for each in plan.listeners()}),
            }
            for key, plan in table.binds.items()
        }
        return {
            "worker": self.index,
            "pid": os.getpid(),
            "state": self.state,
            "swaps": table.version,
            "store": repr(self._applier.store),
            "binds": binds,
            "backends": sorted(table.backends),
            "health": health.summary(
                chain(*(plan.endpoints for plan in table.backends.values()), self._resolver.known()),
                self._context.clock(),
            ),
            "policies": {key: policy.summary() for key, policy in self._applier.store.policies.items()},
            "refused": dict(outcome.standing),
            "waiting": sorted(outcome.waiting),
            "connections": len(self._context.connections),
            "udp_sessions": len(self._acceptor.datagrams.sessions),
            "usage": {
                **usage(self._context),
                "name_look_ups": self._look_ups.files,
                "tasks": len(asyncio.all_tasks()),
                "listening": self._acceptor.listening(),
                "descriptors": _descriptors(),
            },
        }

    def _prepared(self, number: int) -> Message:
        outcome = self._applier.outcome
        binds = (
            WantedBind(key, plan.port, tuple(plan.addresses), plan.has_streams, plan.datagrams is not None)
            for key, plan in outcome.binds.items()
        )
        return messages.Prepared(number, dict(outcome.standing), tuple(binds))

    def _swapped(self, longest: float) -> None:
        metrics = self.metrics
        metrics.slots[metrics.counter("swaps_total")] += 1
        self._aim_metrics()
        self._expiries.publish(self._certificates())
        self._staples.publish(self._staple_ends())
        worst = metrics.gauge("swap_stall_max_seconds")
        metrics.slots[worst] = max(metrics.slots[worst], int(longest * 1e6))
        log.debug("state applied, longest hold of the loop %.2f ms", longest * 1e3)

    def _aim_metrics(self) -> None:
        """Metrics are sent to those that Gateways name now."""
        telemetry = ((plan.gateway, plan.telemetry) for plan in self._applier.listener_plans.values())
        wanted = [
            (gateway, each.metrics) for gateway, each in telemetry if each is not None and each.metrics is not None
        ]
        if wanted and self._metrics_export is None:
            from dataplane.export.metrics import MetricsExport  # most workers have no collector

            context, proxy = self._context, self.settings.instance or socket.gethostname()
            self._metrics_export = MetricsExport(
                self.metrics,
                lambda: context.exporters,
                self._tasks.spawn,
                context.clock,
                f"{proxy}/worker-{self.index}",
                self._started,
            )
        if self._metrics_export is not None:
            self._metrics_export.aim(wanted)

    def _certificates(self) -> Iterator[tuple[str, str, float]]:
        """As `telemetry.certificates.Expiries.publish` takes them."""
        for key in self._applier.security:
            plan = self._applier.listener_plans.get(key)
            expires = None if plan is None or plan.tls is None else plan.tls.expires
            if plan is not None and expires is not None:
                yield plan.gateway, plan.name, expires

    def _staple_ends(self) -> Iterator[tuple[str, str, float]]:
        """As `_certificates`."""
        for key in self._applier.security:
            plan = self._applier.listener_plans.get(key)
            if plan is not None and plan.tls is not None and plan.tls.staple_ends:
                yield plan.gateway, plan.name, plan.tls.staple_ends

    def _dropped(self, lines: int) -> None:
        self.metrics.slots[self.metrics.counter("access_log_dropped_total")] += lines


def env_of(context: Context, buckets: Buckets, loop: asyncio.AbstractEventLoop) -> Env:
    """What builders of policies are given: the capabilities that requests have, and threads."""
    return Env(
        clock=context.clock,
        random=context.random,
        calls=context.calls,
        offload=beside(loop, partial(StepFuture, loop=loop)),
        buckets=buckets,
        spawn=context.spawn,
        make_future=context.make_future,
        password_checks=lambda: context.current.table.limits.of_passwords,
        environment=os.environ,
        session_key=context.session_key,
        call_at=context.deadlines.call_at,
        full=context.shortages.filled,
    )


def beside(
    loop: asyncio.AbstractEventLoop, make_future: Callable[[], StepFuture]
) -> Callable[[Callable[[], Any]], Awaitable[Any]]:
    """`Env.offload`: one thread, made when it is asked for. There is a worker for each core: with more threads, what
    clients ask for would take the processor from the loop."""
    threads: ThreadPoolExecutor | None = None

    def run(work: Callable[[], Any]) -> Awaitable[Any]:
        nonlocal threads
        if threads is None:
            from concurrent.futures import ThreadPoolExecutor  # here: most workers do without

            threads = ThreadPoolExecutor(1, "beside")
        done = make_future()

        def finished(ran: Future[Any]) -> None:  # in the thread
            if not loop.is_closed():
                loop.call_soon_threadsafe(_pass_on, done, ran)

        threads.submit(work).add_done_callback(finished)
        return done

    return run


def _pass_on(done: StepFuture, ran: Future[Any]) -> None:
    if done.done():  # the one that waited has given up
        return
    error = ran.exception()
    if error is None:
        done.set_result(ran.result())
    else:
        done.set_exception(error)


def _descriptors() -> int:
    """How many this process has open, without the one that counts them; -1 where the system does not say."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1
    except OSError:
        return -1


def _taken(records: deque[Record]) -> Iterator[Change]:
    """The records, each given away when it is asked for: a big state is freed in slices as well."""
    while records:
        yield Change(*records.popleft())


class Stall:
    """How long this thread has been at work since it was made: CPU time, and never more than went by.

    The CPU clock of a thread leaps ahead by up to some 25 ms, between two readings in a row, where processes compete
    for the cores of a virtual machine. The other clock counts what other processes took. The lesser of both is right.
    """

    __slots__ = ("_clock", "_cpu")

    def __init__(self) -> None:
        self._cpu, self._clock = time.thread_time(), time.monotonic()

    def seconds(self) -> float:
        return min(time.thread_time() - self._cpu, time.monotonic() - self._clock)

    def __repr__(self) -> str:
        return f"Stall({self.seconds():.6f} s)"


class Tasks:
    """Tasks of exchanges: each ends by itself or with the worker; a failure is logged, never lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def end(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed", exc_info=error)
