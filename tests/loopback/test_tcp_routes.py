"""TCP listeners with real sockets: a database-like server, HTTP through a TCPRoute, half-open peers, slow readers."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def config(port: int) -> str:
    return f"""
binds:
- port: 9000
  listeners:
  - name: db
    protocol: TCP
    tcpRoutes: [{{backends: [{{host: "127.0.0.1:{port}"}}]}}]
"""


@asynccontextmanager
async def behind(handler: Handler) -> AsyncIterator[SocketProxy]:
    """A proxy in front of a server."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(PATIENCE), serving(config(server.sockets[0].getsockname()[1])) as proxy:
            yield proxy
    finally:
        server.close()


async def reversing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers when its client has ended: nothing but a half-close that passes lets it."""
    writer.write(b"ready\n")
    data = await reader.read()
    writer.write(data[::-1])
    await writer.drain()
    writer.close()


async def test_half_closes_pass_both_ways() -> None:
    async with behind(reversing) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await reader.readline() == b"ready\n"
        writer.write(b"abc" * 100_000)
        writer.write_eof()
        assert await reader.read() == b"cba" * 100_000
        writer.close()
        await until(lambda: not proxy.context.connections, "the end of the connection")
        line = proxy.log_line()
        assert "protocol=tcp received.bytes=300000 sent.bytes=300006 duration=" in line and "reason=" not in line


async def test_http_passes_through_a_tcp_route() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"x-forwarded-for" not in head  # nobody reads what passes
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        writer.close()

    async with behind(answer) as proxy:
        assert (await proxy.get()).endswith(b"\r\n\r\nok")


async def test_a_port_where_nobody_listens_resets_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    async with asyncio.timeout(PATIENCE), serving(config(port)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        writer.close()
        await until(lambda: not proxy.context.connections, "the end of the connection")
        assert "reason=ConnectFailed" in proxy.log_line()
        assert proxy.pending() == 0


async def test_a_reader_that_stalls_stops_the_sender() -> None:
    sent = 0
    stalled = asyncio.Event()

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        try:
            while True:
                writer.write(bytes(65_536))
                async with asyncio.timeout(1.0):
                    await writer.drain()
                sent += 65_536
        except TimeoutError:
            stalled.set()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with behind(flood) as proxy:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", proxy.port))
        await stalled.wait()
        (connection,) = proxy.context.connections
        held = connection.transport.get_write_buffer_size()
        assert held <= 65_536 + 262_144  # the bound and what one read may bring on top
        client.close()


async def test_a_client_that_resets_is_passed_on() -> None:
    was_reset = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        except ConnectionResetError:
            was_reset.set()
        writer.close()

    async with behind(wait) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        await until(lambda: proxy.connections() == 1, "the connection to the endpoint")
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()
        await was_reset.wait()


async def test_a_drain_waits_for_connections_and_cuts_what_is_left() -> None:
    async with behind(reversing) as proxy:
        ends = [await asyncio.open_connection("127.0.0.1", proxy.port) for _ in range(2)]
        for reader, _ in ends:
            assert await reader.readline() == b"ready\n"
        draining = asyncio.ensure_future(proxy.acceptor.drain(0.0, PATIENCE / 4))
        ends[0][1].write(b"12")
        ends[0][1].write_eof()
        assert await ends[0][0].read() == b"21"
        ends[0][1].close()
        await until(lambda: len(proxy.context.connections) == 1, "the end of the first")
        assert not draining.done()
        ends[1][1].close()
        await draining


async def test_a_connection_that_has_ended_waits_for_no_collector() -> None:
    """Of thousands that end together nothing stays in memory until it runs."""
    gc.disable()
    try:
        async with behind(reversing) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            assert await reader.readline() == b"ready\n"
            (guest,) = proxy.context.connections
            known = weakref.ref(guest)
            del guest
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await until(lambda: known() is None, "the end of what served it")
    finally:
        gc.enable()
