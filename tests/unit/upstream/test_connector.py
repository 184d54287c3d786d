"""Opening connections and resolving names: real sockets on loopback, and a resolver that the test plays."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dataplane.net.writes import Writes
from dataplane.upstream.connector import SESSION_TIME, SWEEP, Connector, Resolver
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from dataplane.upstream.settings import PLAIN_TCP, Transport
from tests.fakes.moved_loop import moved


class Count:
    """What was counted, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failures: list[tuple[str, str, str]] = []

    def upstream_opened(self, outcome: str) -> None:
        self.seen.append(outcome)

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        self.failures.append((endpoint, server_name, reason))

    def upstream_closed(self) -> None:
        self.seen.append("closed")

    def upstream_fault(self, reason: str) -> None:
        self.seen.append(reason)


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
    assert count.failures == [(f"127.0.0.1:{port}", "", "Connection refused")]


@moved
async def test_a_transport_whose_connections_never_came_is_forgotten_as_others_are() -> None:
    """Each certificate that is renewed makes one, also while nobody can be reached."""
    loop = asyncio.get_running_loop()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", free.getsockname()[1])
    connector, causes = Connector(loop, Writes(loop.call_soon), Count()), list[str]()
    pool = endpoint.pool(Transport(PLAIN_TCP, None, ""))
    connector.connect(pool, lambda _, cause: causes.append(cause))
    await asyncio.sleep(SESSION_TIME)
    assert len(causes) == 1 and causes[0] and list(endpoint.pools.values()) == [pool]
    await asyncio.sleep(3 * SWEEP)
    assert not endpoint.pools and pool.closed
    await connector.close()


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


async def test_a_name_that_is_lost_is_reported_once_and_once_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    server, resolver = names()
    addresses(resolver)
    await settle()
    for _ in range(3):
        await server.advance(Resolver.RETRY)
    assert [record.message for record in caplog.records] == [
        "cannot resolve a.test: [Errno -2] Name or service not known"
    ]
    server.answers["a.test"] = ["192.0.2.1"]
    await server.advance(Resolver.RETRY)
    await server.advance(Resolver.REFRESH)
    assert [record.message for record in caplog.records[1:]] == ["a.test can be resolved again"]


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


async def test_a_name_is_asked_again_every_thirty_seconds_and_each_second_while_it_fails() -> None:
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1"]
    addresses(resolver)
    await settle()
    await server.advance(29.5)
    assert len(server.asked) == 1
    await server.advance(0.5)
    assert len(server.asked) == 2
    del server.answers["a.test"]
    await server.advance(30)
    for count in (4, 5):
        await server.advance(0.5)
        assert len(server.asked) == count - 1
        await server.advance(0.5)
        assert len(server.asked) == count


async def test_names_and_ports_are_known_apart() -> None:
    server, resolver = names()
    server.answers = {"a.test": ["192.0.2.1"], "b.test": ["192.0.2.2"]}
    asked = ((b"a.test", 80), (b"a.test", 81), (b"b.test", 80))
    for host, port in asked:
        assert resolver.endpoints(host, port, lambda: None) is None
    await settle()
    found = [resolver.endpoints(host, port, lambda: None) or () for host, port in asked]
    assert [(each.address, each.port) for (each,) in found] == [("192.0.2.1", 80), ("192.0.2.1", 81), ("192.0.2.2", 80)]


async def test_all_who_wait_for_a_name_are_woken_once() -> None:
    for answers in ({"a.test": ["192.0.2.1"]}, {}):
        server, resolver = names()
        server.answers = dict(answers)
        woken: list[int] = []
        for number in range(3):
            resolver.endpoints(b"a.test", 80, partial(woken.append, number))
        await settle()
        assert woken == [0, 1, 2] and len(server.asked) == 1
        await server.advance(Resolver.REFRESH)
        assert woken == [0, 1, 2]


async def test_a_name_that_was_forgotten_is_looked_up_anew() -> None:
    """After ten minutes without use; while it is used it is kept."""
    server, resolver = names()
    server.answers["a.test"] = ["192.0.2.1"]
    addresses(resolver)
    await settle()
    for _ in range(20):
        await server.advance(Resolver.REFRESH)
    assert addresses(resolver) == ["192.0.2.1"]
    for _ in range(21):
        await server.advance(Resolver.REFRESH)
    assert not server.timers
    count = len(server.asked)
    assert addresses(resolver) is None
    await settle()
    assert addresses(resolver) == ["192.0.2.1"] and len(server.asked) == count + 1


async def test_a_name_that_is_no_ascii_does_not_resolve() -> None:
    _, resolver = names()
    resolver.endpoints(b"\xff.test", 80, lambda: None)
    await settle()
    assert addresses(resolver, b"\xff.test") == []


async def test_look_ups_under_way_end_with_the_resolver() -> None:
    server, resolver = names()
    hanging = asyncio.Event()

    async def hang(*_: Any, **__: Any) -> list[Any]:
        await hanging.wait()
        return []

    server.getaddrinfo = hang  # type: ignore[method-assign]
    before = asyncio.all_tasks()
    addresses(resolver)
    await settle()
    assert asyncio.all_tasks() - before
    await resolver.close()
    assert not asyncio.all_tasks() - before
