"""What reports of endpoints cost a control plane: a hundred proxies, both ends of their streams, a clock that is moved.
Some endpoints of each proxy come and go each second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import grpc.aio
import pytest

from controlplane.answers.fleet import Fleet
from controlplane.snapshot import Snapshots
from controlplane.xds.accounts import Accounts
from controlplane.xds.node import Peer
from controlplane.xds.permits import Permits
from controlplane.xds.protocol import reports
from controlplane.xds.protocol.delta import Library
from controlplane.xds.protocol.stream import Stream
from controlplane.xds.session import Session, Shared
from dataplane.agent import troubles
from dataplane.agent.xds_client import LONGEST_GATHERING, XdsClient
from dataplane.agent.xds_stream import XdsStream
from dataplane.link.messages import Record, Trouble
from dataplane.settings import Address
from dataplane.telemetry.metrics import Metrics
from dataplane.telemetry.troubles import FORGET, Troubles
from gatewright.wire.external import discovery_pb2
from tests.fakes.moved_loop import moved

Request = discovery_pb2.DeltaDiscoveryRequest
GATEWAY: Final = "default/web"
PROXIES: Final = 100
ENDPOINTS: Final = 128
"""Of each proxy: more than a report has, and each with a reason that makes the report as large as it may be."""
REASON: Final = "certificate verify failed: " + "x" * 229
MINUTE: Final = 60
TICK: Final = 1.0
"""Seconds in which some of every proxy's endpoints change."""
CHANGING: Final = 8


class Server:
    """A controller's side of the streams, and what it is sent of endpoints."""

    def __init__(self) -> None:
        clock = asyncio.get_running_loop().time
        self.clock, self.snapshots, self.fleet = clock, Snapshots(), Fleet(clock)
        self.house = Shared(self.snapshots, self.fleet, Permits(1 << 20, 1 << 20), 30.0)
        self.sizes: list[int] = []
        """Bytes of each report."""
        self.answers = 0
        """Messages to proxies."""

    def shown(self) -> list[int]:
        """How many endpoints in trouble each proxy has."""
        view = self.fleet.proxies(lambda _: 0)
        return [len(reports.read(each.report, each.reported_at, lambda _: True)) for each in view]


class Call:
    """Both ends of one call: `grpc.aio`'s for the client, `session.DeltaCall` for the server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._up: asyncio.Queue[bytes] = asyncio.Queue()
        self._down: asyncio.Queue[Any] = asyncio.Queue()
        self._session: asyncio.Task[None] | None = None
        self.end = _ServerEnd(self)

    async def write(self, request: Request) -> None:
        data = request.SerializeToString()
        if reports.KEY in request.node.metadata.fields:
            self.server.sizes.append(len(data))
        if self._session is None:
            server = self.server
            stream = Stream(Library(), server.clock, server.snapshots.recall)
            stream.receive(request)
            stream.admitted()
            session = Session(stream, server.house, Peer("unix:", True), Accounts().open("shop/web"))
            self._session = asyncio.create_task(session.run(self.end))
        else:
            self._up.put_nowait(data)

    async def read(self) -> Any:  # Any: bytes, or gRPC's mark of the end
        return await self._down.get()

    async def close(self) -> None:
        self._down.put_nowait(grpc.aio.EOF)
        if self._session is not None:
            self._session.cancel()
            await asyncio.wait([self._session])


class _ServerEnd:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def read(self) -> bytes:
        return await self._call._up.get()

    async def write(self, response: bytes) -> None:
        self._call.server.answers += 1
        self._call._down.put_nowait(response)

    async def abort(self, code: grpc.StatusCode, details: str) -> Any:
        raise AssertionError((code, details))


class Proxy:
    """A worker's troubles and an agent's stream."""

    def __init__(self, number: int, server: Server) -> None:
        self.clock = asyncio.get_running_loop().time
        self.worker = Troubles(self.clock)
        self.rows: tuple[Trouble, ...] = ()
        stream = XdsStream(GATEWAY, f"proxy-{number}", "1")
        self.client = XdsClient(Address(path="/unused"), stream, _applied, Metrics.in_memory())
        self.client.endpoints = lambda: troubles.report(self.rows, self.clock())
        self.call = Call(server)

    def fail(self, *numbers: int) -> None:
        for number in numbers:
            self.worker.connection_failed(f"10.0.0.{number}:443", "shop.example", REASON)
        self.report()

    def connect(self, *numbers: int) -> None:
        for number in numbers:
            self.worker.connected(f"10.0.0.{number}:443", "shop.example")
        self.report()

    def report(self) -> None:
        """The worker's turn of each second."""
        found = self.worker.report()
        if found is not None:
            self.rows = found
            self.client.report()


async def _applied(_records: Sequence[Record]) -> Mapping[str, str]:
    return {}


@asynccontextmanager
async def fleet(count: int) -> Any:  # of the server and its proxies
    server = Server()
    proxies = [Proxy(number, server) for number in range(count)]
    async with AsyncExitStack() as stack:
        for each in proxies:
            conversing = asyncio.create_task(each.client._converse(each.call))  # type: ignore[arg-type]  # by shape
            stack.push_async_callback(asyncio.wait, [conversing])
            stack.push_async_callback(each.call.close)
        await asyncio.sleep(TICK)
        yield server, proxies


async def storm(proxies: Sequence[Proxy]) -> None:
    """For a minute some endpoints come each second, and others fail."""
    for each in proxies:
        each.fail(*range(ENDPOINTS))
    for number in range(int(MINUTE / TICK)):
        changing = [(number // 2 * CHANGING + each) % ENDPOINTS for each in range(CHANGING)]
        for each in proxies:
            (each.fail if number % 2 else each.connect)(*changing)
        await asyncio.sleep(TICK)


@moved
async def test_endpoints_that_come_and_go_at_a_hundred_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fleet(PROXIES) as (server, proxies):
        before = server.answers
        with monkeypatch.context() as while_nobody_asks:
            while_nobody_asks.setattr(json, "loads", _nobody)
            await storm(proxies)
        # Five in the first sixteen seconds, then one in eight at most: not one in each second.
        assert PROXIES < len(server.sizes) <= 13 * PROXIES
        assert max(server.sizes) <= troubles.MOST_BYTES + 200 and max(server.sizes) > 0.9 * troubles.MOST_BYTES
        assert server.answers == before, "nobody is answered, and nothing is computed anew"
        assert min(server.shown()) > 0
        await _all_is_well(server, proxies)


async def _all_is_well(server: Server, proxies: Sequence[Proxy]) -> None:
    """It is shown within the longest time that news are gathered, and then there is silence."""
    for each in proxies:
        each.connect(*range(ENDPOINTS))
    for _ in range(int(LONGEST_GATHERING / TICK) + 20):
        for each in proxies:
            each.report()
        await asyncio.sleep(TICK)
    assert server.shown() == [0] * len(proxies)
    count = len(server.sizes)
    for _ in range(int(FORGET / TICK)):
        for each in proxies:
            each.report()
        await asyncio.sleep(TICK)
    assert len(server.sizes) == count


def _nobody(_text: str) -> None:
    raise AssertionError("a report is read when somebody asks, and not before")


@moved
async def test_a_single_failure_is_reported_soon_also_after_a_storm() -> None:
    async with fleet(1) as (server, (proxy,)):
        await storm([proxy])
        await _all_is_well(server, [proxy])
        count = len(server.sizes)
        proxy.worker.connection_failed("10.0.0.1:443", "", "timed out")
        proxy.report()
        await asyncio.sleep(1.1)
        assert len(server.sizes) == count + 1 and server.shown() == [1]
