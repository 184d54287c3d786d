"""Processes that stand still and ways that are dead: all at once, since each takes half a minute.

Every world has processes of its own; what one of them does the others do not see.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.page import fault
from tests.faults.world import (
    Client,
    Controller,
    Proxy,
    clients,
    configuration,
    governed,
    has_route,
    is_programmed,
    load,
    more,
    relay,
    route,
    served,
    tcp_of,
    until,
)

STOP = 30.0
KEEPALIVE = 180.0


@pytest.mark.slow
@fault(
    "A worker hangs",
    "An agent hangs",
    "The controller hangs",
    "The way between proxy and controller is dead",
    "A client is gone without a word",
    "An upstream is silent",
)
async def test_half_a_minute_of_silence(tmp_path: Path) -> None:
    works = []
    for work in (a_stopped_agent, a_stopped_worker, a_stopped_controller, a_dead_way, silent_peers):
        folder = tmp_path / work.__name__
        folder.mkdir()
        works.append(work(folder))
    # Each to its own end: one that is cut short would leave processes behind.
    ends = await asyncio.gather(*works, return_exceptions=True)
    failures = [end for end in ends if isinstance(end, Exception)]
    if failures:
        raise ExceptionGroup("worlds that did not behave", failures)


async def a_stopped_agent(folder: Path) -> None:
    objects = folder / "objects"
    async with governed(folder, objects, workers=2) as world, load(world.proxy.port) as traffic:
        agent, control = world.proxy.agent, world.controller
        pids = await world.proxy.workers()
        agent.signal(signal.SIGSTOP)
        end = time.monotonic() + STOP
        (objects / "more.yaml").write_text(route("more", "/more"))
        await until(lambda: _has_no_proxies(control), control.process.log)
        await until(lambda: _is_not_programmed(control), control.process.log)
        await asyncio.sleep(end - time.monotonic())
        answered = traffic.answered
        agent.signal(signal.SIGCONT)
        await until(lambda: has_route(world.proxy, "default/more/0"), agent.log)
        await until(lambda: is_programmed(control), control.process.log)
        await more(traffic)
        assert answered > 100
        assert traffic.is_clean(), traffic
        assert await world.proxy.workers() == pids
        assert "is killed" not in agent.log()


async def _has_no_proxies(control: Controller) -> bool:
    return await control.proxies() == []


async def _is_not_programmed(control: Controller) -> bool:
    return (await control.programmed())[0] == "False"


async def a_stopped_worker(folder: Path) -> None:
    async with served(folder) as world, load(world.proxy.port, kept=6) as traffic:
        stopped, other = await world.proxy.workers()
        os.kill(stopped, signal.SIGSTOP)
        ports = {row.remote for row in tcp_of(stopped)}
        await world.proxy.agent.says("worker has not answered for")
        assert re.search(r'is killed .*served="(client|endpoint) HTTP/1.1 127.0.0.1', world.proxy.agent.log())
        await until(lambda: world.proxy.agent.log().count("worker serves") == 3, world.proxy.agent.log)
        await more(traffic)
        assert {port for _, port, _ in traffic.failures} <= ports
        assert set(traffic.statuses) == {200}
        assert (await world.proxy.workers())[1] == other


async def a_stopped_controller(folder: Path) -> None:
    async with governed(folder, folder / "objects") as world, load(world.proxy.port) as traffic:
        world.controller.process.signal(signal.SIGSTOP)
        await world.proxy.agent.says("no control plane; serving the last good state")
        await more(traffic)
        world.controller.process.signal(signal.SIGCONT)
        log = world.proxy.agent.log
        await until(lambda: log().count("connected to the control plane") == 2, log)
        await until(lambda: is_programmed(world.controller), world.controller.process.log)
        assert traffic.is_clean(), traffic


async def a_dead_way(folder: Path) -> None:
    way = folder / "way.sock"
    async with (
        relay(way, folder / "xds.sock") as between,
        governed(folder, folder / "objects", through=way) as world,
        load(world.proxy.port) as traffic,
    ):
        between.dead = True
        await until(lambda: _has_no_proxies(world.controller), world.controller.process.log)
        await until(lambda: _is_not_programmed(world.controller), world.controller.process.log)
        await world.proxy.agent.says("no control plane; serving the last good state")
        between.dead = False
        log = world.proxy.agent.log
        await until(lambda: log().count("connected to the control plane") == 2, log)
        await until(lambda: is_programmed(world.controller), world.controller.process.log)
        assert traffic.is_clean(), traffic


async def silent_peers(folder: Path) -> None:
    """Clients that say nothing more, an upstream that says nothing at all."""
    async with served(folder, workers=1) as world, clients(world.proxy.port) as connect:
        (pid,) = await world.proxy.workers()
        half, tunnel = await connect(), await connect()
        half.send("/hang")
        half.writer.write_eof()
        tunnel.send("/tunnel", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
        assert await tunnel.answer() == 101
        _is_kept_alive(pid, world.upstream.port, 2)
        _is_kept_alive(pid, world.proxy.port, 2)
        nothing, part = await connect(), await connect()
        part.writer.write(b"GET / HTTP/1.1\r\nHost:")
        await _cut(nothing, b"")
        await _cut(part, b"HTTP/1.1 408 ")
        await _silent_upstream(world.file, world.proxy, world.upstream.port)
        await until(lambda: world.upstream.lost == 1, "the request of a client that is gone is ended")
        await _cut(half, b"")
        await until(lambda: "http.status=499" in world.proxy.agent.out(), world.proxy.agent.out)
        assert "reason=ClientGone" in world.proxy.agent.out()


def _is_kept_alive(pid: int, port: int, least: int) -> None:
    """Each connection of this port has a keepalive timer that is running."""
    timers = [row.keepalive for row in tcp_of(pid) if port in (row.local, row.remote)]
    assert len(timers) >= least
    assert all(0 < seconds <= KEEPALIVE for seconds in timers), timers


async def _cut(client: Client, answer: bytes) -> None:
    async with asyncio.timeout(2 * STOP):
        try:
            got = await client.reader.read()
        except ConnectionError:
            got = b""
    assert got[: len(answer)] == answer
    assert bool(got) == bool(answer)


async def _silent_upstream(file: Path, asked: Proxy, port: int) -> None:
    with ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):  # its queue is full: what comes now gets no answer from the kernel
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        deaf, slow = 8081, 8082
        before = file.read_text()
        timed = "policies: {timeouts: {backendRequest: 1s}}"
        file.write_text(
            before
            + configuration(deaf, listener.getsockname()[1]).removeprefix("binds:\n")
            + configuration(slow, port, timed).removeprefix("binds:\n")
        )
        log = asked.agent.log
        await until(lambda: log().count("bind opened") == 3, log)
        async with clients(asked.at(deaf)) as connect_deaf, clients(asked.at(slow)) as connect_slow:
            at_deaf, at_slow = await connect_deaf(), await connect_slow()
            assert await at_slow.ask("/hang") == 504
            assert await at_deaf.ask() == 503
        out = asked.agent.out
        await until(lambda: "reason=UpstreamTimeout" in out() and "timed out after 10 s" in out(), out)
