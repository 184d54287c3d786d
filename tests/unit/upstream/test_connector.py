"""Opening connections and resolving names: real sockets on loopback, and a resolver that the test plays."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataplane.net.writes import Writes
from dataplane.upstream.connection import UpstreamConnection
from dataplane.upstream.connector import Connector, Resolver
from dataplane.upstream.endpoint import Endpoint


class Count:
    """What was counted, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def upstream_opened(self, outcome: str) -> None:
        self.seen.append(outcome)

    def upstream_closed(self) -> None:
        self.seen.append("closed")


async def connect(endpoint: Endpoint, count: Count) -> tuple[UpstreamConnection | None, str]:
    loop = asyncio.get_running_loop()
    connector = Connector(loop, Writes(loop.call_soon), count)
    answer: asyncio.Future[tuple[UpstreamConnection | None, str]] = loop.create_future()
    connector.connect(endpoint, lambda connection, cause: answer.set_result((connection, cause)))
    connection, cause = await answer
    if connection is not None:
        connection.close()
        while "closed" not in count.seen:
            await asyncio.sleep(0)
    await connector.close()
    return connection, cause


async def test_a_tcp_endpoint_and_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    tcp = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    unix = await asyncio.start_unix_server(lambda _, writer: writer.close(), path)
    async with tcp, unix:
        for endpoint in (Endpoint("127.0.0.1", tcp.sockets[0].getsockname()[1]), Endpoint("", 0, path)):
            count = Count()
            connection, cause = await connect(endpoint, count)
            assert connection is not None
            assert cause == ""
            assert count.seen == ["opened", "closed"]


async def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    count = Count()
    connection, cause = await connect(Endpoint("127.0.0.1", port), count)
    assert connection is None
    assert cause.startswith(f"connect to 127.0.0.1:{port} failed: ")
    assert count.seen == ["failed"]


class NameServer:
    """Stands for the event loop: its clock, its timers, and answers to look-ups that the test gives."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        self.create_task = asyncio.get_running_loop().create_task

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[..., None], *arguments: Any) -> None:
        self.timers.append((self.now + delay, call, arguments))

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        if host not in self.answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.answers[host]]

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, call, arguments in due:
            call(*arguments)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def names() -> tuple[NameServer, Resolver]:
    server = NameServer()
    return server, Resolver(server, Endpoint)  # type: ignore[arg-type]


def addresses(resolver: Resolver, host: bytes = b"a.test") -> list[str] | None:
    found = resolver.endpoints(host, 80, lambda: None)
    return None if found is None else [endpoint.address for endpoint in found]


async def test_the_first_request_waits_and_the_next_do_not() -> None:
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1", "192.0.2.2"]
    ready: list[bool] = []
    assert resolver.endpoints(b"a.test", 80, lambda: ready.append(True)) is None
    await settle()
    assert ready == [True]
    assert addresses(resolver) == ["192.0.2.1", "192.0.2.2"]
    assert server.asked == ["a.test"]


async def test_a_refresh_keeps_the_endpoints_that_stay_and_closes_those_that_went() -> None:
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1", "192.0.2.2"]
    addresses(resolver)
    await settle()
    first = resolver.endpoints(b"a.test", 80, lambda: None)
    server.answers["a.test"] = ["192.0.2.2", "192.0.2.3"]
    await server.advance(Resolver.REFRESH)
    second = resolver.endpoints(b"a.test", 80, lambda: None)
    assert first and second
    assert second[0] is first[1]
    assert addresses(resolver) == ["192.0.2.2", "192.0.2.3"]
    assert first[0].closed


async def test_a_failed_refresh_keeps_the_last_good_answer() -> None:
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1"]
    addresses(resolver)
    await settle()
    del server.answers["a.test"]
    await server.advance(Resolver.REFRESH)
    assert addresses(resolver) == ["192.0.2.1"]


async def test_a_name_that_does_not_resolve_is_tried_again_soon() -> None:
    server, resolver = names()
    assert addresses(resolver) is None
    await settle()
    assert addresses(resolver) == []
    server.answers["a.test"] = ["192.0.2.1"]
    await server.advance(Resolver.RETRY)
    assert addresses(resolver) == ["192.0.2.1"]


async def test_a_name_that_nobody_uses_is_forgotten() -> None:
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1"]
    addresses(resolver)
    await settle()
    (endpoint,) = resolver.endpoints(b"a.test", 80, lambda: None) or ()
    server.now += Resolver.UNUSED
    await server.advance(Resolver.REFRESH)
    assert endpoint.closed
    assert not server.timers
