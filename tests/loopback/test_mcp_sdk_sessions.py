"""Sessions of the official SDK's client through two workers: many at once, a worker killed in the middle of them, a
server that begins anew. The client goes on as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.fakes.proxy_process import Proxy
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_mcp_sdk import client, text, world

pytestmark = pytest.mark.slow

MANY = 200
AT_ONCE = 20
"""Of them begin at a time: client, servers and proxy share a machine. Then all of them are there and ask at once."""


class Gathering:
    """Waits until so many have come."""

    def __init__(self, count: int) -> None:
        self._left, self._all = count, asyncio.Event()

    async def come(self) -> None:
        self._left -= 1
        if not self._left:
            self._all.set()
        async with asyncio.timeout(3 * PATIENCE):
            await self._all.wait()


async def together(urls: list[str], work: Callable[[int, Client], Awaitable[None]]) -> None:
    """Open a session for each of `urls`, and do the work when all of them are there. They end when all have done it."""
    turn, begun, done = asyncio.Semaphore(AT_ONCE), Gathering(len(urls)), Gathering(len(urls))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)

    async def one(number: int, web: httpx2.AsyncClient) -> None:
        await turn.acquire()
        transport = streamable_http_client(urls[number], http_client=web)
        async with client(transport, "legacy") as asking:
            turn.release()
            await begun.come()
            await work(number, asking)
            await done.come()

    shared = httpx2.AsyncClient(timeout=3 * PATIENCE, trust_env=False, limits=limits)
    async with shared as web, asyncio.TaskGroup() as tasks:
        for number in range(len(urls)):
            tasks.create_task(one(number, web))


async def test_many_sessions_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as (proxy, _, _second):
        base = f"http://127.0.0.1:{proxy.at(8080)}"
        prefixes = {f"{base}/one": "", f"{base}/mcp": "second_"}
        urls = [[*prefixes][number % 2] for number in range(MANY)]

        async def work(number: int, asking: Client) -> None:
            prefix = prefixes[urls[number]]
            assert text(await asking.call_tool(f"{prefix}add", {"a": number, "b": 1})) == str(number + 1)
            if number % 10 == 0:  # the server asks this client, and no other
                assert text(await asking.call_tool(f"{prefix}ask", {})) == "7"

        await together(urls, work)
        assert await proxy.metric('gatewright_mcp_requests_total{method="initialize"') == MANY


async def killed(proxy: Proxy, index: int) -> None:
    """Kill a worker and wait for its successor."""
    old = (await proxy.workers())[index]
    os.kill(old, signal.SIGKILL)

    async def is_replaced() -> bool:
        return old not in await proxy.workers()

    await until(is_replaced, lambda: f"a successor of {old}")


SOME = 6


async def test_sessions_go_on_when_either_of_two_workers_is_killed(tmp_path: Path) -> None:
    """Both are killed, one after the other: each session has lost the one that it was begun with."""
    async with world(tmp_path) as (proxy, _, _second):
        url = f"http://127.0.0.1:{proxy.at(8080)}/mcp"
        turns = [Gathering(SOME + 1) for _ in range(4)]

        async def work(number: int, asking: Client) -> None:
            assert text(await asking.call_tool("first_add", {"a": number, "b": 0})) == str(number)
            for index in range(2):
                await turns[2 * index].come()
                await turns[2 * index + 1].come()
                assert text(await asking.call_tool("second_add", {"a": number, "b": index})) == str(number + index)
                assert text(await asking.call_tool("first_ask", {})) == "7"

        async def kills() -> None:
            for index in range(2):
                await turns[2 * index].come()
                await killed(proxy, index)
                await turns[2 * index + 1].come()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(kills())
            tasks.create_task(together([url] * SOME, work))


async def test_sessions_go_on_when_their_server_begins_anew(tmp_path: Path) -> None:
    """It has forgotten them, which no client notices; what it asks a client finds its way through both workers."""
    async with world(tmp_path) as (proxy, first, _):
        url = f"http://127.0.0.1:{proxy.at(8080)}/mcp"
        before, after = Gathering(SOME + 1), Gathering(SOME + 1)

        async def work(number: int, asking: Client) -> None:
            assert text(await asking.call_tool("first_add", {"a": number, "b": 0})) == str(number)
            await before.come()
            await after.come()
            assert text(await asking.call_tool("first_add", {"a": number, "b": 1})) == str(number + 1)
            for _ in range(3):
                assert text(await asking.call_tool("first_ask", {})) == "7"
            assert len((await asking.list_tools()).tools) == 6

        async def restarts() -> None:
            await before.come()
            await first.stop()
            await first.start()
            await after.come()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(restarts())
            tasks.create_task(together([url] * SOME, work))
