"""File descriptors run out: in a worker, in an agent, in the controller. Traffic that is there goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tests.fakes.proxy_process import get
from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import (
    PORT,
    Client,
    Proxy,
    Upstream,
    clients,
    configuration,
    few_files,
    governed,
    has_route,
    load,
    more,
    route,
    served,
    until,
)
from tests.harness.processes import cpu_seconds
from tests.harness.saved import save

CROWD = 60
IDLE = 8
"""Upstream connections that are there."""
FEW = 256
HOG = "127.0.0.2"
ADDED = 8081


@fault("Clients hold more connections than there are file descriptors")
async def test_who_holds_most_connections_loses_its_oldest(tmp_path: Path) -> None:
    async with served(tmp_path, workers=1, files=FEW) as world, load(world.proxy.port) as traffic:
        port, agent = world.proxy.port, world.proxy.agent
        async with clients(port) as connect, clients(port, HOG) as hog:
            early = await connect()
            assert await early.ask() == 200
            held = [await hog() for _ in range(900)]
            await agent.says("limit of connections reached")
            await more(traffic)
            assert await early.ask() == 200  # it was there before, and idle all the time
            assert [await (await connect()).ask() for _ in range(20)] == [200] * 20
            assert await held[-1].ask() == 200 and await held[0].is_closed()
            closed = await world.proxy.metric('gatewright_idle_connections_closed_total{limit="descriptors"}')
            assert closed >= 900 - FEW
        assert traffic.is_clean(), traffic
        assert "no file descriptors left" not in agent.log()


BUFFERS = "policies: {buffer: {request: {}}}"
"""Requests wait for their bodies, without a connection to the upstream."""


@fault("A proxy has no file descriptors left")
async def test_a_worker_without_descriptors_serves_whom_it_has(tmp_path: Path) -> None:
    async with served(tmp_path, workers=1, timeouts=BUFFERS) as world, clients(world.proxy.port) as connect:
        agent = world.proxy.agent
        (pid,) = await world.proxy.workers()
        old = [await connect() for _ in range(IDLE)]
        await _ask_at_once(world.upstream, old)
        for client in old:
            client.post("/hold")
        await until(lambda: busy(world.proxy, IDLE), "their requests have begun")
        with few_files(pid, 12):
            crowd = []
            for number in range(CROWD):  # of one address a third of them, and it would be refused sooner
                crowd.append(await Client.connect(world.proxy.port, f"127.0.1.{number + 1}"))
                crowd[-1].post()
            await agent.says("no file descriptors left (limit")
            assert await world.proxy.metric("gatewright_workers_out_of_files") == 1
            assert await crowd[-1].is_closed()
            # Those it has go on, on the idle upstream connections that are there.
            for client in old:
                client.writer.write(b"ok")
            await until(lambda: world.upstream.holding == IDLE, "all of them reach the upstream")
            # Whoever needs a new one is answered.
            crowd[0].writer.write(b"ok")
            assert await crowd[0].answer() == 503
            # A crowd that is turned away costs no spinning.
            before = cpu_seconds(pid)
            await asyncio.sleep(1.0)
            assert cpu_seconds(pid) - before < 0.5
            # A new listener still gets its sockets.
            save(world.file, configuration(PORT, world.upstream.port, BUFFERS, more=(ADDED,)))
            await until(lambda: agent.log().count("bind opened") == 2, agent.log)
            world.upstream.release.set()
            assert [await client.answer() for client in old] == [200] * IDLE
        for client in crowd:
            client.close()
        await agent.says("file descriptors are free again process=worker")
        assert await get(world.proxy.at(ADDED)) == (200, "ok")
        assert await world.proxy.workers() == [pid]
        await until(lambda: "Too many open files" in agent.out() and "reason=ConnectFailed" in agent.out(), agent.out)


async def busy(proxy: Proxy, requests: int) -> bool:
    """Whether so many requests are under way."""
    return await proxy.metric("gatewright_requests_active") == requests


async def _ask_at_once(server: Upstream, clients_: Sequence[Client]) -> None:
    """So that each has an upstream connection of its own, which is idle then."""
    open_before = server.holding
    for client in clients_:
        client.send("/hold")
    await until(lambda: server.holding == open_before + len(clients_), "all of them are asked")
    server.release.set()
    assert [await client.answer() for client in clients_] == [200] * len(clients_)
    server.release.clear()


@fault("An agent has no file descriptors left")
async def test_an_agent_without_descriptors_harms_no_traffic(tmp_path: Path) -> None:
    async with served(tmp_path, workers=1) as world, load(world.proxy.port) as traffic:
        agent = world.proxy.agent
        (pid,) = await world.proxy.workers()
        with few_files(agent.pid, 2):
            async with clients(world.proxy.page_port("stats")) as connect:
                for _ in range(6):
                    await connect()
                await agent.says("its pages cannot be reached")
                before = cpu_seconds(agent.pid)
                await more(traffic)
                assert cpu_seconds(agent.pid) - before < 0.5
        await agent.says("file descriptors are free again process=agent")
        assert await world.proxy.workers() == [pid]
        assert traffic.is_clean(), traffic
        assert page.count("its pages cannot be reached", agent.log()) == 1
        assert "Traceback" not in agent.log()


@fault("The controller has no file descriptors left")
async def test_a_controller_without_descriptors_keeps_its_streams(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    objects.mkdir()
    async with governed(tmp_path, objects) as world, load(world.proxy.port) as traffic:
        control = world.controller
        with few_files(control.process.pid, 2):
            async with clients(control.admin) as connect:
                for _ in range(6):
                    await connect()
                await control.process.says("proxies and operators cannot connect")
                before = cpu_seconds(control.process.pid)
                (objects / "more.yaml").write_text(route("more", "/more"))
                await more(traffic)
                assert cpu_seconds(control.process.pid) - before < 1.0
        await control.process.says("file descriptors are free again process=controller")
        await until(lambda: has_route(world.proxy, "route/httproute/default/more/0"), control.process.log)
        assert traffic.is_clean(), traffic
        assert page.count("proxies and operators cannot connect", control.process.log()) == 1
        assert "Traceback" not in control.process.log()
        assert world.proxy.agent.log().count("connected to the control plane") == 1
