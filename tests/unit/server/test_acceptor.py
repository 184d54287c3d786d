"""Accepting on real sockets, on a loop whose time is moved: who is served, and how accepting ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from dataplane.server.acceptor import Acceptor
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.moved_loop import moved
from tests.fakes.policy_run import served

FILE = served("policies: {directResponse: {status: 204}}")
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass(eq=False)
class Accepting:
    """One bind, and its clients."""

    proxy: MemoryProxy
    acceptor: Acceptor
    bind: str
    sock: socket.socket
    address: tuple[str, int]
    clients: list[asyncio.StreamWriter] = field(default_factory=list)

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opened = await asyncio.open_connection(*self.address)
        self.clients.append(opened[1])
        return opened

    async def get(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client that has been answered."""
        reader, writer = await self.client()
        writer.write(GET)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        return reader, writer

    @property
    def open(self) -> int:
        """Connections that the proxy has."""
        return len(self.proxy.context.connections)

    async def is_refused(self) -> bool:
        try:
            await self.client()
        except ConnectionRefusedError:
            return True
        return False


@asynccontextmanager
async def accepting() -> AsyncIterator[Accepting]:
    proxy = MemoryProxy(FILE)
    acceptor = Acceptor(proxy.context, asyncio.get_running_loop())
    (bind,) = proxy.applier.current.table.binds
    sock = socket.create_server(("127.0.0.1", 0))
    await acceptor.listen(bind, sock)
    made = Accepting(proxy, acceptor, bind, sock, sock.getsockname())
    try:
        yield made
    finally:
        acceptor.cut()
        for each in made.clients:
            each.close()
        await asyncio.sleep(0.1)
        sock.close()


@moved
async def test_connections_are_served() -> None:
    async with accepting() as made:
        reader, writer = await made.get()
        writer.write(GET)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        assert made.open == 1 and made.acceptor.listening() == 1


@moved
async def test_clients_that_vanished_are_noticed() -> None:
    """What the socket accepts inherits its options: docs/reference, Keepalive."""
    async with accepting() as made:
        sock = made.sock
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, each) for each in options] == [180, 180, 9]
        assert not sock.getblocking()


@moved
async def test_a_unix_socket(tmp_path: Path) -> None:
    """It has no keepalive."""
    async with accepting() as made:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(tmp_path / "s"))
            sock.listen()
            await made.acceptor.listen(made.bind, sock)
            assert made.acceptor.listening() == 2
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
            made.clients.append(writer)
            writer.write(GET)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
            made.acceptor.cut()


@moved
async def test_a_bind_that_is_gone_takes_nobody_and_lets_requests_end() -> None:
    async with accepting() as made:
        reader, _ = await made.get()
        stopping = asyncio.ensure_future(made.acceptor.stop(made.bind))
        await asyncio.sleep(0)
        queued, _ = await made.get()  # it was in the queue
        await stopping
        assert await made.is_refused()
        assert made.acceptor.listening() == 0
        assert await reader.read() == b"" and await queued.read() == b"", "idle connections are closed"
        await asyncio.sleep(0.1)
        assert made.open == 0


@moved
async def test_a_bind_that_is_not_there_stops_nobody() -> None:
    async with accepting() as made:
        await made.get()
        began = asyncio.get_running_loop().time()
        await made.acceptor.stop("bind/none")
        assert made.open == made.acceptor.listening() == 1
        assert asyncio.get_running_loop().time() == began
        other = "bind/other"
        with socket.create_server(("127.0.0.1", 0)) as sock:
            await made.acceptor.listen(other, sock)
            await made.acceptor.stop(other)
        assert made.open == made.acceptor.listening() == 1, "connections of other binds stay"


@moved
async def test_a_drain_takes_connections_for_a_while_and_waits_for_those_under_way() -> None:
    async with accepting() as made:
        loop = asyncio.get_running_loop()
        idle, _ = await made.get()
        began = loop.time()
        draining = asyncio.ensure_future(made.acceptor.drain(10.0, 60.0))
        await asyncio.sleep(9)
        assert made.proxy.context.draining and made.open == 1
        busy, writer = await made.client()
        writer.write(GET[:-2])
        await asyncio.sleep(0.5)
        assert made.open == 2
        assert not made.acceptor.datagrams.is_draining, "sessions of UDP begin as long as connections do"
        await asyncio.sleep(1)
        assert await made.is_refused() and await idle.read() == b""
        assert made.acceptor.datagrams.is_draining
        await asyncio.sleep(20)
        assert not draining.done() and made.open == 1
        writer.write(b"\r\n")
        answer = await busy.read()
        assert answer.startswith(b"HTTP/1.1 204 ") and b"\r\nconnection: close\r\n" in answer
        writer.close()
        await draining
        assert 30 < loop.time() - began < 31 and made.open == 0


@pytest.mark.parametrize(("minimum", "maximum"), [(2.0, 5.0), (10.0, 5.0)])
def test_what_is_open_at_the_end_of_a_drain_is_cut(
    minimum: float, maximum: float, caplog: pytest.LogCaptureFixture
) -> None:
    @moved
    async def run() -> None:
        async with accepting() as made:
            loop = asyncio.get_running_loop()
            reader, writer = await made.client()
            writer.write(GET[:-2])
            await asyncio.sleep(0.1)
            began = loop.time()
            await made.acceptor.drain(minimum, maximum)
            assert maximum <= loop.time() - began < maximum + 0.2
            assert await reader.read() == b""
            await asyncio.sleep(0.1)
            assert made.open == 0

    with caplog.at_level(logging.WARNING):
        run()
    assert [each.message for each in caplog.records] == [
        "1 connections were still open at the end of the drain and are cut"
    ]


@moved
async def test_a_drain_of_nobody_is_over_at_once_and_silent() -> None:
    async with accepting() as made:
        began = asyncio.get_running_loop().time()
        await made.acceptor.drain(0.0, 60.0)
        assert asyncio.get_running_loop().time() - began < 0.2 and made.acceptor.listening() == 0
        assert await made.is_refused()


@moved
async def test_closing_takes_who_waits_in_the_queue() -> None:
    async with accepting() as made:
        closing = asyncio.ensure_future(made.acceptor.close())
        await asyncio.sleep(0)
        await made.get()
        await closing
        assert made.acceptor.listening() == 0 and made.open == 1 and await made.is_refused()
        began = asyncio.get_running_loop().time()
        await made.acceptor.close()
        assert asyncio.get_running_loop().time() == began


@moved
async def test_cutting() -> None:
    async with accepting() as made:
        reader, _ = await made.get()
        made.acceptor.cut()
        assert made.acceptor.listening() == 0
        assert await reader.read() == b""
        assert await made.is_refused()


class Recorded:
    """A loop that notes how many connections may wait to be accepted."""

    def __init__(self) -> None:
        self.backlogs: list[int] = []

    async def create_server(self, _make: object, *, sock: socket.socket, backlog: int) -> object:
        assert not sock.getblocking()
        self.backlogs.append(backlog)
        return object()


@pytest.mark.parametrize(
    ("descriptors", "backlog"), [(8, 16), (128, 16), (136, 17), (1024, 128), (32_768, 4096), (1_000_000, 4096)]
)
async def test_where_descriptors_are_few_one_in_eight_may_wait(descriptors: int, backlog: int) -> None:
    proxy, loop = MemoryProxy(FILE), Recorded()
    proxy.context.descriptors = lambda: descriptors
    (bind,) = proxy.applier.current.table.binds
    acceptor = Acceptor(proxy.context, cast(asyncio.AbstractEventLoop, loop))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        await acceptor.listen(bind, sock)
    assert loop.backlogs == [backlog] and acceptor.listening() == 1
