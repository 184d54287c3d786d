"""What `fanout` measures, each in a process of its own: the server is here, the simulated proxies are elsewhere.

Every function takes `Size`, gives a plain dict and leaves nothing behind. Wall times end when the fleet of the server
knows the last answer. CPU is of this process: server, gRPC threads, and the little that measuring costs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import grpc

from benchmarks.fleet import GATEWAY as FOLDER_GATEWAY
from benchmarks.fleet import Folder
from benchmarks.machine import ROOT
from controlplane.answers.fleet import Fleet
from controlplane.answers.shared import Answer, AnswerKey
from controlplane.app import running
from controlplane.derive import Change
from controlplane.settings import Settings
from controlplane.snapshot import RESOURCE_TYPE, Snapshots
from controlplane.snapshot.history import MOST_STATES
from controlplane.xds import XdsServer, XdsSettings
from gatewright.wire.external import discovery_pb2
from tests.harness.ports import reserve

Json = dict[str, Any]

GATEWAY: Final = "shop/web"
CHANGE_BYTES: Final = 2048
CONTENT_BYTES: Final = 600
"""Of a resource, as a route of the swap benchmark is on the wire."""
PAUSE: Final = 0.05
LOOK: Final = 0.01
"""Between two looks at the fleet: the error of a storm's time. A change is counted instead, and looked at once."""
LONGEST: Final = 120.0
PROCESSES: Final = 2
SLOW: Final = {"trickling": 2, "stuck": 2, "deaf": 1}
"""Slow readers in each of the two processes: ten together."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many of what."""

    proxies: int = 500
    resources: int = 10_000
    changes: int = 20


class Proxies:
    """The simulated proxies, in two processes."""

    def __init__(self, socket: Path, gateway: str, count: int, *, names: bool = False) -> None:
        self._socket, self._gateway, self.count, self._names = socket, gateway, count, names
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        shares = [self.count // PROCESSES + (index < self.count % PROCESSES) for index in range(PROCESSES)]
        for index, share in enumerate(shares):
            numbers = ["--first", str(sum(shares[:index])), "--count", str(share)]
            arguments = [
                "--socket",
                str(self._socket),
                "--gateway",
                self._gateway,
                *numbers,
                *["--names"] * self._names,
            ]
            pipe = asyncio.subprocess.PIPE
            program = [sys.executable, "-m", "benchmarks.lean_fleet"]
            process = await asyncio.create_subprocess_exec(*program, *arguments, cwd=ROOT, stdin=pipe, stdout=pipe)
            self._processes.append(process)

    async def order(self, name: str, **arguments: object) -> list[Json]:
        """Give all processes an order; their answers."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"do": name, **arguments}).encode() + b"\n")
        answers = [await process.stdout.readline() for process in self._processes if process.stdout is not None]
        return [json.loads(answer) for answer in answers]

    async def slow_ones(self) -> int:
        """Make some of each process slow from their next connection on; how many together."""
        await self.order("manners", **SLOW)
        return PROCESSES * sum(SLOW.values())

    async def stop(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()


class Watch:
    """Waits until enough proxies answered: counts what the fleet reports, and looks at it when it can be so."""

    def __init__(self, fleet: Fleet, gateway: str, proxies: int) -> None:
        self._fleet, self._gateway, self._proxies = fleet, gateway, proxies
        self._reported = 0
        self._enough = asyncio.Event()
        self._most = 0
        fleet.answers.subscribe(self._count)

    def _count(self, answers: Sequence[Change[AnswerKey, Answer]]) -> None:
        self._reported += len(answers)
        if self._reported >= self._most:
            self._enough.set()

    async def until(self, condition: Callable[[Any], bool], least: int) -> None:
        """Until the view fulfils the condition; with `least` not looked at before so much was reported from now on."""
        self._reported, self._most = 0, least
        async with asyncio.timeout(LONGEST):
            while least > 1 and self._reported < least:
                self._enough.clear()
                await self._enough.wait()
            while not condition(self._fleet.view(self._gateway)):
                await asyncio.sleep(LOOK)

    async def answered(self, sequence: int) -> None:
        """Until all have answered that state; a view would sum up what they refuse at every look."""
        async with asyncio.timeout(LONGEST):
            while self._fleet.answered(self._gateway, sequence) < self._proxies:
                await asyncio.sleep(LOOK)

    async def acknowledged(self, sequence: int, least: int = 1, *, but: int = 0) -> None:
        wanted = self._proxies - but
        await self.until(lambda view: view.acknowledged_by(sequence) >= wanted, least)


@dataclass(slots=True)
class Shared:
    """A server with its snapshots, its fleet and its proxies."""

    snapshots: Snapshots
    fleet: Fleet
    server: XdsServer
    proxies: Proxies
    watch: Watch

    def change(self, number: int) -> int:
        """Publish one changed resource of 2 KB; the sequence of the new state."""
        content = random.Random(number).randbytes(CHANGE_BYTES)
        (snapshot,) = self.snapshots.apply([(GATEWAY, RESOURCE_TYPE, "route/httproute/shop/r1/0", content)])
        return snapshot.sequence

    @property
    def sequence(self) -> int:
        return self.snapshots.newest(GATEWAY).sequence

    def state_bytes(self) -> int:
        """What one state is on the wire, framing aside."""
        return sum(len(record.wire) for record in self.snapshots.newest(GATEWAY).resources(RESOURCE_TYPE))

    async def connect(self, **how: object) -> None:
        await self.proxies.order("open", **how)

    async def drop(self) -> None:
        await self.proxies.order("drop")
        await self.watch.until(lambda view: view.connected == 0, 1)


@contextlib.asynccontextmanager
async def shared(size: Size, *, names: bool = False) -> AsyncIterator[Shared]:
    """Snapshots, server and proxies, the proxies not yet connected."""
    folder = Path(tempfile.mkdtemp(prefix="gatewright-fanout"))
    snapshots, fleet = Snapshots(), Fleet(time.time)
    server = XdsServer(snapshots, fleet, XdsSettings(folder / "xds.sock", tcp=None))
    chance = random.Random(1)
    names_of = (f"route/httproute/shop/r{number}/0" for number in range(size.resources))
    snapshots.apply((GATEWAY, RESOURCE_TYPE, name, chance.randbytes(CONTENT_BYTES)) for name in names_of)
    proxies = Proxies(folder / "xds.sock", GATEWAY, size.proxies, names=names)
    try:
        await server.start()
        await proxies.start()
        yield Shared(snapshots, fleet, server, proxies, Watch(fleet, GATEWAY, size.proxies))
    finally:
        await proxies.stop()
        await server.stop()
        shutil.rmtree(folder)


# Memory


def memory(field: str) -> int:
    """Bytes of VmRSS or VmHWM (the peak since `forget_peak`) of this process."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0]) * 1024


def forget_peak() -> None:
    """Linux: 5 in clear_refs sets the peak to the present value."""
    Path("/proc/self/clear_refs").write_text("5")


class Meter:
    """Wall time, CPU time and memory of a stretch."""

    def __init__(self) -> None:
        forget_peak()
        self._rss = memory("VmRSS")
        self._cpu, self._wall = time.process_time(), time.monotonic()

    def read(self, until: float | None = None) -> Json:
        wall = (until or time.monotonic()) - self._wall
        peak = memory("VmHWM")
        return {
            "wall_s": round(wall, 3),
            "cpu_s": round(time.process_time() - self._cpu, 3),
            "rss_before_bytes": self._rss,
            "rss_peak_bytes": peak,
            "rss_grew_bytes": peak - self._rss,
        }


def _spread(walls: Sequence[float], cpus: Sequence[float]) -> Json:
    return {
        "wall_ms_median": round(statistics.median(walls) * 1e3, 1),
        "wall_ms_max": round(max(walls) * 1e3, 1),
        "cpu_ms_median": round(statistics.median(cpus) * 1e3, 1),
        "changes": len(walls),
    }


# Changes


async def _changes(size: Size, change: Callable[[int], Any], done: Callable[[Any], Any]) -> Json:
    walls, cpus = [], []
    for number in range(size.changes):
        await asyncio.sleep(PAUSE)
        wall, cpu = time.monotonic(), time.process_time()
        await done(change(number))
        walls.append(time.monotonic() - wall)
        cpus.append(time.process_time() - cpu)
    return _spread(walls, cpus)


async def snapshot_change(size: Size) -> Json:
    """One resource of 2 KB, published to the snapshots: until the last ACK is in the fleet."""
    async with shared(size) as made:
        await made.connect()
        await made.watch.acknowledged(made.sequence)
        return await _changes(size, made.change, lambda sequence: made.watch.acknowledged(sequence, size.proxies))


async def curve(size: Size) -> Json:
    """The same for fewer proxies."""
    counts = sorted({min(count, size.proxies) for count in (1, 10, 100, 250, 500)})
    return {str(count): await snapshot_change(replace(size, proxies=count)) for count in counts}


async def bare_handler(size: Size) -> Json:
    """What gRPC alone costs: handlers that write the same bytes and read the answer, and know nothing else."""
    response = (
        discovery_pb2.DeltaDiscoveryResponse(
            type_url=RESOURCE_TYPE, nonce="1", system_version_info="0" * 32
        ).SerializeToString()
        + discovery_pb2.DeltaDiscoveryResponse(
            resources=[{"name": "r1", "version": "1", "resource": {"value": bytes(CHANGE_BYTES)}}]
        ).SerializeToString()
    )
    bare = _Bare(response, size.proxies)
    folder = Path(tempfile.mkdtemp(prefix="gatewright-fanout"))
    server = grpc.aio.server()
    method = grpc.stream_stream_rpc_method_handler(bare.serve)
    name = "envoy.service.discovery.v3.AggregatedDiscoveryService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"DeltaAggregatedResources": method}),))
    server.add_insecure_port(f"unix:{folder}/xds.sock")
    proxies = Proxies(folder / "xds.sock", GATEWAY, size.proxies)
    try:
        await server.start()
        await proxies.start()
        await proxies.order("open")
        await bare.wait(2)
        return await _changes(size, lambda _: bare.write(), lambda _: bare.wait(1))
    finally:
        await proxies.stop()
        await server.stop(0)
        shutil.rmtree(folder)


class _Bare:
    """All streams of the bare server: one event wakes the writers, answers are counted."""

    def __init__(self, response: bytes, proxies: int) -> None:
        self._response, self._proxies = response, proxies
        self._wakes: list[asyncio.Event] = []
        self._read = 0
        self._all = asyncio.Event()

    def write(self) -> None:
        for wake in self._wakes:
            wake.set()

    async def wait(self, each: int) -> None:
        """Until every stream read so many more."""
        async with asyncio.timeout(LONGEST):
            while self._read < each * self._proxies:
                self._all.clear()
                await self._all.wait()
        self._read = 0

    async def serve(self, requests: object, call: Any) -> None:
        wake = asyncio.Event()
        self._wakes.append(wake)
        reader = asyncio.create_task(self._count(call))
        try:
            while not reader.done():
                await wake.wait()
                wake.clear()
                await call.write(self._response)
        finally:
            reader.cancel()

    async def _count(self, call: Any) -> None:
        while await call.read() is not grpc.aio.EOF:
            self._read += 1
            if self._read >= self._proxies:
                self._all.set()


# Through the folder


async def folder_change(size: Size) -> Json:
    """The whole controller: from the write of a file with one changed route of 2 KB, and with a changed Gateway."""
    folder = Folder(reserve())
    places = Path(tempfile.mkdtemp(prefix="gatewright-fanout"))
    folder.routes(range(size.resources - 1), 1)
    _write_route(folder, 0)
    gateway = f"default/{FOLDER_GATEWAY}"
    proxies = Proxies(places / "xds.sock", gateway, size.proxies)
    try:
        async with running(Settings(folder.path, places / "xds.sock", ("127.0.0.1", 0), ("127.0.0.1", 0))) as app:
            await asyncio.wait_for(app.pipeline.ready.wait(), LONGEST)
            watch = Watch(app.pipeline.fleet, gateway, size.proxies)
            newest = app.pipeline.snapshots.newest
            await proxies.start()
            await proxies.order("open")
            await watch.acknowledged(newest(gateway).sequence)

            def write(number: int) -> int:
                sequence = newest(gateway).sequence + 1
                _write_route(folder, number + 1)
                return sequence

            async def programmed(_: object) -> None:
                await watch.acknowledged(newest(gateway).sequence + 1, size.proxies)
                while not _is_programmed(app.pipeline.program.status("Gateway", "default", FOLDER_GATEWAY)):
                    await asyncio.sleep(0.001)

            route = await _changes(size, write, lambda sequence: watch.acknowledged(sequence, size.proxies))
            fewer = replace(size, changes=max(2, size.changes // 2))
            settled = await _changes(fewer, lambda number: folder.gateway(extra=bool(number % 2)), programmed)
            await proxies.stop()
            return {"route": route, "gateway_until_programmed": settled}
    finally:
        folder.remove()
        shutil.rmtree(places)


def _write_route(folder: Folder, version: int) -> None:
    """A file with one route of about 2 KB on the wire."""
    headers = [{"name": f"x-{index}", "value": f"{version:06}" + "v" * 190} for index in range(9)]
    rule = {
        "filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": headers}}],
        "backendRefs": [{"group": "gatewright.dev", "kind": "GatewayBackend", "name": "origin"}],
    }
    spec = {
        "parentRefs": [{"name": FOLDER_GATEWAY, "sectionName": "http"}],
        "hostnames": ["big.example"],
        "rules": [rule],
    }
    meta = {"name": "big"}
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": meta, "spec": spec}
    folder.write("big.yaml", route)


def _is_programmed(status: Any) -> bool:
    found = {condition["type"]: condition["status"] for condition in (status or {}).get("conditions", ())}
    return found.get("Programmed") == "True"


# Storms


async def reconnect_storm(size: Size) -> Json:
    """All drop their connections and come back at once, each claiming the state that it holds."""
    async with shared(size) as made:
        await made.connect()
        await made.watch.acknowledged(made.sequence)
        await made.drop()
        meter = Meter()
        await made.connect()
        await made.watch.acknowledged(made.sequence)
        found = meter.read()
        counts = await made.proxies.order("counts")
        return {**found, "most_bytes_to_one": max(each["most_bytes"] for each in counts)}


async def outdated_storm(size: Size, *, changes: int = 1) -> Json:
    """All come back to a server that has gone on by a state, and remembers the one that they hold."""
    async with shared(size, names=True) as made:
        await made.connect()
        await made.watch.acknowledged(made.sequence)
        await made.drop()
        for number in range(changes):
            made.change(number)
        meter = Meter()
        await made.connect()
        await made.watch.acknowledged(made.sequence)
        found = meter.read()
        counts = await made.proxies.order("counts")
        return {**found, "most_bytes_to_one": max(each["most_bytes"] for each in counts)}


async def forgotten_storm(size: Size) -> Json:
    """The same after more states than are remembered, or a restart: each is asked what it holds."""
    return await outdated_storm(size, changes=MOST_STATES + 1)


async def cold_storm(size: Size, *, slow: bool = False) -> Json:
    """All come at once and hold nothing; with `slow` ten of them hardly read. Time is that of the others."""
    async with shared(size) as made:
        but = await made.proxies.slow_ones() if slow else 0
        meter = Meter()
        await made.connect(cold=True)
        await made.watch.acknowledged(made.sequence, but=but)
        found = meter.read()
        state = made.state_bytes()
        asked = state * size.proxies
        return {**found, "state_bytes": state, "asked_bytes": asked, "slow": but}


async def slow_storm(size: Size) -> Json:
    """`cold_storm` with ten slow readers."""
    return await cold_storm(size, slow=True)


async def refusal_storm(size: Size) -> Json:
    """All refuse the same state, in a message of 64 KiB."""
    rows = [{"key": f"route/httproute/shop/r{n}/0", "error": f"no such filter in {n} " + "x" * 80} for n in range(500)]
    async with shared(size) as made:
        meter = Meter()
        await made.connect(refuses=json.dumps(rows))
        await made.watch.answered(made.sequence)
        first = meter.read()
        await asyncio.sleep(1)
        counts = await made.proxies.order("counts")
        view = made.fleet.view(GATEWAY)
        return {
            **first,
            "message_bytes": len(json.dumps(rows)),
            "states_to_one": max(each["states"] for each in counts) / (size.proxies / PROCESSES),
            "resources_refused": len(view.refusals),
        }


MEASURES: Final[dict[str, Callable[[Size], Any]]] = {
    "change": snapshot_change,
    "bare": bare_handler,
    "curve": curve,
    "folder": folder_change,
    "reconnect": reconnect_storm,
    "outdated": outdated_storm,
    "forgotten": forgotten_storm,
    "cold": cold_storm,
    "slow": slow_storm,
    "refusals": refusal_storm,
}


def main() -> None:
    """One measure, as JSON: `python -m benchmarks.fanout_measures NAME PROXIES RESOURCES CHANGES`."""
    name, *numbers = sys.argv[1:]
    found = asyncio.run(MEASURES[name](Size(*map(int, numbers))))
    print(json.dumps({**found, "pid": os.getpid()}))


if __name__ == "__main__":
    main()
