"""Requests beside collectors that hang, refuse, answer a byte at a time or are away: the 99th of a hundred latencies,
and what the worker spends on each. The latter says something where other work keeps the machine busy.

`python -m benchmarks.collectors [--seconds N] [--runs N]`: one worker that traces each request and sends each line of
its log; wrk with 16 connections. "none" has no collector, "well" one that takes what comes. The runs of all are
interleaved, so that other work on the machine meets each alike.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from tests.fakes.collector import collecting
from tests.fakes.proxy_process import origin, running
from tests.harness.processes import cpu_seconds
from tests.loopback.test_bad_collectors import FILE, LEAVES, Peer, hangs, listening, refuses, trickles

NONE = FILE[FILE.index("binds:") :]
BAD: dict[str, Peer | None] = {"away": None, "hangs": hangs, "refuses": refuses, "a byte at a time": trickles}
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


class Load(NamedTuple):
    p99: float
    """Milliseconds."""
    requests: int


class Found(NamedTuple):
    p99: float
    cpu: float
    """Microseconds of the worker, for a request."""


async def load(port: int, seconds: int) -> Load:
    command = ("wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}/a")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    found = re.search(r"99%\s+([0-9.]+)(us|ms|s)", out.decode())
    count = re.search(r"(\d+) requests in", out.decode())
    if found is None or count is None or "Non-2xx" in out.decode():
        raise SystemExit(out.decode())
    return Load(float(found[1]) * _UNITS[found[2]], int(count[1]))


async def measured(folder: Path, text: str, seconds: int) -> Found:
    (folder / "config.yaml").write_text(text)
    async with running("-f", str(folder / "config.yaml"), workers=1, leaves=LEAVES) as proxy:
        await proxy.ready()
        (worker,) = await proxy.workers()
        await load(proxy.at(8080), 1)
        before = cpu_seconds(worker)
        done = await load(proxy.at(8080), seconds)
        return Found(done.p99, (cpu_seconds(worker) - before) / done.requests * 1e6)


async def one(name: str, folder: Path, seconds: int) -> Found:
    async with origin() as server:
        if name in BAD:
            async with listening(BAD[name]) as port:
                return await measured(folder, FILE.format(port=port, server=server), seconds)
        with collecting() if name == "well" else nullcontext() as collector:
            text = NONE if collector is None else FILE
            port = 0 if collector is None else collector.http_port
            return await measured(folder, text.format(port=port, server=server), seconds)


async def measure(seconds: int, runs: int) -> None:
    found: dict[str, list[Found]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            for name in ("none", "well", *BAD):
                found[name].append(await one(name, Path(folder), seconds))
    for name, runs_of in found.items():
        columns = [_column([getattr(each, field) for each in runs_of]) for field in Found._fields]
        print(f"| {name} | {' | '.join(columns)} |", flush=True)


def _column(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f} | {min(values):.1f} to {max(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    asyncio.run(measure(options.seconds, options.runs))


if __name__ == "__main__":
    main()
