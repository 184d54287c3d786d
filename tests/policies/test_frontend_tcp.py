"""`frontend.tcp.keepalive` from the standalone file and from the wire to the sockets of connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dataplane.net.keepalive import MAX_SECONDS
from dataplane.server.acceptor import Acceptor
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.moved_loop import moved
from tests.fakes.policy_run import served

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OPTIONS = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)


def file(tcp: str = "") -> str:
    return (f"frontendPolicies: {{tcp: {tcp}}}\n" if tcp else "") + served("policies: {directResponse: {status: 204}}")


@asynccontextmanager
async def accepting(text: str) -> AsyncIterator[tuple[MemoryProxy, socket.socket]]:
    proxy = MemoryProxy(text)
    acceptor = Acceptor(proxy.context, asyncio.get_running_loop())
    sock = socket.create_server(("127.0.0.1", 0))
    await acceptor.listen(next(iter(proxy.applier.current.table.binds)), sock)
    try:
        yield proxy, sock
    finally:
        acceptor.cut()
        await asyncio.sleep(0.1)
        sock.close()


async def connected(proxy: MemoryProxy, sock: socket.socket) -> list[int]:
    """Whether a new connection is kept alive, then its options."""
    before = set(proxy.context.connections)
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    writer.write(GET)
    await reader.readuntil(b"\r\n\r\n")
    (connection,) = set(proxy.context.connections) - before
    own = connection.transport.get_extra_info("socket")
    found = [own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
    found += [own.getsockopt(socket.IPPROTO_TCP, each) for each in OPTIONS]
    writer.close()
    return found


@pytest.mark.claims("limits: TCP keepalive")
@pytest.mark.parametrize(
    ("tcp", "options"),
    [
        ("", [180, 180, 9]),
        ("{}", [180, 180, 9]),
        ("{keepalive: {}}", [180, 180, 9]),
        ("{keepalive: {time: 60s}}", [60, 180, 9]),
        ("{keepalive: {interval: 10s}}", [180, 10, 9]),
        ("{keepalive: {retries: 64}}", [180, 180, 64]),
        ("{keepalive: {time: 1h, interval: 1m30s, retries: 1}}", [3600, 90, 1]),
        ("{keepalive: {time: 1ms, interval: 1001ms}}", [1, 2, 9]),
        ("{keepalive: {time: 99999h, interval: 10h}}", [MAX_SECONDS, MAX_SECONDS, 9]),
    ],
)
def test_connections_are_probed(tcp: str, options: list[int]) -> None:
    @moved
    async def run() -> None:
        async with accepting(file(tcp)) as (proxy, sock):
            assert await connected(proxy, sock) == [1, *options]

    run()


@moved
async def test_an_edit_counts_for_connections_that_are_accepted_after_it() -> None:
    async with accepting(file()) as (proxy, sock):
        assert await connected(proxy, sock) == [1, 180, 180, 9]
        proxy.load(file("{keepalive: {time: 60s}}"))
        assert await connected(proxy, sock) == [1, 60, 180, 9]
        proxy.load(file())
        assert await connected(proxy, sock) == [1, 180, 180, 9]
