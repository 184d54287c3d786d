"""When a reflector asks: it waits longer each time for what cannot be read, and no two of a fleet at one moment."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from controlplane.kube.access import ApiError
from controlplane.kube.paths import CORE
from controlplane.kube.reading.known import Known
from controlplane.kube.reading.reflector import Reflector
from gatewright.api.objects.kinds import KINDS
from tests.fakes.api_server import ApiServer
from tests.fakes.moved_loop import moved
from tests.harness.waiting import cancelled

SERVICES = "/api/v1/services"
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"}}


class Server(ApiServer):
    """Notes when it is asked. `watches`: for how many seconds each was asked, too."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: list[float] = []
        self.watches: list[tuple[float, int]] = []
        self.changes = 0

    async def read(self, path: str, **query: Any) -> bytes:
        if path != CORE:
            self.lists.append(asyncio.get_running_loop().time())
        return await super().read(path, **query)

    async def lines(self, path: str, **query: Any) -> AsyncIterator[list[bytes]]:
        self.watches.append((asyncio.get_running_loop().time(), query["timeoutSeconds"]))
        async for each in super().lines(path, **query):
            yield each

    def change(self) -> None:
        self.changes += 1
        self.put(SERVICES, {**SERVICE, "spec": {"ports": [{"port": self.changes}]}})


@contextlib.asynccontextmanager
async def following(server: Server, drawn: float = 0.0, kind: str = "Service") -> AsyncIterator[Reflector[Any]]:
    async def tell(_: object) -> None:
        await asyncio.sleep(0)

    info = KINDS[kind]
    made: Reflector[Any] = Reflector(info, server, tell, lambda: drawn, Known(info))
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        await cancelled(running)
        await asyncio.sleep(0.001)


def pauses(moments: list[float]) -> list[float]:
    return [round(after - before, 3) for before, after in pairwise(moments)]


@pytest.mark.parametrize(
    ("drawn", "expected"), [(0.0, [0.5, 1, 2, 4, 8, 16, 30, 30]), (1.0, [0.25, 0.5, 1, 2, 4, 8, 15, 15])]
)
@moved
async def test_what_cannot_be_read_is_asked_for_less_and_less_often(drawn: float, expected: list[float]) -> None:
    server = Server()
    server.define(SERVICES)
    server.refuse.extend(OSError("no route to host") for _ in expected)
    async with following(server, drawn) as made:
        await asyncio.sleep(100)
        assert made.listed.is_set() and made.trouble == ""
    assert pauses(server.lists) == expected


@moved
async def test_what_cannot_be_read_is_logged_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "controlplane.kube")
    server = Server()
    server.define(SERVICES)
    server.refuse.extend(map(OSError, ("no route", "no route", "", "", "no route")))
    async with following(server) as made:
        await asyncio.sleep(100)
        assert made.trouble == ""
    assert [each.getMessage() for each in caplog.records] == [
        "services cannot be read: no route; it is tried again",
        "services cannot be read: OSError; it is tried again",
        "services cannot be read: no route; it is tried again",
        "services can be read again",
    ]


@moved
async def test_once_something_came_the_first_pause_is_short_again() -> None:
    server = Server()
    server.define(SERVICES)
    server.refuse.extend(OSError("no route to host") for _ in range(4))
    async with following(server) as made:
        await asyncio.sleep(20)
        server.change()
        await asyncio.sleep(1)
        assert len(made) == 1
        server.refuse.append(ApiError(503, "ServiceUnavailable", "etcd has no leader"))
        server.cut()
        await asyncio.sleep(20)
        assert made.relists == 0 and made.trouble == "" and len(server.lists) == 5
    assert pauses([moment for moment, _ in server.watches])[1:] == [0.5]


@pytest.mark.parametrize(("drawn", "pause"), [(0.0, 2.5), (0.5, 5.0), (1.0, 7.5)])
@moved
async def test_a_kind_that_the_cluster_does_not_have_is_looked_for_now_and_then(drawn: float, pause: float) -> None:
    server = Server()
    async with following(server, drawn, "GatewayPolicy") as made:
        await asyncio.sleep(3 * pause + 0.1)
        assert made.version == "" and made.listed.is_set()
    assert pauses(server.lists) == [pause] * 3
    assert not server.watches


@pytest.mark.parametrize(("drawn", "pause"), [(0.0, 0.0), (0.5, 0.25)])
@moved
async def test_those_whose_watches_were_forgotten_together_list_anew_one_after_the_other(
    drawn: float, pause: float
) -> None:
    server = Server()
    server.define(SERVICES)
    async with following(server, drawn) as made:
        await asyncio.sleep(1)
        server.version += 1
        server.forget_history()
        server.cut()
        await asyncio.sleep(1)
        assert made.relists == 1
    assert pauses(server.lists) == [pytest.approx(1 + pause, abs=0.01)]


@pytest.mark.parametrize(("drawn", "seconds"), [(0.0, 240), (0.5, 360), (0.999, 479)])
@moved
async def test_watches_end_at_moments_of_their_own(drawn: float, seconds: int) -> None:
    server = Server()
    server.define(SERVICES)
    async with following(server, drawn):
        await asyncio.sleep(1)
    assert [asked for _, asked in server.watches] == [seconds]
