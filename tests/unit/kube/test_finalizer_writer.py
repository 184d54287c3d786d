"""Finalizers of GatewayClasses reach the API server, and never over what others wrote."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from controlplane.derive import Change, Outlet
from controlplane.kube.access import ApiError
from controlplane.kube.writing import finalizers
from controlplane.kube.writing.finalizers import FinalizerWriter
from controlplane.translate.gateway.class_finalizers import FINALIZER, FinalizerWrite
from controlplane.translate.keys import ObjectKey
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled, until

CLASSES = "/apis/gateway.networking.k8s.io/v1/gatewayclasses"
KEY = ObjectKey("", "gatewright")


class World:
    def __init__(self) -> None:
        self.server = ApiServer()
        self.put()
        self.feed: Outlet[ObjectKey, FinalizerWrite] = Outlet()
        self.writer = FinalizerWriter(self.server, lambda _: "v1", asyncio.get_running_loop().time, lambda: 0.9)

    def put(self, *found: str) -> None:
        self.server.put(CLASSES, {"metadata": {"name": KEY.name, "finalizers": [*found]}, "spec": {"a": 1}})

    @property
    def version(self) -> str:
        return str(self.server.objects[CLASSES][KEY.name]["metadata"]["resourceVersion"])

    @property
    def there(self) -> object:
        return self.server.objects[CLASSES][KEY.name]["metadata"]["finalizers"]

    @property
    def asked(self) -> int:
        return self.server.asked.count(("PATCH", f"{CLASSES}/{KEY.name}"))

    def want(self, *found: str, version: str = "") -> None:
        write = FinalizerWrite(found, version or self.version)
        self.feed.put([Change(KEY, self.feed.present().get(KEY), write)])

    async def holds(self, condition: Callable[[], bool]) -> None:
        await until(condition, lambda: f"{self.there} {self.server.asked}")


@contextlib.asynccontextmanager
async def writing() -> AsyncIterator[World]:
    world = World()
    running = asyncio.create_task(world.writer.run(world.feed))
    try:
        yield world
    finally:
        await cancelled(running)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finalizers, "QUIET", 0.0)


async def test_what_is_wanted_is_written_once() -> None:
    async with writing() as world:
        world.want("a/b", FINALIZER)
        await world.holds(lambda: world.there == ["a/b", FINALIZER])
        world.want("a/b")
        await world.holds(lambda: world.there == ["a/b"])
        assert world.asked == 2


async def test_what_is_not_wanted_any_more_is_not_written() -> None:
    async with writing() as world:
        world.want(FINALIZER)
        world.feed.put([Change(KEY, world.feed.present()[KEY], None)])
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.asked == 0


async def test_who_was_faster_is_not_overwritten() -> None:
    async with writing() as world:
        before = world.version
        world.put("their/own")
        world.want(FINALIZER, version=before)
        await world.holds(lambda: world.asked == 1)
        world.want("their/own", FINALIZER)
        await world.holds(lambda: world.there == ["their/own", FINALIZER])
        assert world.writer.trouble == ""


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no"), OSError("away"), TimeoutError()])
async def test_what_fails_is_said_and_tried_again(error: Exception) -> None:
    async with writing() as world:
        world.server.refuse.append(error)
        world.want(FINALIZER)
        await world.holds(lambda: world.writer.trouble != "")
        assert world.writer.trouble.startswith("the finalizer of GatewayClass gatewright cannot be written: ")
        await world.holds(lambda: world.there == [FINALIZER])
        await world.holds(lambda: world.writer.trouble == "")


async def test_a_class_that_is_gone_is_not_asked_for_again() -> None:
    async with writing() as world:
        version = world.version
        world.server.delete(CLASSES, KEY.name)
        world.want(FINALIZER, version=version)
        await world.holds(lambda: world.asked == 1 and world.writer.trouble == "")
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.asked == 1


async def test_what_somebody_undoes_each_time_is_written_less_and_less_often() -> None:
    async with writing() as world:
        loop = asyncio.get_running_loop()
        waits = []
        for number in range(1, 4):
            began = loop.time()
            world.want(FINALIZER)
            await world.holds(lambda: world.asked == number)  # noqa: B023
            await world.holds(lambda: world.there == [FINALIZER])
            waits.append(loop.time() - began)
            world.put()
        assert waits[1] >= 0.05 and waits[2] >= 0.1
