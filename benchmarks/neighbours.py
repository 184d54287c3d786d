"""Do requests wait while another tenant's routes are applied? `python -m benchmarks.neighbours`.

A real proxy with one worker, fed by the benchmark itself (`feed`). Two hundred requests a second for a route of
somebody else begin when they are due, whatever became of those before, each on a connection that is kept. What a
request waits is CPU time of the worker's process from when it was sent until its answer was there: a busy machine
gives the same figure. Meanwhile one tenant

- has 80 expressions of 200 characters that nobody saw before in each second, eight to a state;
- adds 600 routes of 64 regular expressions each and removes them, several times.

Demands a 99th percentile below 50 ms in each phase, and no failed request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.feed import Feed, feeding
from benchmarks.load import Backend
from benchmarks.machine import OUT, alone
from benchmarks.states import TRAFFIC_HOST, States
from benchmarks.swap import Proxy
from dataplane.table.store import Change
from tests.harness.ports import reserve

MOST_MS: Final = 50.0
RATE: Final = 200
"""Requests in a second."""
EXPRESSIONS, STATES_A_SECOND = 80, 10
LENGTH: Final = 200
ROUTES, MATCHES = 600, 64
ROUNDS: Final = 5
"""How often they are added and removed: each takes less than a second."""
PATIENCE: Final = 30.0


class Worker:
    """The clock of the CPU time of a process that is not ours (clock_getcpuclockid(3), Linux)."""

    def __init__(self, pid: int) -> None:
        self._clock = (~pid << 3) | 2

    def milliseconds(self) -> float:
        return time.clock_gettime_ns(self._clock) / 1e6


@dataclass
class Waits:
    """Of the requests of one phase."""

    waited: list[float] = field(default_factory=list)
    """Milliseconds of CPU of the worker."""
    failed: int = 0
    cpu: float = 0.0
    """Of the worker for all of it, milliseconds."""

    def row(self) -> dict[str, float]:
        found = sorted(self.waited)
        at = {name: found[min(len(found) - 1, int(len(found) * part))] for name, part in PARTS.items()}
        return {"requests": len(found), "failed": self.failed, **at, "worker_cpu_ms": self.cpu}


PARTS: Final = {"p50_ms": 0.5, "p99_ms": 0.99, "longest_ms": 1.0}


class Requests:
    """Of somebody else, at their rate. Connections are kept, and as many as there are requests under way."""

    def __init__(self, port: int, worker: Worker) -> None:
        self._port, self._worker = port, worker
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._text = f"GET / HTTP/1.1\r\nhost: {TRAFFIC_HOST}\r\n\r\n".encode()

    async def run(self, waits: Waits, until: asyncio.Event) -> None:
        began, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while not until.is_set():
                number += 1
                group.create_task(self._one(waits))
                await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))

    async def _one(self, waits: Waits) -> None:
        began = self._worker.milliseconds()
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = self._free.pop() if self._free else await self._connection()
                writer.write(self._text)
                head = await reader.readuntil(b"\r\n\r\n")
                took = self._worker.milliseconds() - began
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
        except (OSError, EOFError, ValueError, TimeoutError):
            waits.failed += 1
            return
        self._free.append((reader, writer))
        waits.waited.append(took)
        waits.failed += not head.startswith(b"HTTP/1.1 200 ")

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    async def close(self) -> None:
        for _, writer in self._free:
            writer.close()
            await writer.wait_closed()


def fresh(states: States, number: int, count: int) -> Iterator[Change]:
    """A route with expressions that no worker has seen."""
    expressions = []
    for index in range(count):
        text = f'request.path == "/{number}/{index}/'
        expressions.append(f'{text}{"x" * (LENGTH - len(text) - 1)}"')
    return states.guarded("tenant", expressions)


async def expressions(feed: Feed, states: States, seconds: int) -> None:
    """At their rate, or as fast as they are applied, whichever is slower."""
    began = time.monotonic()
    for number in range(seconds * STATES_A_SECOND):
        await feed.say(fresh(states, number, EXPRESSIONS // STATES_A_SECOND))
        await asyncio.sleep(max(0.0, began + (number + 1) / STATES_A_SECOND - time.monotonic()))


@asynccontextmanager
async def asked(port: int, worker: Worker, waits: Waits) -> AsyncIterator[None]:
    """Requests until the block ends; then `waits` has what they waited."""
    until, requests = asyncio.Event(), Requests(port, worker)
    running = asyncio.create_task(requests.run(waits, until))
    cpu = worker.milliseconds()
    try:
        yield
    finally:
        until.set()
        await running
        await requests.close()
        waits.cpu += worker.milliseconds() - cpu


async def measure(seconds: int, routes: int) -> dict[str, dict[str, float]]:
    """All phases."""
    folder = Path(tempfile.mkdtemp(prefix="gatewright-neighbours"))
    try:
        async with feeding(folder / "xds.sock") as feed:
            with ExitStack() as stack:  # the proxy ends before its control plane does
                backend = Backend()
                stack.callback(backend.process.stop)
                states = States(0, reserve(), [backend.port])
                proxy = Proxy(folder / "xds.sock", 1, 0, stack)
                return await _phases(feed, proxy, states, seconds, routes)
    finally:
        shutil.rmtree(folder)


async def _phases(feed: Feed, proxy: Proxy, states: States, seconds: int, routes: int) -> dict[str, dict[str, float]]:
    await feed.say(states.gateway())
    await asyncio.to_thread(proxy.process.await_port, states.port)
    await feed.say(fresh(states, -1, 1))  # the first one of a worker loads the language
    (pid,) = proxy.workers()
    worker = Worker(pid)
    every = range(routes)
    added, removed = f"{routes} routes of {MATCHES} regular expressions added", "the same removed"
    phases: list[tuple[str, Callable[[], Awaitable[None]]]] = [
        ("nothing", lambda: asyncio.sleep(seconds / 2)),
        (f"{EXPRESSIONS} new expressions a second", lambda: expressions(feed, states, seconds)),
        *[
            (added, lambda: feed.say(states.patterned(every, MATCHES))),
            (removed, lambda: feed.say(states.removed(every))),
        ]
        * ROUNDS,
    ]
    found: dict[str, Waits] = {}
    for name, act in phases:
        async with asked(states.port, worker, found.setdefault(name, Waits())):
            await act()
    return {name: waits.row() for name, waits in found.items()}


def show(rows: dict[str, dict[str, float]]) -> str:
    heads = f"{'p50':>10}{'p99':>10}{'longest':>10}   CPU of the worker, ms"
    lines = [f"{'meanwhile':46}{'requests':>10}{'failed':>8}{heads}"]
    for name, row in rows.items():
        times = "".join(f"{row[part]:>10.2f}" for part in PARTS)
        lines.append(f"{name:46}{row['requests']:>10.0f}{row['failed']:>8.0f}{times}   of {row['worker_cpu_ms']:.0f}")
    return "\n".join(lines)


def holds(rows: dict[str, dict[str, float]]) -> bool:
    return all(row["p99_ms"] < MOST_MS and not row["failed"] for row in rows.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.neighbours", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of new expressions")
    parser.add_argument("--routes", type=int, default=ROUTES)
    parser.add_argument("--json", type=Path, default=OUT / "neighbours.json", help="write the figures to this file")
    options = parser.parse_args()
    with alone():
        rows: dict[str, Any] = asyncio.run(measure(options.seconds, options.routes))
    options.json.write_text(json.dumps(rows, indent=1))
    print(show(rows))
    print("holds" if holds(rows) else "DOES NOT HOLD")
    return 0 if holds(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
