"""How does what a proxy costs grow with its routes? `python -m benchmarks.growth [--routes N ...]`.

One proxy with one worker for each size, fed by the benchmark (`feed`), every route with a hostname, a header modifier
and a timeout of its own. All of them run at once and are loaded in interleaved rounds, so that the CPU of a request at
one size is compared with that at the smallest size in the same round. Before that: seconds until the routes serve, CPU
of one changed route (agent and worker), and the worker's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

from benchmarks import cpu
from benchmarks.feed import Feed, feeding
from benchmarks.load import Backend, Sample, Shape, measure
from benchmarks.machine import OUT, alone
from benchmarks.proxies import TARGET
from benchmarks.rounds import Rounds, interleave
from benchmarks.states import States
from benchmarks.swap import Proxy
from tests.harness.ports import reserve

_SHAPE = Shape(TARGET, 32)
_CHANGES = 50


class Size:
    """One proxy with so many routes."""

    def __init__(self, routes: int, feed: Feed, socket: Path, backend: Backend, stack: ExitStack) -> None:
        self.feed = feed
        self.states = States(routes, reserve(), [backend.port])
        self.proxy = Proxy(socket, 1, 0, stack)
        self.row: dict[str, float] = {"routes": routes}

    async def load(self) -> None:
        """Load all routes, then change one after the other."""
        loop = asyncio.get_running_loop()
        await self.feed.say(self.states.gateway())
        await asyncio.to_thread(self.proxy.process.await_port, self.states.port)
        began = loop.time()
        await self.feed.say(self.states.routes(range(self.states.count)))
        self.row["seconds until served"] = round(loop.time() - began, 2)
        await asyncio.sleep(2.0)  # what loading left behind is freed in slices
        spent = cpu.nanoseconds(self.proxy.process.pid)
        for number in range(_CHANGES):
            await self.feed.say(self.states.routes((number,), version=2))
        spent = cpu.nanoseconds(self.proxy.process.pid) - spent
        self.row["cpu ms per changed route"] = round(spent / _CHANGES / 1e6, 2)
        (worker,) = self.proxy.workers()
        self.row["worker MiB"] = round(cpu.resident_kib(worker) / 1024, 1)


async def run(counts: list[int], rounds: int, seconds: int) -> list[dict[str, float]]:
    """A row for each size."""
    folder = Path(tempfile.mkdtemp(prefix="gatewright-growth"))
    async with AsyncExitStack() as feeds:
        feeds.callback(shutil.rmtree, folder)
        stack = feeds.enter_context(ExitStack())
        backend = Backend()
        stack.callback(backend.process.stop)
        sizes: dict[str, Size] = {}
        for count in counts:
            socket = folder / f"{count}.sock"
            feed = await feeds.enter_async_context(feeding(socket))
            sizes[str(count)] = size = Size(count, feed, socket, backend, feeds.enter_context(ExitStack()))
            await size.load()

        def one(name: str) -> Sample:
            size = sizes[name]
            return measure(size.proxy.process, size.states.port, backend, _SHAPE, seconds)

        found = await asyncio.to_thread(_rounds, list(sizes), one, rounds)
    for name, size in sizes.items():
        size.row["us per request"] = round(found.median(name, "microseconds"), 1)
        ratios = found.ratios(name, str(counts[0]), "microseconds")
        size.row["request, times the smallest"] = round(statistics.median(ratios), 3)
    return [size.row for size in sizes.values()]


def _rounds(names: list[str], one: Any, count: int) -> Rounds:
    for name in names:  # warm
        one(name)
    return interleave(names, one, count, lambda text: print(text, file=sys.stderr, flush=True))


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=__doc__)
    parser.add_argument("--routes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2, help="of load, per size and round")
    parser.add_argument("--quick", action="store_true", help="two small sizes, 2 rounds of 1 second: a look")
    parser.add_argument("--json", type=Path, default=OUT / "growth.json", metavar="FILE")
    options = parser.parse_args()
    if options.quick:
        options.routes, options.rounds, options.seconds = [100, 1_000], 2, 1
    with alone():
        rows = asyncio.run(run(options.routes, options.rounds, options.seconds))
    options.json.write_text(json.dumps(rows, indent=1))
    for row in rows:
        print("  ".join(f"{name} {value:g}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
