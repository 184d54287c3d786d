"""What a connector does around the sockets: first bytes, reasons of failures, and connections that nobody uses."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.http.messages import Peer
from dataplane.net import proxy_header
from dataplane.net.writes import Writes
from dataplane.upstream.connector import SESSION_TIME, SWEEP, Connector
from dataplane.upstream.endpoint import Endpoint, Pool
from dataplane.upstream.limits import IDLE_TIMEOUT
from dataplane.upstream.own_pages import OwnPages
from dataplane.upstream.raw_end import RawEnd
from dataplane.upstream.settings import OURSELVES, PLAIN_TCP, Client, Transport
from tests.fakes.leases import Many, Up
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


@pytest.mark.parametrize(
    ("version", "client", "expected"),
    [
        (0, FROM, []),
        (1, FROM, [b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n"]),
        (2, FROM, [proxy_header.written(2, ("198.51.100.7", 4711), ("10.0.0.1", 80))]),
        (1, Client("2001:db8::7", 4711, b"[2001:db8::1]:80"), [b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n"]),
        (1, OURSELVES, [b"PROXY UNKNOWN\r\n"]),
        (2, None, [proxy_header.of_ourselves(2)]),
        (1, Client("198.51.100.7", 4711, b""), [b"PROXY UNKNOWN\r\n"]),  # it came over a Unix socket
        (1, Client("198.51.100.7", 4711, b"10.0.0.1:x"), [b"PROXY UNKNOWN\r\n"]),
    ],
)
@pytest.mark.parametrize("is_raw", [False, True])
async def test_the_header_of_the_client_is_written_before_anything_else(
    version: int, client: Client | None, expected: list[bytes], is_raw: bool
) -> None:
    loop = Loop()
    made, count = connector(loop)
    transport = Transport(PLAIN_TCP._replace(proxy_version=version), None, "", None, None if is_raw else client)
    pool = Endpoint(ADDRESS, 80).pool(transport)
    if is_raw:
        holder: Any = None
        end = RawEnd(holder, lambda end: None, client)
        causes: list[str] = []
        made.dial(pool, end, causes.append)
        await asyncio.gather(*made._tasks)
        assert causes == [""] and end.is_open
        inner: Any = end
    else:
        inner, cause = await connected(made, pool)
        assert cause == ""
    (wire,) = loop.wires
    assert wire.written == expected and wire.protocol is inner and inner.transport is wire
    assert count.seen == ["opened"] and count.failures == []


@pytest.mark.parametrize(
    ("error", "cause", "reason"),
    [
        (OSError(errno.ECONNREFUSED, "refused by it"), "refused by it", "Connection refused"),
        (OSError("no way"), "no way", "OSError"),
        (ConnectionResetError(), "ConnectionResetError", "ConnectionResetError"),
        (ValueError("label too long"), "label too long", "name that cannot be asked for"),
        (UnicodeError("label empty"), "label empty", "name that cannot be asked for"),
        (OSError(errno.EMFILE, "too many"), "too many", "Too many open files"),
    ],
)
async def test_why_a_connection_could_not_be_opened(error: Exception, cause: str, reason: str) -> None:
    loop = Loop(error)
    made, count = connector(loop)
    connection, said = await connected(made, Endpoint(ADDRESS, 80))
    assert connection is None and count.failures == [(f"{ADDRESS}:80", "", reason)]
    assert said == f"connect to {ADDRESS}:80 failed: {cause}" and count.seen == ["failed"]
    assert loop.tried == 1


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


async def test_connections_of_a_client_go_with_it() -> None:
    made, _ = connector(Loop())
    endpoint = Endpoint(ADDRESS, 80)
    pool, other, plain = (
        of_client(endpoint),
        of_client(endpoint, OURSELVES),
        endpoint.pool(Transport(PLAIN_TCP, None, "x")),
    )
    for each in (pool, pool, other, plain, endpoint):
        made.belongs(each)
    assert made.of_clients == {FROM: [pool], OURSELVES: [other]} and made.endpoints == {pool, other, endpoint}
    up: Any = Up()
    pool.idle.append(up)
    made.client_left(Peer("198.51.100.7", port=4711, local=b"10.0.0.1:80"))
    made.client_left(Peer("198.51.100.8", port=4711, local=b"10.0.0.1:80"))
    assert up.heard == ["close"] and pool.closed and set(endpoint.pools.values()) == {other, plain}
    assert made.of_clients == {OURSELVES: [other]}


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


async def test_what_is_unused_is_closed_when_its_time_is_over() -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    connection, _ = await connected(made, endpoint)
    unused, used, many = Up(), Up(), Many()
    ups: Any = [unused, used]
    endpoint.idle += ups
    made.share(endpoint).connections.append(many)
    loop.passes(SWEEP)
    assert unused.idle_since == used.idle_since == many.idle_since == loop.now
    for _number in range(int(IDLE_TIMEOUT / SWEEP)):
        loop.passes(SWEEP)
        assert unused.heard == many.heard == [] and len(loop.timers) == 1
    used.idle_since = loop.now
    loop.passes(SWEEP)
    assert unused.heard == many.heard == ["close"] and used.heard == []
    assert endpoint.idle == ups[1:] and made.share(endpoint).connections == []
    assert connection is not None


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


@pytest.mark.parametrize("is_closed", [True, False])
async def test_endpoints_are_forgotten_when_they_are_gone_and_empty(is_closed: bool) -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    made.share(endpoint)
    up: Any = Up()
    endpoint.closed = is_closed
    endpoint.idle.append(up)
    loop.passes(SWEEP)
    assert made.endpoints == {endpoint}
    endpoint.idle.clear()
    loop.passes(SWEEP)
    assert made.endpoints == (set() if is_closed else {endpoint}) and len(loop.timers) == (0 if is_closed else 1)
    made.share(Endpoint(ADDRESS, 81))
    assert len(loop.timers) == 1


@pytest.mark.parametrize("has_gate", [True, False])
async def test_a_transport_without_connections_is_forgotten_when_its_session_is_old(has_gate: bool) -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    pool = endpoint.pool(Transport(PLAIN_TCP, None, "x"))
    forgotten: list[Pool] = []
    gate: Any = SimpleNamespace(forget=forgotten.append)
    if has_gate:
        pool.gate = gate
    made._keep(pool)
    up: Any = Up(idle_since=loop.now)
    pool.idle.append(up)
    loop.passes(SWEEP)
    pool.idle.clear()
    loop.passes(SWEEP)
    assert pool.empty_since == loop.now
    endpoint.pending = 1
    loop.passes(SWEEP)
    endpoint.pending = 0
    since = loop.now
    loop.timers[0] = (since + SESSION_TIME, loop.timers[0][1])
    loop.passes(SESSION_TIME)
    assert pool.empty_since == since and not pool.closed and list(endpoint.pools.values()) == [pool]
    loop.passes(SWEEP)
    assert pool.closed and endpoint.pools == {} and made.endpoints == {endpoint}
    assert forgotten == ([pool] if has_gate else [])


async def test_one_that_is_used_again_is_empty_from_then_on() -> None:
    loop = Loop()
    made, _ = connector(loop)
    pool = Endpoint(ADDRESS, 80).pool(Transport(PLAIN_TCP, None, "x"))
    made._keep(pool)
    loop.passes(SWEEP)
    assert pool.empty_since
    await connected(made, pool)
    assert pool.empty_since == 0.0
    loop.passes(SWEEP)
    up: Any = Up(idle_since=loop.now)
    pool.idle.append(up)
    loop.passes(SWEEP)
    assert pool.empty_since == 0.0


async def test_nothing_is_left_when_it_closes() -> None:
    loop = Loop()
    made, _ = connector(loop)
    endpoint = Endpoint(ADDRESS, 80)
    made.share(endpoint)
    up: Any = Up()
    endpoint.idle.append(up)
    await made.close()
    assert up.heard == ["close"] and loop.timers == []
