"""Statuses reach the API server: once, the newest, and never over what others wrote."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controlplane.derive import Change, Outlet
from controlplane.kube.access import ApiError
from controlplane.kube.writing.statuses import AT_ONCE, AT_ONCE_LEAST, StatusWriter
from controlplane.translate.status.statuses import StatusKey, StatusWrite
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled, until

ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes"
GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways"
KEY: StatusKey = ("HTTPRoute", "shop", "cart")


class World:
    def __init__(self, server: ApiServer | None = None) -> None:
        self.server = server or ApiServer()
        self.server.put(ROUTES, {"metadata": {"name": "cart", "namespace": "shop"}, "spec": {"a": 1}})
        self.feed: Outlet[StatusKey, StatusWrite] = Outlet()
        self.writer = StatusWriter(self.server, lambda _: "v1", asyncio.get_running_loop().time, lambda: 0.9)

    @property
    def version(self) -> str:
        return str(self.server.objects[ROUTES]["cart"]["metadata"]["resourceVersion"])

    @property
    def status(self) -> object:
        return self.server.objects[ROUTES]["cart"].get("status")

    def want(self, number: int, version: str | None = None) -> None:
        write = StatusWrite({"number": number}, self.version if version is None else version)
        self.feed.put([Change(KEY, self.feed.present().get(KEY), write)])

    def put(self, kind: str, path: str, name: str) -> None:
        """An object whose status has to be written."""
        self.server.put(path, {"metadata": {"name": name, "namespace": "shop"}})
        version = str(self.server.objects[path][name]["metadata"]["resourceVersion"])
        self.feed.put([Change((kind, "shop", name), None, StatusWrite({"number": 1}, version))])

    async def holds(self, condition: Callable[[], bool]) -> None:
        await until(condition, lambda: f"{self.status} {self.server.asked}")


@contextlib.asynccontextmanager
async def writing() -> AsyncIterator[World]:
    world = World()
    running = asyncio.create_task(world.writer.run(world.feed))
    try:
        yield world
    finally:
        await cancelled(running)


async def test_a_status_is_written_and_nothing_else_of_the_object() -> None:
    async with writing() as world:
        world.want(1)
        await world.holds(lambda: world.status == {"number": 1})
        assert world.server.objects[ROUTES]["cart"]["spec"] == {"a": 1}
        assert world.server.asked == [("PATCH", f"{ROUTES}/cart/status")]


async def test_a_burst_is_one_write_with_the_last_of_it() -> None:
    async with writing() as world:
        for number in range(100):
            world.want(number)
        await world.holds(lambda: world.status == {"number": 99})
        assert world.writer.count == 1


async def test_the_status_of_a_gateway_does_not_wait_for_those_of_a_thousand_routes() -> None:
    """It was due behind all of them, and is written before most: of those that are due when the writer looks."""
    world, now = World(), [0.0]
    writer = StatusWriter(world.server, lambda _: "v1", lambda: now[0], lambda: 0.9)
    running = asyncio.create_task(writer.run(world.feed))
    await asyncio.sleep(0)  # it follows the feed from now on
    for number in range(1000):
        world.put("HTTPRoute", ROUTES, f"r{number}")
    now[0] = 0.001
    world.put("Gateway", GATEWAYS, "web")
    now[0] = 1.0
    world.put("HTTPRoute", ROUTES, "last")
    await world.holds(lambda: writer.count >= 1001)
    assert world.server.asked.index(("PATCH", f"{GATEWAYS}/web/status")) < AT_ONCE
    await cancelled(running)


class Hanging(ApiServer):
    """Answers no write of a route's status."""

    async def request(self, method: str, path: str, *more: Any, **rest: Any) -> Any:
        if method == "PATCH" and path.startswith(ROUTES):
            self.asked.append((method, path))
            await asyncio.Event().wait()
        return await super().request(method, path, *more, **rest)


async def test_the_status_of_a_gateway_does_not_wait_for_answers_about_routes() -> None:
    world = World(Hanging())
    running = asyncio.create_task(world.writer.run(world.feed))
    await asyncio.sleep(0)
    for number in range(AT_ONCE_LEAST + 1):
        world.put("HTTPRoute", ROUTES, f"r{number}")
    await world.holds(lambda: len(world.server.asked) == AT_ONCE_LEAST)
    world.put("Gateway", GATEWAYS, "web")
    await world.holds(lambda: world.server.objects[GATEWAYS]["web"].get("status") == {"number": 1})
    await cancelled(running)


@contextlib.asynccontextmanager
async def counted(server: ApiServer) -> AsyncIterator[tuple[World, Callable[[], float], list[float]]]:
    """A writer whose clock stands still, and what it says; each look at it is counted."""
    world, now, looks = World(server), [0.0], [0.0]

    def clock() -> float:
        looks[0] += 1
        return now[0]

    writer = world.writer = StatusWriter(server, lambda _: "v1", clock, lambda: 0.9)
    running = asyncio.create_task(writer.run(world.feed))
    await asyncio.sleep(0)
    try:
        yield world, lambda: looks[0], now
    finally:
        await cancelled(running)


async def turns(count: int = 100) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_it_rests_until_a_write_is_due() -> None:
    async with counted(ApiServer()) as (world, looks, _now):
        world.want(1)
        await turns()
        before = looks()
        await turns()
        assert (looks() - before, world.server.asked, len(world.writer)) == (0, [], 1)


async def test_it_rests_while_as_many_writes_are_under_way_as_may_be() -> None:
    async with counted(Hanging()) as (world, looks, now):
        for number in range(AT_ONCE_LEAST + 1):
            world.put("HTTPRoute", ROUTES, f"r{number}")
        now[0] = 1.0
        world.put("HTTPRoute", ROUTES, "last")
        await world.holds(lambda: len(world.server.asked) == AT_ONCE_LEAST)
        await turns()
        before = looks()
        await turns()
        assert (looks() - before, len(world.server.asked)) == (0, AT_ONCE_LEAST)


async def test_who_leads_again_writes_what_was_under_way_when_the_lease_was_lost() -> None:
    world = World(Hanging())
    first = asyncio.create_task(world.writer.run(world.feed))
    world.put("HTTPRoute", ROUTES, "r1")
    await world.holds(lambda: ("PATCH", f"{ROUTES}/r1/status") in world.server.asked)
    await cancelled(first)
    assert len(world.writer) == 0
    second = asyncio.create_task(world.writer.run(world.feed))
    await world.holds(lambda: world.server.asked.count(("PATCH", f"{ROUTES}/r1/status")) == 2)
    await cancelled(second)


async def test_what_changes_before_its_own_write_came_back_is_no_conflict() -> None:
    async with writing() as world:
        before = world.version
        world.want(1, before)
        await world.holds(lambda: world.status == {"number": 1})
        world.want(2, before)  # the fact that has the first write is still on its way
        await world.holds(lambda: world.status == {"number": 2})
        assert world.writer.conflicts == 0


async def test_after_a_conflict_others_words_stay_and_the_next_fact_is_waited_for() -> None:
    async with writing() as world:
        world.want(1, "0")
        await world.holds(lambda: world.writer.conflicts == 1)
        assert world.status is None
        world.want(2)
        await world.holds(lambda: world.status == {"number": 2})


async def test_who_begins_late_writes_what_is_there() -> None:
    world = World()
    world.want(1)
    running = asyncio.create_task(world.writer.run(world.feed))
    await world.holds(lambda: world.status == {"number": 1})
    await cancelled(running)
    world.want(2)
    await asyncio.sleep(0)
    assert len(world.writer) == 0  # whoever does not lead holds nothing


@pytest.mark.parametrize("error", [ApiError(500, "", "no"), ApiError(429, "TooManyRequests", "no"), OSError("reset")])
async def test_a_write_that_failed_is_made_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async with writing() as world:
        world.server.refuse.append(error)
        world.want(1)
        await world.holds(lambda: world.status == {"number": 1})
        assert (world.writer.failures, world.writer.count) == (1, 1)
        (record,) = caplog.records
        assert record.getMessage() == f"the status of HTTPRoute shop/cart was not written: {error}; again in 0.1 s"


async def test_what_is_refused_is_told_and_left_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    async with writing() as world:
        world.server.refuse.append(ApiError(422, "Invalid", "status.number: too small"))
        world.want(1)
        await world.holds(lambda: "status.number: too small" in caplog.text)
        world.want(2)
        await world.holds(lambda: world.status == {"number": 2})
        assert world.server.asked.count(("PATCH", f"{ROUTES}/cart/status")) == 2
        assert (world.writer.failures, world.writer.count, world.writer.conflicts) == (1, 1, 0)


async def test_an_object_that_is_gone_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    async with writing() as world:
        version = world.version
        world.server.delete(ROUTES, "cart")
        world.want(1, version)
        await world.holds(lambda: ("PATCH", f"{ROUTES}/cart/status") in world.server.asked and not len(world.writer))
        assert caplog.text == "" and world.writer.failures == 0
