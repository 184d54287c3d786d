"""What do tunnels through a forward proxy cost in memory? `python -m benchmarks.tunnels [--json FILE]`.

One proxy of one worker, a TCP route whose backend is behind a forward proxy (`backend.tunnel`), and a forward proxy
that is the server, too. Resident memory (RSS) of the worker: with 4,000 tunnels at once and after them, twice; after
10,000 tunnels in turn; and the most while a gibibyte goes through one. Exit status 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import cpu
from benchmarks.machine import LOAD_CORE, OUT, PROXY_CORE, Process, alone, run_folder
from tests.harness.ports import reserve

AT_ONCE: Final = 4000
IN_TURN: Final = 10_000
STEPS: Final = 50
"""Tunnels that are being opened at a time."""
GIBIBYTE: Final = 1 << 30
CHUNK: Final = b"x" * 262_144
MANY: Final = b"m"
"""Asks for a gibibyte; another byte is sent back."""
MOST_EACH: Final = 32.0
"""KiB of one tunnel."""
MOST_LEFT: Final = 4.0
"""MiB that may stay of what came the second time."""
MOST_STREAM: Final = 8.0
"""MiB on top, while a gibibyte passes."""


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    figure: float
    unit: str
    most: float

    @property
    def holds(self) -> bool:
        return self.figure <= self.most


async def _between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The forward proxy, and the server behind it."""
    with closing(writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            while data := await reader.read(1):
                if data != MANY:
                    writer.write(data)
                    continue
                for _ in range(GIBIBYTE // len(CHUNK)):
                    writer.write(CHUNK)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return


async def _opened(port: int) -> asyncio.StreamWriter:
    """A tunnel that has passed a byte in both directions."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"a")
    assert await reader.readexactly(1) == b"a"
    return writer


async def _by_steps(count: int, one: Callable[[], Coroutine[Any, Any, Any]]) -> list[Any]:
    made = []
    for start in range(0, count, STEPS):
        made += await asyncio.gather(*(one() for _ in range(min(STEPS, count - start))))
    return made


async def _ended(writers: list[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def _in_turn(port: int, count: int) -> None:
    async def one() -> None:
        await _ended([await _opened(port)])

    await _by_steps(count, one)


class Memory:
    """Of the worker, in MiB, when it has been idle for a moment."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def now(self) -> float:
        return cpu.own_kib(self.pid, "Rss:") / 1024

    async def settled(self) -> float:
        await asyncio.sleep(2.0)
        return self.now()


async def measured(agent: int, port: int, between: int) -> list[Row]:
    server = await asyncio.start_server(_between, "127.0.0.1", between, backlog=1024)
    async with server:
        spent = {pid: cpu.own_nanoseconds(pid) for pid in cpu.tree(agent)[1:]}
        await _in_turn(port, 200)  # what the first ones load
        memory = Memory(max(spent, key=lambda pid: cpu.own_nanoseconds(pid) - spent[pid]))  # who carried them
        before = await memory.settled()
        held = await _by_steps(AT_ONCE, lambda: _opened(port))
        full = await memory.settled()
        await _ended(held)
        first = await memory.settled()
        await _ended(await _by_steps(AT_ONCE, lambda: _opened(port)))
        second = await memory.settled()
        await _in_turn(port, IN_TURN)
        after = await memory.settled()
        most = await _gibibyte(port, memory)
    return [
        Row(f"each of {AT_ONCE:,} tunnels at once", (full - before) * 1024 / AT_ONCE, "KiB", MOST_EACH),
        Row(f"left by {AT_ONCE:,} more, after as many", second - first, "MiB", MOST_LEFT),
        Row(f"left by {IN_TURN:,} in turn, after these", after - second, "MiB", MOST_LEFT),
        Row("on top while 1 GiB passes", most - after, "MiB", MOST_STREAM),
    ]


async def _gibibyte(port: int, memory: Memory) -> float:
    """The most while it passes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(MANY)
    left, most, number = GIBIBYTE, 0.0, 0
    while left:
        data = await reader.read(1 << 20)
        assert data, "it broke off"
        left -= len(data)
        number += 1
        if number % 256 == 0:
            most = max(most, memory.now())
    await _ended([writer])
    return max(most, memory.now())


def started(stack: ExitStack, port: int, between: int) -> int:
    """The agent of a proxy that listens on `port`."""
    backend = {"host": "far.example:5432", "policies": {"tunnel": {"host": f"127.0.0.1:{between}"}}}
    listener = {"name": "db", "protocol": "TCP", "tcpRoutes": [{"backends": [backend]}]}
    path = run_folder() / "tunnels.json"
    path.write_text(json.dumps({"binds": [{"port": port, "listeners": [listener]}]}))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    environment = {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"}
    command = [sys.executable, "-m", "dataplane", "-f", str(path), "--workers=1", *pages]
    process = Process("tunnels", command, f"{PROXY_CORE},{LOAD_CORE}", environment)
    stack.callback(process.stop)
    process.await_port(port)
    return process.pid


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tunnels", description=__doc__)
    parser.add_argument("--json", type=Path, default=OUT / "tunnels.json", metavar="FILE")
    options = parser.parse_args()
    with alone(), ExitStack() as stack:
        port, between = reserve(), reserve()
        rows = asyncio.run(measured(started(stack, port, between), port, between))
    options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print("| memory of the worker | | at most | |\n|---|---|---|---|")
    for row in rows:
        verdict = "holds" if row.holds else "DOES NOT HOLD"
        print(f"| {row.what} | {row.figure:.1f} {row.unit} | {row.most:g} {row.unit} | {verdict} |")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
