"""Connections to endpoints on real sockets, on a loop whose time is moved: how they open, how long they are kept."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from dataplane.backends.registry import ROWS as BACKENDS
from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest
from dataplane.http.h2 import frames
from dataplane.http.h2.settings import Settings
from dataplane.net.writes import Writes
from dataplane.table.plans import BackendPlan
from dataplane.table.table import Table
from dataplane.upstream.calls import HttpCalls
from dataplane.upstream.connector import Connector
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.lease import Leases
from dataplane.upstream.versions import HTTP1, HTTP2
from tests.fakes import rule_states
from tests.fakes.h2_peer import EchoServer
from tests.fakes.moved_loop import moved

GET = CallRequest(b"GET", b"/")
KEY = "backend/static/far"
VERSIONS = pytest.mark.parametrize("version", [HTTP1, HTTP2], ids=["http1", "http2"])


class Http1Server(asyncio.Protocol):
    """Answers whatever comes."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")


class Silent(asyncio.Protocol):
    """Says `opening`, and no more."""

    opening = b""
    closes = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.opening)
        if self.closes:
            transport.close()


def http2_server() -> asyncio.Protocol:
    return EchoServer(Settings(), [], [])


SERVERS: dict[int, Callable[[], asyncio.Protocol]] = {HTTP1: Http1Server, HTTP2: http2_server}


@dataclass(eq=False)
class Far:
    """An endpoint, and what asks it as policies do."""

    endpoint: Endpoint
    connector: Connector
    version: int
    accepted: list[Any] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def upstream_opened(self, outcome: str) -> None:
        self.counted.append(outcome)

    def upstream_failed(self, endpoint: str, server_name: str, reason: str) -> None:
        self.failures.append(reason)

    def upstream_connected(self, endpoint: str, server_name: str) -> None: ...

    def upstream_closed(self) -> None:
        self.counted.append("closed")

    async def ask(self) -> CallAnswer:
        plan = BackendPlan(KEY, (self.endpoint,), authority=b"a", version=self.version)
        loop = asyncio.get_running_loop()
        calls = HttpCalls(
            table=lambda: Table(backends={KEY: plan}),
            leases=Leases(
                BACKENDS,
                self.connector,
                None,  # type: ignore[arg-type]  # no names
                lambda: 0.0,
                rule_states=rule_states.local(),
            ),
            wake_at=lambda moment, sleeper: None,
            make_future=loop.create_future,
            clock=loop.time,
        )
        return await calls.http(KEY, GET, 1000.0)

    @property
    def open(self) -> int:
        """Connections that the endpoint has."""
        return sum(not each.transport.is_closing() for each in self.accepted)


@asynccontextmanager
async def far(version: int, server: Callable[[], asyncio.Protocol] | None = None, path: str = "") -> AsyncIterator[Far]:
    loop = asyncio.get_running_loop()
    accepted: list[Any] = []

    def accept() -> asyncio.Protocol:
        accepted.append((server or SERVERS[version])())
        return accepted[-1]

    listening = await (loop.create_unix_server(accept, path) if path else loop.create_server(accept, "127.0.0.1", 0))
    port = 0 if path else listening.sockets[0].getsockname()[1]
    made = Far(Endpoint("" if path else "127.0.0.1", port, path), None, version, accepted)  # type: ignore[arg-type]
    made.connector = Connector(loop, Writes(loop.call_soon), made)
    try:
        yield made
    finally:
        await made.connector.close()
        for each in accepted:
            each.transport.abort()
        listening.close()
        await asyncio.sleep(1)


def sockets(made: Far) -> list[socket.socket]:
    """Ours, of connections to this endpoint."""
    shared = made.endpoint.shared
    ups: list[Any] = [*made.endpoint.idle, *(shared.connections if shared is not None else ())]
    return [up.transport.get_extra_info("socket") for up in ups]


@VERSIONS
@moved
async def test_a_vanished_endpoint_is_noticed(version: int) -> None:
    """Keepalive probes after 180 s, each 180 s, nine of them: docs/reference, Keepalive."""
    async with far(version) as made:
        await made.ask()
        (sock,) = sockets(made)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, each) for each in options] == [180, 180, 9]


@VERSIONS
@moved
async def test_unused_connections_are_kept_for_90_seconds(version: int) -> None:
    async with far(version) as made:
        await made.ask()
        await asyncio.sleep(60)
        await made.ask()
        await asyncio.sleep(85)
        assert made.open == 1
        await asyncio.sleep(30)
        assert made.open == 0 and made.counted == ["opened", "closed"]
        assert (await made.ask()).status == 200 and len(made.accepted) == 2
        await asyncio.sleep(130)
        assert made.open == 0, "looked after as the first one was"


@VERSIONS
@moved
async def test_an_endpoint_that_left_the_table_is_forgotten(version: int) -> None:
    async with far(version) as made:
        await made.ask()
        await asyncio.sleep(25)
        assert made.connector.endpoints == {made.endpoint}
        made.endpoint.close_idle()
        await asyncio.sleep(25)
        assert made.open == 0 and not made.connector.endpoints
        made.endpoint = Endpoint("127.0.0.1", made.endpoint.port)
        await made.ask()
        await asyncio.sleep(130)
        assert made.open == 0, "the next one is looked after again"


@VERSIONS
@moved
async def test_a_closed_connector_keeps_nothing(version: int) -> None:
    async with far(version) as made:
        await made.ask()
        await made.connector.close()
        await asyncio.sleep(0.1)
        assert made.open == 0 and made.counted == ["opened", "closed"]


@VERSIONS
@moved
async def test_a_connector_that_is_closed_while_it_connects(version: int) -> None:
    async with far(version, Silent) as made:
        asking = asyncio.ensure_future(made.ask())
        if version == HTTP1:
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(1)
        await made.connector.close()
        await asyncio.sleep(0.1)
        assert "opened" not in made.counted and made.open == 0
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def refused(made: Far) -> tuple[str, str, float]:
    """Cause and text of a call that fails, and the seconds that it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(CallFailed) as failure:
        await made.ask()
    return failure.value.cause, str(failure.value), loop.time() - began


async def not_opened(made: Far) -> tuple[str, float]:
    """Why there is no connection, and the seconds until that is known. Nobody waits for a stream of it: whoever does
    has as much patience as the connection."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    found: asyncio.Future[str] = loop.create_future()

    def done(connection: object, cause: str) -> None:
        assert connection is None
        found.set_result(cause)

    if made.version == HTTP2:
        made.connector.open(made.endpoint, done)
    else:
        made.connector.connect(made.endpoint, done)
    return await found, loop.time() - began


@VERSIONS
@moved
async def test_nobody_accepts(version: int) -> None:
    """What drops packets answers nothing at all."""
    async with far(version) as made:

        async def hang(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        made.connector.loop.create_connection = hang  # type: ignore[method-assign]
        text, seconds = await not_opened(made)
        label = made.endpoint.label
        told = {
            HTTP1: f"connect to {label} timed out after 10 s",
            HTTP2: f"connect to {label} failed: timed out: it was not connected within 10 s",
        }
        assert text == told[version] and seconds == pytest.approx(10, abs=0.1)
        assert made.counted == ["timeout"]


@moved
async def test_an_endpoint_without_settings() -> None:
    async with far(HTTP2, Silent) as made:
        text, seconds = await not_opened(made)
        assert text == f"connect to {made.endpoint.label} failed: timed out: it sent no HTTP/2 SETTINGS within 10 s"
        assert seconds == pytest.approx(10, abs=0.1) and made.counted == ["timeout"]
        await asyncio.sleep(0.1)
        assert made.open == 0


@moved
async def test_late_settings_are_in_time() -> None:
    """9 s are less than 10."""

    class Late(Silent):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            loop = asyncio.get_running_loop()
            loop.call_later(9, transport.write, frames.settings(b""))

    async with far(HTTP2, Late) as made:
        asking = asyncio.ensure_future(made.ask())
        await asyncio.sleep(9.5)
        assert made.counted == ["opened"] and not asking.done()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def test_sharing_is_asked_for_once() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        endpoint = Endpoint("192.0.2.1", 80)
        connector = Connector(loop, Writes(loop.call_soon), Far(endpoint, None, HTTP2))  # type: ignore[arg-type]
        assert connector.share(endpoint) is connector.share(endpoint) is endpoint.shared
        await connector.close()

    asyncio.run(main())
