"""Host names as endpoints: when a name is asked for again, what stays, what goes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.look_ups import Found
from dataplane.upstream.resolver import Resolver


class NameServer:
    """Stands for the event loop, its clock and timers, and for who answers look-ups."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers: dict[str, list[str]] = {}
        self.ttl: int | None = None
        self.asked: list[str] = []
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        self.create_task = asyncio.get_running_loop().create_task

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[..., None], *arguments: Any) -> None:
        self.timers.append((self.now + delay, call, arguments))

    async def look_up(self, host: str, port: int) -> Found:
        self.asked.append(host)
        if host not in self.answers:
            raise socket.gaierror(-2, "Name or service not known")
        return Found(tuple(self.answers[host]), self.ttl)

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
    return server, Resolver(server, Endpoint, lambda host, port: server.look_up(host, port))  # type: ignore[arg-type]


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


async def unable(_host: str, _port: int) -> Found:
    raise ValueError("a name that cannot be asked for")


@pytest.mark.parametrize("host", [b"b\xc3.test", b"b.test"])
async def test_whoever_waits_for_a_name_that_nobody_can_ask_for_hears_of_it(host: bytes) -> None:
    server, resolver = names()
    server.look_up = unable  # type: ignore[method-assign]
    ready: list[bool] = []
    assert resolver.endpoints(host, 80, lambda: ready.append(True)) is None
    await settle()
    assert ready == [True] and addresses(resolver, host) == []


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


async def test_without_a_time_a_name_is_asked_again_every_thirty_seconds_and_each_second_while_it_fails() -> None:
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


@pytest.mark.parametrize(
    ("ttl", "seconds"), [(0, 5), (4, 5), (5, 5), (6, 6), (60, 60), (300, 300), (301, 300), (86_400, 300)]
)
async def test_a_name_is_asked_again_when_the_time_of_its_records_is_over_within_bounds(ttl: int, seconds: int) -> None:
    server, resolver = names()
    server.answers["a.test"], server.ttl = ["192.0.2.1"], ttl
    addresses(resolver)
    await settle()
    server.answers["a.test"] = ["192.0.2.2"]
    await server.advance(seconds - 0.1)
    assert (len(server.asked), addresses(resolver)) == (1, ["192.0.2.1"])
    await server.advance(0.1)
    assert (len(server.asked), addresses(resolver)) == (2, ["192.0.2.2"])


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

    async def hang(_host: str, _port: int) -> Found:
        await hanging.wait()
        return Found((), None)

    server.look_up = hang  # type: ignore[method-assign]
    before = asyncio.all_tasks()
    addresses(resolver)
    await settle()
    assert asyncio.all_tasks() - before
    await resolver.close()
    assert not asyncio.all_tasks() - before


async def test_all_that_is_known_of_all_names() -> None:
    server, resolver = names()
    server.answers = {"a.test": ["192.0.2.1", "192.0.2.2"], "b.test": ["192.0.2.3"]}
    for host in (b"a.test", b"b.test", b"absent.test"):
        assert addresses(resolver, host) is None
    assert resolver.known() == []
    await settle()
    assert [endpoint.address for endpoint in resolver.known()] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
