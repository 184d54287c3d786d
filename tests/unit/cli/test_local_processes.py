"""The children of `up` without processes: which run, which come back and when, and the order of their end."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from controlplane.app import App
from controlplane.cli import children
from controlplane.cli.local import demo, fleet
from controlplane.cli.local.processes import Processes
from tests.fakes.memory_agent import descriptors
from tests.fakes.memory_children import MemoryChildren
from tests.fakes.moved_loop import moved
from tests.unit.cli.test_up_plan import endpoints, gateway

PLAN = fleet.Plan(2, 0, 3, Path("/run/xds.sock"))

GRACE = 4.0
"""Seconds from SIGTERM to SIGKILL."""
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a proxy that ended is started again."""
STEADY_SECONDS = 30.0
"""A proxy that ran longer than this is started again after the shortest pause."""


class Folder:
    """An `App` whose objects are what the test says."""

    def __init__(self) -> None:
        self.pipeline = SimpleNamespace(objects={})
        self.news = asyncio.Event()
        self.found: list[Any] = [gateway()]

    def gateways(self) -> list[Any]:
        return self.found

    def become(self, *gateways: Any) -> None:
        self.found = list(gateways)
        self.news.set()

    def demand(self, *slices: Any) -> None:
        self.pipeline.objects = dict(enumerate(slices))
        self.news.set()


class Home:
    """Made by `living`."""

    def __init__(self) -> None:
        self.folder, self.children = Folder(), MemoryChildren()
        self.stream = io.BytesIO()
        self.output = children.Output(self.stream)
        self.processes = Processes(cast(App, self.folder), PLAN, self.output, {"A": "b"}, self.children)
        self.hurry = asyncio.Event()

    def said(self) -> str:
        self.output.drain()
        return self.stream.getvalue().decode()


@asynccontextmanager
async def living() -> AsyncIterator[Home]:
    """A processes that follows its folder; it is stopped when the block ends."""
    before, home = descriptors(), Home()
    await home.processes.reconcile()
    following = asyncio.create_task(home.processes.follow())
    try:
        yield home
    finally:
        following.cancel()
        await asyncio.wait({following})
        await home.processes.stop(home.hurry)
        await asyncio.sleep(0)
    assert home.children.running() == [] and descriptors() == before


@moved
async def test_each_gateway_has_its_proxies_as_long_as_it_is_there() -> None:
    async with living() as home:
        assert home.children.running() == ["proxy-1", "proxy-2"]
        words = list(home.children.born[1].command.arguments)
        assert words[words.index("--port-offset") + 1] == "1000" and words[words.index("--workers") + 1] == "3"
        assert home.children.born[0].command.environment == {"A": "b"}
        home.folder.become(gateway(), gateway("other"))
        await asyncio.sleep(1)
        assert home.children.running() == ["proxy-1", "proxy-2", "other/proxy-1", "other/proxy-2"]
        home.folder.become(gateway("other"))
        await asyncio.sleep(1)
        assert home.children.running() == ["other/proxy-1", "other/proxy-2"]
        assert home.children.born[0].signals == [signal.SIGTERM]


@moved
async def test_a_proxy_that_ends_comes_back_after_pauses_that_grow_and_are_forgotten() -> None:
    async with living() as home:
        pause = SHORTEST_PAUSE
        for _ in range(7):
            home.children.newest("proxy-1").end(1)
            await asyncio.sleep(pause - 0.1)
            assert home.processes.ended("proxy-1") == 1 and home.processes.ended("proxy-2") is None
            await asyncio.sleep(0.2)
            assert home.processes.ended("proxy-1") is None
            pause = min(2 * pause, LONGEST_PAUSE)
        assert pause == LONGEST_PAUSE
        await asyncio.sleep(STEADY_SECONDS - 1)
        home.children.newest("proxy-1").end(1)
        await asyncio.sleep(LONGEST_PAUSE - 0.1)
        assert home.processes.ended("proxy-1") == 1
        await asyncio.sleep(STEADY_SECONDS + 1)
        home.children.newest("proxy-1").end(-9)
        await asyncio.sleep(SHORTEST_PAUSE + 0.1)
        assert home.children.running() == ["proxy-2", "proxy-1"]
        assert "proxy-1 ended with -9; it is started again in 1 s" in home.said()


@moved
async def test_of_two_that_ended_each_comes_back_in_its_own_time() -> None:
    async with living() as home:
        for pause in (SHORTEST_PAUSE, 2 * SHORTEST_PAUSE):
            home.children.newest("proxy-1").end(1)
            await asyncio.sleep(pause + 0.1)
        home.children.newest("proxy-1").end(1)
        home.children.newest("proxy-2").end(1)
        await asyncio.sleep(SHORTEST_PAUSE + 0.1)
        assert home.children.running() == ["proxy-2"]
        await asyncio.sleep(3 * SHORTEST_PAUSE)
        assert home.children.running() == ["proxy-2", "proxy-1"]


@moved
async def test_a_proxy_comes_back_in_time_whatever_happens_meanwhile() -> None:
    async with living() as home:
        home.children.newest("proxy-1").end(1)
        await asyncio.sleep(SHORTEST_PAUSE / 2)
        home.folder.become(gateway())
        await asyncio.sleep(SHORTEST_PAUSE / 2 + 0.1)
        assert home.processes.ended("proxy-1") is None


@moved
async def test_a_proxy_that_ran_thirty_seconds_and_no_longer_was_not_steady() -> None:
    async with living() as home:
        home.children.newest("proxy-1").end(1)
        await asyncio.sleep(SHORTEST_PAUSE)
        while home.processes.ended("proxy-1") is not None:
            await asyncio.sleep(0)
        await asyncio.sleep(STEADY_SECONDS)
        home.children.newest("proxy-1").end(1)
        await asyncio.sleep(SHORTEST_PAUSE + 0.1)
        assert home.processes.ended("proxy-1") == 1
        await asyncio.sleep(SHORTEST_PAUSE)
        assert home.processes.ended("proxy-1") is None


@moved
async def test_the_end_of_a_proxy_that_nobody_wants_any_more_is_no_news() -> None:
    async with living() as home:
        home.folder.become()
        await asyncio.sleep(LONGEST_PAUSE)
        assert home.children.running() == [] and len(home.children.born) == 2 and "ended with" not in home.said()


@moved
async def test_demo_servers_are_told_what_is_wanted_and_come_back() -> None:
    async with living() as home:
        home.folder.demand(*endpoints("echo"))
        await asyncio.sleep(1)
        first = home.children.newest("demo")
        assert first.command.speaks and len(json.loads(first.lines[-1])) == 2
        home.folder.demand(*endpoints("echo"))  # the same
        home.folder.demand()
        await asyncio.sleep(1)
        assert [json.loads(line) for line in first.lines[1:]] == [[]]
        home.folder.demand(*endpoints("sse"), *endpoints("unknown"))
        await asyncio.sleep(1)
        first.end(1)
        await asyncio.sleep(SHORTEST_PAUSE + 0.1)
        second = home.children.newest("demo")
        assert second is not first
        assert {each.kind for each in demo.parse(second.lines[-1])} == {"sse"}
        home.folder.news.set()
        await asyncio.sleep(1)
        assert "the demo servers ended; they are started again" in home.said()


@moved
async def test_a_complaint_is_made_once_as_long_as_it_stays() -> None:
    async with living() as home:
        for slices, times in ((endpoints("unknown"), 1), (endpoints("unknown"), 1), ([], 1), (endpoints("unknown"), 2)):
            home.folder.demand(*slices)
            await asyncio.sleep(1)
            said = home.said()
            assert said.count("warning: ") == said.count("there is no demo server 'unknown'") == times


@pytest.mark.parametrize(("gateways", "kind", "says"), [(1, "", True), (0, "echo", True), (0, "", False)])
def test_what_is_said_at_the_end(gateways: int, kind: str, says: bool) -> None:
    @moved
    async def run() -> None:
        async with living() as home:
            home.folder.become(*[gateway()] * gateways)
            home.folder.demand(*endpoints(kind) if kind else ())
            await asyncio.sleep(1)
            assert len(home.children.running()) == 2 * gateways + bool(kind)
        assert ("stopping; Ctrl-C again stops at once\n" in home.said()) is says

    run()


@moved
async def test_proxies_end_before_their_upstreams_and_late_ones_are_killed() -> None:
    loop = asyncio.get_running_loop()
    async with living() as home:
        home.folder.demand(*endpoints("echo"))
        await asyncio.sleep(1)
        slow, other, servers = home.children.born
        slow.stubborn = True
        began = loop.time()
        stopping = asyncio.create_task(home.processes.stop(home.hurry))
        await asyncio.sleep(GRACE - 0.1)
        assert other.returncode == 0 and slow.returncode is None and servers.returncode is None
        await stopping
        assert slow.signals == [signal.SIGTERM, signal.SIGKILL] and servers.returncode == 0
        assert loop.time() - began < GRACE + 1
        home.processes._lifeline = children.Lifeline()  # cut once more when the block ends


@moved
async def test_whoever_is_in_a_hurry_waits_for_nobody() -> None:
    loop = asyncio.get_running_loop()
    async with living() as home:
        home.folder.demand(*endpoints("echo"))
        await asyncio.sleep(1)
        for each in home.children.born:
            each.stubborn = True
        began = loop.time()
        stopping = asyncio.create_task(home.processes.stop(home.hurry))
        await asyncio.sleep(1)
        home.hurry.set()
        await stopping
        assert loop.time() - began < 1.5
        assert [each.signals[-1] for each in home.children.born] == [signal.SIGKILL] * 3
        home.processes._lifeline = children.Lifeline()
