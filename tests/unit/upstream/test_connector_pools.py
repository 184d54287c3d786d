"""What a connector does around the sockets: first bytes, reasons of failures, and connections that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.net.writes import Writes
from dataplane.upstream.connector import SWEEP, Connector
from dataplane.upstream.endpoint import Endpoint, Pool
from dataplane.upstream.own_pages import OwnPages
from dataplane.upstream.settings import PLAIN_TCP, Client, Transport
from tests.fakes.leases import Up
from tests.unit.upstream.test_connector import Count


class Wire:
    """The transport of a connection: what was written to it first."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.protocol: Any = None

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str) -> Any:
        return None

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing is kept."""

    def pause_reading(self) -> None:
        """Nothing comes."""

    def is_closing(self) -> bool:
        return False

    close = abort = pause_reading


class Loop:
    """The running loop, whose connections are wires, or fail; its clock and timers are moved by hand."""

    def __init__(self, error: Exception | None = None) -> None:
        self.now, self.error = 1000.0, error
        self.wires: list[Wire] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.tried = 0
        running = asyncio.get_running_loop()
        self.create_task, self.create_future, self.call_soon = (
            running.create_task,
            running.create_future,
            running.call_soon,
        )

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        entry = (self.now + seconds, call)
        self.timers.append(entry)
        return SimpleNamespace(cancel=lambda: self.timers.remove(entry))

    async def create_connection(self, make: Callable[[], Any], *_: Any) -> tuple[Wire, Any]:
        self.tried += 1
        if self.error is not None:
            raise self.error
        wire = Wire()
        wire.protocol = make()
        self.wires.append(wire)
        made = wire.protocol
        made.connection_made(wire)
        return wire, made

    def passes(self, seconds: float) -> None:
        self.now += seconds
        due, self.timers = (
            [each for each in self.timers if each[0] <= self.now],
            [each for each in self.timers if each[0] > self.now],
        )
        for _, call in due:
            call()


def connector(loop: Loop, own: OwnPages | None = None) -> tuple[Any, Count]:
    count = Count()
    running: Any = loop
    return Connector(running, Writes(loop.call_soon), count, own), count


async def connected(made: Any, pool: Pool) -> tuple[Any, str]:
    answers: list[tuple[Any, str]] = []
    made.connect(pool, lambda connection, cause: answers.append((connection, cause)))
    await asyncio.gather(*made._tasks)
    (answer,) = answers
    return answer


ADDRESS = "192.0.2.1"
FROM = Client("198.51.100.7", 4711, b"10.0.0.1:80")


async def test_the_proxy_s_own_pages_are_no_backend() -> None:
    loop = Loop()
    made, count = connector(loop, OwnPages([("127.0.0.1", 15000)]))
    _, cause = await connected(made, Endpoint("127.0.0.1", 15000))
    assert cause == "connect to 127.0.0.1:15000 failed: the proxy's own pages are no backend"
    assert loop.tried == 0 and count.seen == ["failed"]
    assert (await connected(made, Endpoint("127.0.0.1", 15001)))[1] == ""


async def test_there_may_have_to_be_room_before_each_connection() -> None:
    made, _ = connector(Loop())
    asked: list[str] = []
    made.before_opening = lambda: asked.append("room")
    for _number in range(2):
        await connected(made, Endpoint(ADDRESS, 80))
    assert asked == ["room"] * 2


async def test_a_connection_that_breaks_is_counted_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    made, count = connector(Loop())
    made._broke(Endpoint(ADDRESS, 80), "GOAWAY", "it sent an error")
    assert count.seen == ["GOAWAY"] and f"http2 connection to {ADDRESS}:80 is broken: it sent an error" in caplog.text


# --- for one client alone


def of_client(endpoint: Endpoint, client: Client | None = FROM) -> Pool:
    return endpoint.pool(Transport(PLAIN_TCP._replace(proxy_version=2), None, "", None, client))


async def test_what_a_client_does_not_use_is_forgotten_before_it_leaves() -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    pool = of_client(endpoint)
    made.belongs(pool)
    endpoint.pending = 1
    loop.passes(SWEEP)
    assert made.of_clients == {}, "of a client there is no session to keep"
    assert endpoint.pools == {} and pool.closed


# --- what nobody uses


async def test_connections_with_a_gate_are_looked_after_there() -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    made.share(endpoint)
    up: Any = Up()
    endpoint.idle.append(up)
    gate: Any = object()
    endpoint.gate = gate
    for _number in range(20):
        loop.passes(SWEEP)
    assert up.heard == [] and up.idle_since == 0.0
