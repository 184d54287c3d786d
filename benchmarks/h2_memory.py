"""Memory of the proxy where HTTP/2 could take much of it: large bodies, and connections that rest.

`python -m benchmarks.h2_memory [--mib N] [--connections N] [--quick] [--only bodies|idle]`. Bodies: 1 GiB in each
direction through every pair of HTTP/1.1 and HTTP/2, one exchange at a time; the growth is the most of the resident
memory of agent and worker meanwhile, less what they had behind a warm-up of 16 MiB. Idle: what each of 1,000 HTTP/2
connections takes that have had one request, read likewise, and what the kernel takes for them. Exit status 1 when a bar
does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks import bulk, cpu, proxies, report
from benchmarks.load import LoadFailed
from benchmarks.machine import LOAD_CORE, OUT, PROXY_CORE, Process, alone
from benchmarks.proxies import HOST, TARGET, Starter
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.events import Content, Response
from dataplane.http.h2.settings import Settings
from tests.harness.ports import reserve

MIB: Final = 1 << 20
WARM: Final = 16 * MIB
MOST_GROWTH: Final = 8 * 1024
"""KiB, during a body."""
MOST_IDLE: Final = 12.0
"""KiB of the proxy for an idle HTTP/2 connection."""
STARTERS: Final[dict[int, Starter]] = {1: proxies.gatewright_to_http1, 2: proxies.gatewright_to_http2}
"""By the version that the backend is spoken to with."""


@contextmanager
def running(starter: Starter, backend_port: int) -> Iterator[tuple[Process, int]]:
    """A proxy in front of a backend, with its port."""
    launch = starter(backend_port)
    process = Process(starter.__name__, launch.command, PROXY_CORE, launch.environment)
    try:
        process.await_port(launch.port)
        yield process, launch.port
    finally:
        process.stop()


@contextmanager
def origin() -> Iterator[int]:
    """`bulk`, by its port."""
    port = reserve()
    process = Process("bulk", [sys.executable, "-m", "benchmarks.bulk", str(port)], LOAD_CORE)
    try:
        process.await_port(port)
        yield port
    finally:
        process.stop()


# bodies


async def transfer(process: Process, port: int, version: int, upload: bool, size: int) -> tuple[int, float]:
    """One body: KiB that the proxy has at most meanwhile, and seconds."""
    most, began = cpu.resident_kib(process.pid), time.monotonic()
    work = asyncio.create_task(bulk.CLIENTS[version](port, HOST, TARGET, upload, size))
    while not (await asyncio.wait([work], timeout=0.05))[0]:
        most = max(most, cpu.resident_kib(process.pid))
    moved = work.result()
    if moved != size:
        raise LoadFailed(f"{moved} of {size} bytes arrived")
    return max(most, cpu.resident_kib(process.pid)), time.monotonic() - began


def bodies(size: int) -> list[dict[str, Any]]:
    """A row for each pair of protocols and direction."""
    found = []
    with ExitStack() as stack:
        backend_port = stack.enter_context(origin())
        for client, backend in product((1, 2), (1, 2)):
            with running(STARTERS[backend], backend_port) as (process, port):
                for upload in (False, True):
                    uvloop.run(transfer(process, port, client, upload, WARM))
                    before = cpu.resident_kib(process.pid)
                    most, seconds = uvloop.run(transfer(process, port, client, upload, size))
                    row = {"client": client, "backend": backend, "upload": upload}
                    found.append(row | {"growth_kib": most - before, "mib_per_second": size / MIB / seconds})
                    print(_row(found[-1]), file=sys.stderr, flush=True)
    return found


def _row(row: dict[str, Any]) -> str:
    way = "upload" if row["upload"] else "download"
    verdict = "holds" if row["growth_kib"] < MOST_GROWTH else "DOES NOT HOLD"
    pair = f"HTTP/{row['client']} | HTTP/{row['backend']} | {way}"
    return f"| {pair} | {row['growth_kib']:,} | {row['mib_per_second']:,.0f} | {verdict} |"


# connections that rest


def _open(port: int) -> socket.socket:
    """A connection that has had one request, and read its answer."""
    client = socket.create_connection(("127.0.0.1", port), 5)
    codec = Connection(Settings(), False, time.monotonic)
    codec.send_request(b"GET", b"http", HOST.encode(), TARGET.encode(), b"\r\naccept: */*\r\n", True)
    client.sendall(codec.take())
    status, ended = 0, False
    while not ended:
        for event in codec.receive(client.recv(65536)):
            if isinstance(event, Response):
                status, ended = event.head.status, event.end
            elif isinstance(event, Content):
                ended = event.end
        client.sendall(codec.take())
    if status != 200:
        raise LoadFailed(f"status {status}")
    return client


def idle(connections: int) -> dict[str, float]:
    """KiB for each connection: of the proxy, and of the kernel for both of its ends."""
    with ExitStack() as stack:
        process, port = stack.enter_context(running(proxies.gatewright_to_http1, stack.enter_context(origin())))
        for client in [_open(port) for _ in range(50)]:
            client.close()
        before = _settled(lambda: cpu.resident_kib(process.pid)), _kernel_kib()
        for _ in range(connections):
            stack.callback(_open(port).close)
        after = _settled(lambda: cpu.resident_kib(process.pid)), _kernel_kib()
        return {"proxy_kib": (after[0] - before[0]) / connections, "kernel_kib": (after[1] - before[1]) / connections}


def _settled(read: Callable[[], int]) -> int:
    """The value when it has not changed for half a second."""
    last, since = read(), time.monotonic()
    while time.monotonic() - since < 0.5:
        now = read()
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.05)
    return last


_SLABS: Final = ("TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi", "eventpoll_pwq", "tw_sock_TCP")


def _kernel_kib() -> float:
    """What the kernel's own objects for sockets take (/proc/slabinfo, for root), and buffers (/proc/net/sockstat)."""
    total = 0.0
    try:
        lines = Path("/proc/slabinfo").read_text().splitlines()
    except OSError:
        return 0.0
    for line in lines[2:]:
        name, active, _, size = line.split()[:4]
        if name in _SLABS:
            total += int(active) * int(size) / 1024
    for line in Path("/proc/net/sockstat").read_text().splitlines():
        if line.startswith("TCP:"):
            total += int(line.split()[-1]) * 4
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.h2_memory", description=__doc__)
    parser.add_argument("--mib", type=int, help="of each body; default 1024")
    parser.add_argument("--connections", type=int, help="that rest; default 1000")
    parser.add_argument("--quick", action="store_true", help="64 MiB and 300 connections: a look, not a result")
    parser.add_argument("--only", choices=["bodies", "idle"], help="only this part")
    options = parser.parse_args()
    size = (options.mib or (64 if options.quick else 1024)) * MIB
    connections = options.connections or (300 if options.quick else 1000)
    document: dict[str, Any] = {"machine": report.machine(), "mib": size // MIB, "connections": connections}
    holds = True
    with alone():
        if options.only != "idle":
            rows = document["bodies"] = bodies(size)
            print(f"### Bodies of {size // MIB:,} MiB: growth of the proxy\n")
            print("| client | backend | direction | growth, KiB | MiB per second | below 8 MiB |")
            print("\n".join(["|---|---|---|---|---|---|", *map(_row, rows)]))
            holds = all(row["growth_kib"] < MOST_GROWTH for row in rows)
        if options.only != "bodies":
            kib = document["idle"] = idle(connections)
            fits = kib["proxy_kib"] <= MOST_IDLE
            print(f"\n### {connections:,} idle HTTP/2 connections, one request each\n")
            print(f"- {kib['proxy_kib']:.1f} KiB each of the proxy, at most {MOST_IDLE:.0f}: {_verdict(fits)}")
            print(f"- {kib['kernel_kib']:.1f} KiB each of the kernel, for both ends of it")
            holds = holds and fits
    (OUT / "h2_memory.json").write_text(json.dumps(document, indent=1) + "\n")
    return 0 if holds else 1


def _verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


if __name__ == "__main__":
    sys.exit(main())
