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
"""Upstream connections that are there: for the load's five clients, and one of those that ask one after the other."""
ADDED = 8081


@fault("A proxy has no file descriptors left")
async def test_a_worker_without_descriptors_serves_whom_it_has(tmp_path: Path) -> None:
    async with served(tmp_path, workers=1) as world, clients(world.proxy.port) as connect:
        port, agent = world.proxy.port, world.proxy.agent
        (pid,) = await world.proxy.workers()
        async with load(port) as traffic:
            old = [await connect() for _ in range(IDLE + 30)]
            await _ask_at_once(world.upstream, old[:IDLE])
            with few_files(pid, 12):
                crowd = [await connect() for _ in range(CROWD)]
                await agent.says("no file descriptors left (limit")
                assert await world.proxy.metric("gatewright_workers_out_of_files") == 1
                assert await crowd[-1].is_closed()
                # Those it has are served, on the idle upstream connections that are there.
                assert [await client.ask() for client in old] == [200] * len(old)
                # Whoever needs a new one is told.
                for client in old:
                    client.send("/hold")
                await until(lambda: any(client.has_answer(503) for client in old), "none finds no connection")
                # A crowd that is turned away costs no spinning.
                before = cpu_seconds(pid)
                await asyncio.sleep(1.0)
                assert cpu_seconds(pid) - before < 0.5
                # A new listener still gets its sockets.
                save(world.file, configuration(PORT, world.upstream.port, more=(ADDED,)))
                await until(lambda: agent.log().count("bind opened") == 2, agent.log)
                await until(lambda: traffic.failures, "the crowd keeps somebody out")
                world.upstream.release.set()
            for client in crowd:
                client.close()
            await agent.says("file descriptors are free again process=worker")
            assert await get(world.proxy.at(ADDED)) == (200, "ok")
            assert await world.proxy.workers() == [pid]
            await more(traffic)
        assert {kind for kind, _, _ in traffic.failures} <= {"new"}
        assert page.count("no file descriptors left (limit", agent.log()) == 1
        assert page.count("file descriptors are free again process=worker", agent.log()) == 1
        await until(lambda: "Too many open files" in agent.out() and "reason=ConnectFailed" in agent.out(), agent.out)


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
