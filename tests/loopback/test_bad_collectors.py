"""Collectors that hang, refuse, answer a byte at a time, or are away: what happens to requests, memory and counters."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.proxy_process import Proxy, get, origin, running
from tests.harness.ports import reserve
from tests.harness.waiting import until

FILE = """
frontendPolicies:
  accessLog: {{otlp: {{host: "127.0.0.1:{port}", protocol: HTTP}}}}
  tracing: {{host: "127.0.0.1:{port}", protocol: HTTP, randomSampling: "true"}}
  metrics: {{otlp: {{host: "127.0.0.1:{port}", protocol: HTTP, interval: 1s}}}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{{host: "127.0.0.1:{server}"}}]
"""
REQUESTS = 3500
WAIT = 2048
"""Records that wait for a collector, beside the 512 that are being sent (docs/policies/tracing.md)."""

LEAVES = "Tasks whose messages wait for a collector"

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """It reads nothing and answers nothing."""
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # a StreamReader has no method for it
    await asyncio.Event().wait()


async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The first message of a connection is answered with 503, the others with nothing."""
    writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n")
    while await reader.read(65_536):
        continue


async def trickles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte of an endless head now and then."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    has_ended = False
    while not has_ended:
        writer.write(b"a")
        with contextlib.suppress(TimeoutError):
            has_ended = not await asyncio.wait_for(reader.read(65_536), 0.05)


@asynccontextmanager
async def listening(peer: Peer | None) -> AsyncIterator[int]:
    """The port of a collector; of None nobody listens there."""
    if peer is None:
        yield reserve()
        return
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(_served(peer, reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _served(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await peer(reader, writer)
    except ConnectionError:
        return
    finally:
        writer.transport.abort()


async def load(port: int, requests: int) -> None:
    """Requests one after the other on one connection; each must be answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(requests):
        writer.write(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await reader.readexactly(5)
    writer.close()


async def outcomes(proxy: Proxy, signal: str) -> Counter[str]:
    names = ("sent", "rejected", "dropped", "undelivered")
    start = "gatewright_telemetry_records_total"
    counts = {name: await proxy.metric(f'{start}{{outcome="{name}",signal="{signal}"}}') for name in names}
    return Counter({name: int(count) for name, count in counts.items() if count})


@pytest.mark.parametrize("peer", [None, hangs, refuses, trickles], ids=lambda peer: getattr(peer, "__name__", "away"))
async def test_requests_go_on_and_what_waits_is_bounded(peer: Peer | None, tmp_path: Path) -> None:
    """Every request is answered, with one connection in the whole time that messages of it wait for the collector."""
    async with listening(peer) as port, origin() as server:
        (tmp_path / "config.yaml").write_text(FILE.format(port=port, server=server))
        async with running("-f", str(tmp_path / "config.yaml"), workers=1, leaves=LEAVES) as proxy:
            await proxy.ready()
            await load(proxy.at(8080), REQUESTS)

            async def are_bounded() -> bool:
                found = [await outcomes(proxy, signal) for signal in ("traces", "logs")]
                assert not any(each["sent"] or each["rejected"] for each in found), found
                return all(each["dropped"] and REQUESTS - each.total() <= WAIT + 512 for each in found)

            await until(are_bounded, lambda: proxy.log()[-2000:])
            assert await proxy.metric("gatewright_requests_total{") == REQUESTS
            await proxy.logged(r"collector backend/\S+ \(traces\): ")
            assert (await get(proxy.at(8080), "/a"))[0] == 200
