"""Controllers and proxies of the product, put together without a port or a process.

What is replaced is what touches the world: the folder (texts in a dictionary instead of files), gRPC (`wire`), the
sockets that listen, and the start of a worker, which here is a set of tasks on the same loop. Everything between is the
product's: tree, program, snapshots, sessions, the agent's journey, its links, the worker with its applier and table.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from gc import collect
from pathlib import Path
from typing import Any
from unittest import mock

import grpc

from controlplane.pipeline import Pipeline
from controlplane.snapshot import Snapshot
from controlplane.sources import decode, tree
from controlplane.sources.directory import Directory
from controlplane.xds import XdsServer, XdsSettings
from controlplane.xds.node import Identity, Peer
from dataplane import serving, worker
from dataplane.agent.journey import Journey
from dataplane.agent.process import Launch, Started, WorkerProcess
from dataplane.agent.resources import XDS, Resources
from dataplane.agent.sockets import Place, Sockets
from dataplane.agent.workers import Pace, Workers
from dataplane.agent.xds_client import XdsClient
from dataplane.agent.xds_stream import State, XdsStream
from dataplane.chain.filter import Row
from dataplane.link.channel import Channel
from dataplane.link.messages import Record
from dataplane.link.shared import Region
from dataplane.settings import Address, Drain, SessionKey, WorkerSettings
from dataplane.table.current import Current
from dataplane.table.table import Table
from dataplane.telemetry.metrics import Metrics
from tests.histories import wire
from tests.histories.hand_loop import RUNNING, HandLoop, Process

ROOT = Path("/folder")


class Folder(Directory):
    """The directory source over texts in memory."""

    texts: Mapping[str, str] = {}
    loop: HandLoop

    def written(self, files: Sequence[str]) -> None:
        """An event of the file system."""
        self.loop.call_soon(self._note, [f"{ROOT}/{file}" for file in files])

    def _watch(self) -> None:
        return None

    async def _rescan(self) -> set[str]:
        return {*self.texts} | self._tree.files

    def _text(self, file: str) -> str | None:
        return self.texts.get(file)


class Controller:
    """One controller, from its start to its end. `published` is called with each snapshot of a Gateway."""

    def __init__(self, loop: HandLoop, texts: Mapping[str, str], published: Callable[[Snapshot], None]) -> None:
        self._loop = loop
        self.process = Process("controller")
        loop.run_until_complete(self._make(texts, published))
        loop.start(self.process, self.folder.run(self.pipeline))

    async def _make(self, texts: Mapping[str, str], published: Callable[[Snapshot], None]) -> None:
        self.pipeline = Pipeline()
        self.pipeline.snapshots.listen(published)
        self.tree = tree.Tree(decode.decode, decode.with_generation)
        self.folder = Folder(ROOT, self.tree)
        self.folder.texts, self.folder.loop = texts, self._loop
        self.server = XdsServer(
            self.pipeline.snapshots, self.pipeline.fleet, XdsSettings(None, None), authorize=self._when_ready
        )
        await self.server.start()

    async def _when_ready(self, identity: Identity, peer: Peer) -> str | None:
        await self.pipeline.ready.wait()
        return None

    def take(self, stream: wire.Stream) -> None:
        """A proxy has called."""
        token = RUNNING.set(self.process)
        asyncio.get_running_loop().create_task(self._serve(stream))
        RUNNING.reset(token)

    async def _serve(self, stream: wire.Stream) -> None:
        try:
            await self.server.delta(None, wire.ServerEnd(stream))
        except wire.Aborted:
            pass
        finally:
            stream.end(grpc.StatusCode.OK)

    def kill(self) -> None:
        self.pipeline.close()
        self.process.kill()


# Proxies.

PACE = Pace(heartbeat=15.0)
"""Nothing hangs here: few heartbeats spare a history most of its turns."""


class Ports(Sockets):
    """Sockets that listen nowhere. A port in `busy` cannot be opened."""

    busy: frozenset[int] = frozenset()

    def _listen(self, place: Place) -> list[socket.socket]:
        if place.port in self.busy:
            raise OSError(errno.EACCES, "taken by the test")
        return [socket.socket(socket.AF_UNIX) for _ in range(self._workers)]


class Accepting:
    """`server.acceptor.Acceptor`: notes what it would accept for."""

    def __init__(self, *_: Any) -> None:
        self.binds: set[str] = set()

    async def listen(self, bind: str, sock: socket.socket) -> None:
        sock.close()
        self.binds.add(bind)

    async def stop(self, bind: str) -> None:
        self.binds.discard(bind)

    async def drain(self, *_: float) -> None:
        self.binds.clear()

    def cut(self) -> None:
        self.binds.clear()


class Unwatched:
    """`telemetry.watches.Watches`: nothing is late here."""

    def __init__(self, *_: Any) -> None:
        pass

    def stop(self) -> None:
        pass


def _nothing(*_: object) -> None:
    """What a worker does to its process."""


def _nowhere(_lines: bytes) -> None:
    """Access logs."""


class Life:
    """A worker's process: the real worker, run by tasks of its own. Stands in for `asyncio.subprocess.Process`."""

    pid = 1

    def __init__(self, link: socket.socket, rows: Sequence[Row]) -> None:
        self.returncode: int | None = None
        self._ended = asyncio.get_running_loop().create_future()
        self.process = Process("worker", self._close)
        token = RUNNING.set(self.process)
        clock = asyncio.get_running_loop().time
        host = serving.Host(clock, lambda: _nowhere, _nothing, _nothing, _nothing)
        self.worker = worker.Worker(link, rows, host)
        asyncio.get_running_loop().create_task(self._run())
        RUNNING.reset(token)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """As SIGKILL: nothing more is said or done."""
        self._end(-9)
        self.process.kill()

    async def _run(self) -> None:
        try:
            await self.worker.run()
        finally:
            self._end(0)

    def _end(self, status: int) -> None:
        if self.returncode is None:
            self.returncode = status
            self._ended.set_result(status)

    def _close(self) -> None:
        self.worker._channel.close()
        while not self.worker._heard.empty():
            _, fd = self.worker._heard.get_nowait()
            if fd >= 0:
                os.close(fd)

    # What a request would meet.

    @property
    def serving(self) -> serving.Serving | None:
        return None if self.process.is_dead else self.worker._serving

    @property
    def accepts(self) -> set[str]:
        """Binds that it takes connections for."""
        return set() if self.serving is None else self.serving._acceptor.binds  # type: ignore[attr-defined]

    @property
    def current(self) -> Current | None:
        return None if self.serving is None else self.serving._current


def met(current: Current) -> Table:
    """The table that a request would be answered from, now (`proxy/request/entry`)."""
    if current.prepared is not None and current.number <= current._committed():
        return current.prepared
    return current.table


async def _no_process(_link: socket.socket) -> Started:
    raise AssertionError("`Worker` starts itself")


class Worker(WorkerProcess):
    """`agent.process.WorkerProcess` with a start that starts no process."""

    rows: Sequence[Row] = ()
    born: Callable[[Worker, Life], None]

    async def start(self, launch: Launch) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process = Life(theirs, self.rows)
        self._channel = Channel(ours, self._on_message, self._on_end)

    def kill(self) -> None:
        self.is_condemned = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    @property
    def inner(self) -> Life | None:
        return self._process  # type: ignore[return-value]


class Stream(XdsStream):
    """Notes the states that were received as a whole."""

    def __init__(self, *args: str) -> None:
        super().__init__(*args)
        self.states: list[State] = []

    def receive(self, response: Any) -> Any:
        found = super().receive(response)
        if isinstance(found, State):
            self.states.append(found)
        return found


class Agent:
    """One proxy's agent, from its start to its end, with the workers that it keeps. `taken`: before each state."""

    def __init__(
        self, loop: HandLoop, gateway: str, instance: str, workers: int, busy: frozenset[int],
        taken: Callable[[State], None],
    ) -> None:  # fmt: skip
        self.gateway = gateway
        self.process = Process(instance)
        self._taken = taken
        metrics = Metrics.in_memory()
        self.sockets = Ports(workers, 0)
        self.sockets.busy = busy
        self.resources = Resources()
        loop.start(self.process, self._make(gateway, instance, workers, metrics))
        loop.until_idle()

    async def _make(self, gateway: str, instance: str, workers: int, metrics: Metrics) -> None:
        settings = WorkerSettings(
            gateway, instance, workers, "text", "info", {}, Drain(0.0, 1.0), SessionKey(bytes(32))
        )
        self.workers = Workers(settings, _no_process, self.resources, self.sockets, metrics, PACE)
        self.journey = Journey(self.resources, self.workers, self.sockets, metrics)
        self.stream = Stream(gateway, instance, "0")
        self.client = XdsClient(Address(path=instance), self.stream, self._take, metrics)
        self.journey.on_recovery = self.client.start_over
        for job in (self.workers.run(), self.journey.try_again(), self.client.run()):
            asyncio.get_running_loop().create_task(job)

    async def _take(self, records: Sequence[Record]) -> Mapping[str, str]:
        self._taken(self.stream.states[-1])
        return await self.journey.take(XDS, records)

    def lives(self) -> list[tuple[int, Worker]]:
        """The workers that live now, by slot."""
        return [(slot.index, slot.life) for slot in self.workers.slots if isinstance(slot.life, Worker)]

    def kill(self) -> None:
        """The agent and, as their link ends, its workers."""
        for _, life in self.lives():
            life._channel.close()  # type: ignore[union-attr]
            life.kill()
        self.process.kill()
        self.sockets.release()


MANY_DESCRIPTORS = 300


@contextmanager
def without_a_world(rows: Sequence[Row], dial: Callable[[str], wire.Stream | None]) -> Iterator[None]:
    """Replace what touches the world. `dial`: a proxy's instance calls; answers its stream, None if nobody is there."""
    regions: list[Region] = []
    make = Region.__init__

    def noted(region: Region, *args: Any) -> None:
        make(region, *args)
        regions.append(region)

    def channel(target: str, _options: object) -> wire.Channel:
        return wire.Channel(dial(target.removeprefix("unix:")))

    def nothing(*_: object) -> None:
        pass

    with ExitStack() as stack:
        for target, new in {
            "grpc.aio.insecure_channel": channel,
            "gc.freeze": nothing,
            "gc.collect": nothing,
            "gc.disable": nothing,
            "dataplane.agent.workers.WorkerProcess": type("Worker", (Worker,), {"rows": rows}),
            "dataplane.serving.Acceptor": Accepting,
            "dataplane.serving.Watches": Unwatched,
            "dataplane.table.applier.SLICE": -1.0,
            "controlplane.turns.SLICE": -1.0,
            "controlplane.xds.protocol.delta.MOST_RECORDS": 4,
        }.items():
            stack.enter_context(mock.patch(target, new))
        stack.enter_context(mock.patch.object(Region, "__init__", noted))
        logging.disable()
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            highest = max((region.fd for region in regions), default=0)
            for region in regions:
                region.close()
            if highest > MANY_DESCRIPTORS:
                collect()  # mapped memory keeps a descriptor of its own, and tasks that were killed keep it in cycles
