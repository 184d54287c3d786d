"""Clients of HTTP/2 that open no window: what waits for one of them is bounded for all its streams and connections
together, counted, and given back when they go; others are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.cpu import resident_kib
from dataplane.http.h2.frames import PREFACE, SETTING, SETTINGS
from tests.fakes.h2_wire import GET, frame, headers
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_backpressure import Progress, connect, flooding, serving
from tests.raw.case import get

MIB = 1 << 20
HELD = 12 * MIB
SHARE = HELD * 3 // 4
CONNECTIONS, STREAMS = 8, 100
CLOSED = PREFACE + frame(SETTINGS, payload=SETTING.pack(4, 0))
ASKS = CLOSED + b"".join(headers(number, GET) for number in range(1, 2 * STREAMS, 2))
GROWTH_KIB = 5 * 1024
"""Of the worker's memory after each flood: half of what one holds."""
OTHER = "127.0.0.2"
IN_USE = "gatewright_held_body_bytes"
REFUSED = 'gatewright_limits_exceeded_total{limit="maxHeldBytes"'


def file(origin: int) -> str:
    """All goes to this origin of HTTP/1.1; 12 MiB may be held."""
    backend = {"backends": [{"host": f"127.0.0.1:{origin}"}], "policies": {"http": {"version": "HTTP1"}}}
    listener = {"name": "http", "protocol": "HTTP", "routes": [{"name": "everything", **backend}]}
    binds = [{"port": 8080, "addresses": ["127.0.0.1"], "listeners": [listener]}]
    return json.dumps({"binds": binds, "frontendPolicies": {"limits": {"maxHeldBytes": HELD}}})


async def flood(proxy: Proxy) -> list[socket.socket]:
    """Connections whose 800 streams are answered with far more than the share of one client, and take nothing."""
    loop = asyncio.get_running_loop()
    clients = [await connect(("127.0.0.1", proxy.at(8080))) for _ in range(CONNECTIONS)]
    for client in clients:
        await loop.sock_sendall(client, ASKS)
    return clients


async def first_bytes(proxy: Proxy, client: str) -> bytes:
    """What a client of this address is answered, the beginning of it."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.bind((client, 0))
        await loop.sock_connect(connection, ("127.0.0.1", proxy.at(8080)))
        await loop.sock_sendall(connection, get(b"/"))
        async with asyncio.timeout(PATIENCE):
            return await loop.sock_recv(connection, 16)


async def test_what_waits_for_closed_windows_is_bounded_counted_and_given_back(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(flooding(Progress())))
        path = tmp_path / "config.json"
        path.write_text(file(port))
        proxy = await stack.enter_async_context(running("-f", str(path), workers=1))
        await proxy.ready()
        assert await first_bytes(proxy, OTHER) == b"HTTP/1.1 200 OK\r"
        (worker,) = await proxy.workers()
        before, refused = resident_kib(worker), 0.0

        async def is_held() -> bool:
            return await proxy.metric(REFUSED) > refused

        async def is_given_back() -> bool:
            return not await proxy.metric(IN_USE) and resident_kib(worker) <= before + GROWTH_KIB

        for _ in range(2):
            clients = await flood(proxy)
            await until(is_held, "more is refused")
            assert SHARE // 2 < await proxy.metric(IN_USE) <= SHARE
            assert await first_bytes(proxy, OTHER) == b"HTTP/1.1 200 OK\r", "another client is served"
            for client in clients:
                client.close()
            await until(is_given_back, lambda: f"{resident_kib(worker)} KiB are as little as {before}")
            refused = await proxy.metric(REFUSED)
        await proxy.logged("reason=TooManyResponses")
