"""Does a change of configuration disturb traffic? `python -m benchmarks.swap [--routes N] [--swaps N]`.

A real proxy, 2 workers, defaults on, fed by the benchmark itself (`feed`), so that no controller is measured. Every
route has a header modifier and a timeout of its own. Under keep-alive and new connections, uploads and open event
streams: all routes are loaded; thousands of swaps of one route each, changed (two of four), added and removed; a tenth
is changed, then all; endpoints and a listener come and go.

Demands no failed request; that applying a state holds an event loop for 10 ms at most (CPU time of its thread, from the
worker's log); and that a worker's resident memory after all swaps is within 5% of that after the first 100. Beside it,
how late the workers' timers fired by the clock, before and during the changes.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks import cpu
from benchmarks.feed import Feed, feeding
from benchmarks.load import Backend
from benchmarks.machine import LOAD_CORE, OUT, PROXY_CORE, ROOT, Process, alone
from benchmarks.states import GATEWAY, OTHER_LISTENER, TRAFFIC_HOST, States
from dataplane.table.store import Change
from tests.harness.ports import reserve

STALL_MS, STALL_AIM_MS = 10.0, 2.0
GROWTH = 1.05
EARLY = 100
"""Swaps after which memory is read for the first time."""
_READINGS = 10
"""How often it is read from there on."""
_STILL = 5.0
"""Seconds of traffic without any change: what the machine alone does to the timers."""
_AGREE = 12
"""Connections in a row that must answer alike: they are spread over the workers."""
_LAG = "gatewright_event_loop_lag_seconds_bucket"
_HOLD = re.compile(r"state applied, longest hold of the loop ([0-9.]+) ms")


def version_of(port: int, hostname: str) -> str:
    """The route's version as a new connection sees it, "" when there is no such route yet."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        client.request("GET", "/", headers={"Host": hostname})
        answer = client.getresponse()
        answer.read()
        return answer.headers.get("x-version", "") if answer.status == 200 else ""
    except OSError:
        return ""
    finally:
        client.close()


def served(port: int, hostname: str, version: str) -> bool:
    return all(version_of(port, hostname) == version for _ in range(_AGREE))


class Proxy:
    """The proxy under test: its metrics, its log, its workers' memory."""

    def __init__(self, socket: Path, workers: int, priority: int, stack: ExitStack) -> None:
        self._stats_port = reserve()
        pages = ["--admin=off", f"--stats=127.0.0.1:{self._stats_port}", f"--readiness=127.0.0.1:{reserve()}"]
        command = ["nice", "-n", str(priority), sys.executable, "-m", "dataplane", "--xds", f"unix:{socket}"]
        flags = ["--gateway", GATEWAY.removeprefix("gateway/"), f"--workers={workers}"]
        level = ["--log-level", "info,dataplane.worker=debug"]
        environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
        cores = f"{PROXY_CORE},{LOAD_CORE}"
        self.process = Process("proxy", [*command, *flags, *level, *pages], cores, environment)
        stack.callback(self.process.stop)
        self._read = 0

    def holds(self) -> list[float]:
        """The longest hold of a loop in ms, of each state and worker since the last call."""
        text = self.process.log()[self._read :]
        end = text.rfind("\n") + 1
        self._read += end
        return [float(hold) for hold in _HOLD.findall(text[:end])]

    def metrics(self) -> dict[str, float]:
        """Series as written -> value."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._stats_port}/metrics", timeout=5) as page:
            text = page.read().decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {series: float(value) for series, _, value in rows}

    def workers(self) -> list[int]:
        """Process ids. The server that they are forks of has their command line, and them below it."""
        command = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in cpu.tree(self.process.pid)}
        alike = [pid for pid, line in command.items() if b"\0dataplane.worker_entry\0" in line]
        return [pid for pid in alike if cpu.tree(pid) == [pid]]


class Swaps:
    """The phases. `rows` has a line for each kind of change, `memory` the RSS of each worker by number of swaps."""

    def __init__(self, feed: Feed, proxy: Proxy, states: States) -> None:
        self.feed, self.proxy, self.states = feed, proxy, states
        self.rows: list[dict[str, Any]] = []
        self.memory: dict[int, list[int]] = {}

    async def load(self) -> None:
        await self._phase("load", self.states.routes(range(self.states.count)))
        await self._phase("one route changed", self.states.routes(range(1), version=2))

    async def many(self) -> None:
        """What moves much at once. It leaves free memory behind, in which a leak could hide: after `one_by_one`."""
        states, every = self.states, range(self.states.count)
        table: tuple[tuple[str, Callable[[], Iterable[Change]]], ...] = (
            ("a tenth changed", lambda: states.routes(range(states.count // 10), version=3)),
            ("all changed", lambda: states.routes(every, version=4)),
            ("endpoint of all routes added", lambda: states.endpoints(range(1, 2))),
            ("endpoint of all routes removed", lambda: states.endpoints_gone(range(1, 2))),
            ("second listener for all routes", lambda: states.listener(OTHER_LISTENER)),
            ("that listener removed", lambda: states.gone(OTHER_LISTENER)),
            ("that listener returned", lambda: states.listener(OTHER_LISTENER)),
        )
        for name, changes in table:
            await self._phase(name, changes())

    async def _phase(self, name: str, changes: Iterable[Change]) -> None:
        began = time.monotonic()
        await self.feed.say(changes)
        seconds = time.monotonic() - began
        await asyncio.sleep(1.0)  # workers log after the old table is gone, a slice at a time
        self._row(name, seconds)

    def _row(self, name: str, seconds: float) -> None:
        holds = self.proxy.holds()
        longest = max(holds, default=float("nan"))
        self.rows.append({"change": name, "longest_ms": longest, "seconds": seconds, "states": len(holds)})

    async def one_by_one(self, count: int) -> None:
        """One route to a swap."""
        began, edits = time.monotonic(), single_edits(self.states)
        every = max(1, (count - EARLY) // _READINGS)
        for number in range(1, count + 1):
            await self.feed.say(next(edits))
            if number >= EARLY and ((number - EARLY) % every == 0 or number == count):
                self.memory[number] = [cpu.resident_kib(pid) for pid in self.proxy.workers()]
        self._row(f"{count} swaps of one route", time.monotonic() - began)

    def growth(self) -> float:
        """RSS at the end over RSS after EARLY swaps, of the worker that grew most."""
        first, last = self.memory[min(self.memory)], self.memory[max(self.memory)]
        return max(after / before for before, after in zip(first, last, strict=True))


def single_edits(states: States) -> Iterator[Iterator[Change]]:
    """For ever: a constant of a route changed, of another, a route added, the same removed."""
    number = 0
    while True:
        for step in range(2):
            yield states.routes(((number * 2 + step) * 7919 % states.count,), version=10 + number)
        yield states.routes((states.count + number,))
        yield states.removed((states.count + number,))
        number += 1


def lateness(before: dict[str, float], after: dict[str, float]) -> dict[str, int]:
    """How often the timers fired late, by upper bound in seconds."""
    bounds = sorted((s for s in after if s.startswith(_LAG)), key=_bound)
    counts = [after[series] - before.get(series, 0.0) for series in bounds]
    steps = [count - previous for count, previous in zip(counts, [0.0, *counts], strict=False)]
    return {f"{_bound(series):g}": int(step) for series, step in zip(bounds, steps, strict=True) if step}


def _bound(series: str) -> float:
    return float(series.partition('le="')[2].partition('"')[0].replace("+Inf", "inf"))


@asynccontextmanager
async def traffic(port: int, stack: ExitStack) -> AsyncIterator[dict[str, Any]]:
    """Load from another process until the block ends; the dict has its report afterwards."""
    command = ["nice", "-n", "10", sys.executable, "-m", "benchmarks.traffic", str(port), TRAFFIC_HOST]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    stack.callback(process.kill)
    report: dict[str, Any] = {}
    yield report
    text, _ = await asyncio.to_thread(process.communicate, "", timeout=60)
    report |= json.loads(text)


async def measure(routes: int, swaps: int, workers: int = 2, priority: int = 0) -> dict[str, Any]:
    """All phases at this size."""
    folder = Path(tempfile.mkdtemp(prefix="gatewright-swap"))
    try:
        async with feeding(folder / "xds.sock") as feed:
            with ExitStack() as stack:  # the proxy ends before its control plane does
                backends = [Backend(), Backend()]
                for backend in backends:
                    stack.callback(backend.process.stop)
                states = States(routes, reserve(), [backend.port for backend in backends])
                proxy = Proxy(folder / "xds.sock", workers, priority, stack)
                run = Swaps(feed, proxy, states)
                return {"routes": routes, "swaps": swaps, **await _under_traffic(run, swaps, stack)}
    finally:
        shutil.rmtree(folder)


async def _under_traffic(run: Swaps, swaps: int, stack: ExitStack) -> dict[str, Any]:
    states, proxy = run.states, run.proxy
    await run.feed.say(states.gateway())
    await asyncio.to_thread(proxy.process.await_port, states.port)
    async with traffic(states.port, stack) as report:
        await asyncio.sleep(1.0)
        still = await asyncio.to_thread(proxy.metrics)
        await asyncio.sleep(_STILL)
        before = await asyncio.to_thread(proxy.metrics)
        await run.load()
        await run.one_by_one(swaps)
        await run.many()
    after = await asyncio.to_thread(proxy.metrics)
    assert await asyncio.to_thread(served, states.port, TRAFFIC_HOST, "1")
    return {
        "changes": run.rows,
        "rss_kib": {str(number): sizes for number, sizes in run.memory.items()},
        "rss_ratio": run.growth(),
        "traffic": report,
        "late_timers": lateness(before, after),
        f"late_timers_before_in_{_STILL:g}_s": lateness(still, before),
    }


def show(found: dict[str, Any]) -> str:
    """The table that is printed."""
    demand = f"(hold: {STALL_MS:g} ms allowed, aim {STALL_AIM_MS:g})"
    lines = [f"{'change':32}{'longest hold':>15}{'until served':>15}   {demand}"]
    for row in found["changes"]:
        lines.append(f"{row['change']:32}{row['longest_ms']:>12.2f} ms{row['seconds']:>13.2f} s")
    sizes = found["rss_kib"]
    first, last = min(sizes, key=int), max(sizes, key=int)
    lines += [
        f"failed requests: {found['traffic']['failed']} of {sum(found['traffic']['done'].values())} (0 allowed)",
        f"worker RSS in KiB after {first} swaps {sizes[first]}, after {last} {sizes[last]}:"
        f" x {found['rss_ratio']:.3f} (x {GROWTH:g} allowed)",
        f"timers late by, count: {found['late_timers']}; before: {found[f'late_timers_before_in_{_STILL:g}_s']}",
    ]
    return "\n".join(lines)


def holds(found: dict[str, Any]) -> bool:
    """Whether everything that is demanded was met."""
    return (
        not found["traffic"]["failed"]
        and all(row["longest_ms"] <= STALL_MS for row in found["changes"])
        and found["rss_ratio"] <= GROWTH
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.swap", description=__doc__)
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--swaps", type=int, default=5_000, help=f"of one route each, more than {EARLY}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--priority", type=int, default=0, help="nice value of the proxy, where other things run")
    parser.add_argument("--quick", action="store_true", help="1,000 routes, 200 swaps: a look, not a result")
    parser.add_argument("--json", type=Path, default=OUT / "swap.json", help="write the figures to this file")
    options = parser.parse_args()
    routes, swaps = (1_000, 200) if options.quick else (options.routes, options.swaps)
    with alone():
        found = asyncio.run(measure(routes, swaps, options.workers, options.priority))
    options.json.write_text(json.dumps(found, indent=1))
    print(show(found))
    print("holds" if holds(found) else "DOES NOT HOLD")
    return 0 if holds(found) else 1


if __name__ == "__main__":
    sys.exit(main())
