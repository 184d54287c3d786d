"""Slow clients and slow origins: the proxy stops reading the fast side, so that memory per connection stays bounded
(at most 512 KiB for a pair of connections), and nothing is lost when the slow side reads on."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from benchmarks.cpu import resident_kib
from tests.harness.waiting import until
from tests.raw.case import get, head
from tests.raw.gateway import Gateway, forward_all

LIMIT_KIB = 512
PAIRS = 128
"""So many that what the process takes once for all of them does not count."""
_CHUNK = bytes(65536)
_SMALL_BUFFER = 8192
"""Kernel buffer of the side that stalls: what the kernel holds would only blur the picture."""


class Progress:
    """How many bytes the fast side could hand over."""

    def __init__(self) -> None:
        self.bytes = 0

    async def stalls(self) -> None:
        """Return when nothing has moved for a moment."""
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 0.5:
            if self.bytes != last:
                last, since = self.bytes, time.monotonic()
            await asyncio.sleep(0.05)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """An origin on a free port; its connections have ended when the block has."""
    served: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        served.add(task)
        try:
            await handler(reader, writer)
        finally:
            served.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await until(lambda: not served, "the end of the origin's connections")


async def connect(address: tuple[str, int]) -> socket.socket:
    """A raw connection that reads nothing by itself."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, address)
    return client


def flooding(progress: Progress) -> Handler:
    """An origin that answers with more bytes than anybody reads."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 40))
            while True:
                writer.write(_CHUNK)
                await writer.drain()
                progress.bytes += len(_CHUNK)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    return handle


async def pour(client: socket.socket, progress: Progress) -> None:
    """A client that sends a body for as long as the gateway takes it."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(client, head(b"POST / HTTP/1.1", b"Content-Length: %d" % (1 << 40)))
        while True:
            await loop.sock_sendall(client, _CHUNK)
            progress.bytes += len(_CHUNK)
    except ConnectionError:
        return


async def ignoring(listener: socket.socket, accepted: list[socket.socket]) -> None:
    """An origin that accepts and never reads."""
    while True:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        accepted.append(connection)


async def slow_clients(pairs: int) -> float:
    """KiB per pair when `pairs` clients ask for endless answers and read nothing."""
    progress = Progress()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(flooding(progress)))
        gateway = await started(stack, port)
        before = resident_kib(gateway.process.pid)
        for _ in range(pairs):
            client = await connect(gateway.address)
            stack.callback(client.close)
            await loop.sock_sendall(client, get(b"/"))
        await progress.stalls()
        assert progress.bytes > 0
        return (resident_kib(gateway.process.pid) - before) / pairs


async def slow_origins(pairs: int) -> float:
    """KiB per pair when `pairs` clients send endless bodies to an origin that reads nothing."""
    progress = Progress()
    accepted: list[socket.socket] = []
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        listener.setblocking(False)
        tasks = [asyncio.create_task(ignoring(listener, accepted))]
        async with AsyncExitStack() as stack:
            stack.callback(lambda: [connection.close() for connection in accepted])
            gateway = await started(stack, listener.getsockname()[1])
            before = resident_kib(gateway.process.pid)
            for _ in range(pairs):
                client = await connect(gateway.address)
                stack.callback(client.close)
                tasks.append(asyncio.create_task(pour(client, progress)))
            await until(lambda: len(accepted) == pairs, "a connection to the origin for each client")
            await progress.stalls()
            grown = (resident_kib(gateway.process.pid) - before) / pairs
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return grown


async def started(stack: AsyncExitStack, origin_port: int) -> Gateway:
    """A gateway, started and stopped off the loop that serves its origin."""
    gateway = Gateway(forward_all(origin_port))
    gateway.__enter__()  # by this thread: a program ends with the thread that started it
    stack.push_async_callback(asyncio.to_thread, gateway.__exit__)
    return gateway


async def test_slow_clients_take_bounded_memory() -> None:
    assert await slow_clients(PAIRS) <= LIMIT_KIB


async def test_slow_origins_take_bounded_memory() -> None:
    assert await slow_origins(PAIRS) <= LIMIT_KIB


@pytest.mark.slow
async def test_500_slow_clients_take_bounded_memory() -> None:
    assert await slow_clients(500) <= LIMIT_KIB


@pytest.mark.slow
async def test_500_slow_origins_take_bounded_memory() -> None:
    assert await slow_origins(500) <= LIMIT_KIB


async def test_nothing_is_lost_when_a_slow_client_reads_on() -> None:
    body = b"".join(b"%08d" % n for n in range(1 << 20))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with AsyncExitStack() as stack:
        gateway = await started(stack, await stack.enter_async_context(serving(answer)))
        client = await connect(gateway.address)
        stack.callback(client.close)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, get(b"/", b"Connection: close"))
        await asyncio.sleep(0.3)  # the client is slow: this is what is tested
        got = bytearray()
        while data := await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 5):
            got += data
        assert bytes(got).partition(b"\r\n\r\n")[2] == body


async def test_nothing_is_lost_when_a_slow_origin_reads_on() -> None:
    body = b"".join(b"%08d" % n for n in range(1 << 20))
    received = bytearray()

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        received.extend(await reader.readexactly(len(body)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async with AsyncExitStack() as stack:
        gateway = await started(stack, await stack.enter_async_context(serving(read_late)))
        client = await connect(gateway.address)
        stack.callback(client.close)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, head(b"POST / HTTP/1.1", b"Content-Length: %d" % len(body)) + body)
        answer = await asyncio.wait_for(loop.sock_recv(client, 65536), 10)
        assert answer.startswith(b"HTTP/1.1 200")
        assert bytes(received) == body
