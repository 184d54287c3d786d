"""Requests beside collectors that hang, refuse, answer a byte at a time or are away: the 99th of a hundred latencies,
and what the worker spends on each. The latter says something where other work keeps the machine busy.

`python -m benchmarks.collectors [--seconds N] [--runs N] [--rate N]
[--only NAME]`: one worker that traces each request and sends
each line of its log, on a core of its own; h2load sends so many requests in a second, on 8 connections. "none" has
neither log records nor traces, "well" a collector that takes what comes; "goes" is one that took what came, is away
for all of the measured time, and must get records again when it is back. The runs of all are interleaved, so that
other work on the machine meets each alike.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import Backend
from benchmarks.machine import LOAD_CORE, PROXY_CORE, find
from tests.fakes.collector import collecting
from tests.fakes.proxy_process import Proxy, running
from tests.harness.ports import reserve
from tests.harness.processes import cpu_seconds
from tests.harness.waiting import until
from tests.loopback.test_bad_collectors import (
    FILE,
    LEAVES,
    Peer,
    hangs,
    listening,
    outcomes,
    refuses,
    trickles,
)

NONE = FILE[FILE.index("binds:") :]
BAD: dict[str, Peer | None] = {"away": None, "hangs": hangs, "refuses": refuses, "a byte at a time": trickles}
GOES = "goes"
ALL = ("none", "well", *BAD, GOES)
_CONNECTIONS = 8
_DONE = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, 0 failed, 0 errored, 0 timeout")


class Found(NamedTuple):
    p50: float
    p99: float
    """Microseconds, as `p50`."""
    cpu: float
    """Microseconds of the worker, for a request."""
    memory: float
    """MiB that the worker holds more than when the load began."""
    dropped: float
    """Records, of all that were made."""


async def load(port: int, seconds: int, rate: int) -> list[int]:
    """Microseconds that each request took, in order. Raises SystemExit when one failed."""
    with tempfile.NamedTemporaryFile() as log:
        command = ["taskset", "-c", str(LOAD_CORE), find("h2load"), "--h1", "-t1", f"-D{seconds}"]
        command += [f"-c{_CONNECTIONS}", f"--rps={rate / _CONNECTIONS}", f"--log-file={log.name}"]
        command.append(f"http://127.0.0.1:{port}/a")
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        done = _DONE.search(out.decode())
        if done is None or done[1] == "0" or done[1] != done[2]:
            raise SystemExit(out.decode())
        return sorted(int(line.rsplit("\t", 1)[1]) for line in Path(log.name).read_text().splitlines())


@asynccontextmanager
async def proxying(folder: Path, port: int, backend: Backend, text: str) -> AsyncIterator[tuple[Proxy, int]]:
    """A proxy on its core, with the id of its worker."""
    (folder / "config.yaml").write_text(text.format(port=port, server=backend.port))
    async with running("-f", str(folder / "config.yaml"), workers=1, leaves=LEAVES) as proxy:
        await proxy.ready()
        (worker,) = await proxy.workers()
        os.sched_setaffinity(worker, {PROXY_CORE})
        yield proxy, worker


async def measured(proxy: Proxy, worker: int, seconds: int, rate: int) -> Found:
    await load(proxy.at(8080), 2, rate)
    before, held, lost = cpu_seconds(worker), _resident(worker), await dropped(proxy)
    times = await load(proxy.at(8080), seconds, rate)
    spent = (cpu_seconds(worker) - before) / len(times) * 1e6
    p50, p99 = (float(times[len(times) * share // 100]) for share in (50, 99))
    return Found(p50, p99, spent, (_resident(worker) - held) / 2**20, await dropped(proxy) - lost)


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def dropped(proxy: Proxy) -> int:
    found: Counter[str] = sum([await outcomes(proxy, signal) for signal in ("traces", "logs")], Counter())
    return found["dropped"] + found["undelivered"]


async def one(name: str, folder: Path, backend: Backend, seconds: int, rate: int) -> Found:
    if name == GOES:
        return await goes(folder, backend, seconds, rate)
    async with AsyncExitStack() as stack:
        text, port = FILE, 0
        if name in BAD:
            port = await stack.enter_async_context(listening(BAD[name]))
        elif name == "well":
            port = stack.enter_context(collecting()).http_port
        else:
            text = NONE
        proxy, worker = await stack.enter_async_context(proxying(folder, port, backend, text))
        return await measured(proxy, worker, seconds, rate)


async def goes(folder: Path, backend: Backend, seconds: int, rate: int) -> Found:
    """A collector that ends before the measured time and is there again behind it."""
    port = reserve()
    async with AsyncExitStack() as stack:
        with collecting(port) as collector:
            proxy, worker = await stack.enter_async_context(proxying(folder, port, backend, FILE))
            await load(proxy.at(8080), 2, rate)
            await until(collector.spans, lambda: proxy.log()[-2000:])
        found = await measured(proxy, worker, seconds, rate)
        with collecting(port) as collector:
            await load(proxy.at(8080), 2, rate)
            await until(collector.spans, lambda: proxy.log()[-2000:])
        return found


async def measure(seconds: int, runs: int, rate: int, names: Sequence[str]) -> None:
    os.sched_setaffinity(0, {LOAD_CORE})
    found: dict[str, list[Found]] = defaultdict(list)
    backend = Backend()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(runs):
                for name in names:
                    found[name].append(await one(name, Path(folder), backend, seconds, rate))
    finally:
        backend.process.stop()
    for name, runs_of in found.items():
        columns = [_column([getattr(each, field) for each in runs_of]) for field in Found._fields]
        print(f"| {name} | {' | '.join(columns)} |", flush=True)


def _column(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f} | {min(values):.1f} to {max(values):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rate", type=int, default=400)
    parser.add_argument("--only", action="append", choices=ALL)
    options = parser.parse_args()
    asyncio.run(measure(options.seconds, options.runs, options.rate, options.only or ALL))


if __name__ == "__main__":
    main()
