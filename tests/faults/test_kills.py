"""`kill -9` of each process in turn, under load: what is lost is what the dead one had in its hands."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes.proxy_process import PAGES
from tests.faults import page
from tests.faults.page import fault
from tests.faults.world import (
    TIMES,
    controller,
    governed,
    has_route,
    is_programmed,
    load,
    more,
    proxy,
    route,
    served,
    started,
    tcp_of,
    until,
)
from tests.harness.ports import reserve, reserve_offset
from tests.harness.processes import command_of, descendants, is_alive

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/quickstart"
REQUESTS = "gatewright_requests_total"
LISTENER = 8080
"""Of the example."""


def stop_and_kill(pid: int) -> set[int]:
    """Kill a worker; answers the clients' ports of the connections that it had."""
    os.kill(pid, signal.SIGSTOP)  # so that it takes none between the look and the end
    ports = {row.remote for row in tcp_of(pid)}
    os.kill(pid, signal.SIGKILL)
    return ports


def is_gone(pids: Sequence[int] | set[int]) -> bool:
    return not any(map(is_alive, pids))


@fault("A worker is killed")
async def test_a_killed_worker_loses_what_it_had_in_its_hands(tmp_path: Path) -> None:
    async with served(tmp_path) as world, load(world.proxy.port, kept=8) as traffic:
        for number in range(2):
            first, second = await world.proxy.workers()
            counted = await world.proxy.metric(REQUESTS)
            before = len(traffic.failures)
            ports = stop_and_kill(first)
            await until(lambda: world.proxy.agent.log().count("worker serves") == 3 + number, world.proxy.agent.log)  # noqa: B023
            await more(traffic, 100)
            assert {port for _, port, _ in traffic.failures[before:]} <= ports
            assert set(traffic.statuses) == {200}
            assert await world.proxy.metric(REQUESTS) >= counted + 100
            assert 0 <= await world.proxy.metric("gatewright_downstream_connections_active") <= 10
            assert (await world.proxy.workers())[1] == second
        await world.proxy.agent.says("worker ended and is replaced")
        await world.proxy.agent.says("worker serves")
        assert await world.proxy.metric('gatewright_workers_restarted_total{cause="signal"}') == 2


@fault("An agent is killed")
async def test_a_killed_agent_takes_its_workers_and_leaves_nothing(tmp_path: Path) -> None:
    shared = set(os.listdir("/dev/shm"))
    port, pages = reserve(), {name: reserve() for name in PAGES}
    given: dict[str, Any] = {"pages": pages, "ports": "--port-offset=0"}
    async with served(tmp_path, port=port, **given) as world:
        workers = await world.proxy.workers()
        async with load(world.proxy.port, kept=2) as traffic:
            world.proxy.agent.signal(signal.SIGKILL)
            await world.proxy.agent.says("the agent is gone; ending")
            await until(lambda: is_gone(workers), "its workers end")
        assert set(traffic.statuses) == {200}
        flags = ["-f", str(world.file)]
        async with proxy(tmp_path, *flags, port=port, name="next", **given) as successor:
            await successor.ready()
            async with load(successor.port) as after:
                await more(after)
            assert after.is_clean(), after
    assert {name for name in os.listdir("/dev/shm") if "gatewright" in name} <= shared


@fault("The controller is killed")
async def test_a_killed_controller_is_missed_by_nobody_who_asks(tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    async with governed(tmp_path, objects) as world, load(world.proxy.port) as traffic:
        agent = world.proxy.agent
        world.controller.process.signal(signal.SIGKILL)
        await agent.says("no control plane; serving the last good state")
        assert await world.proxy.metric("gatewright_xds_connected") == 0
        await more(traffic)
        assert traffic.is_clean(), traffic
        (pid,) = await world.proxy.workers()
        ports = stop_and_kill(pid)
        await until(lambda: agent.log().count("worker serves") == 2, agent.log)
        await more(traffic)
        assert {port for _, port, _ in traffic.failures} <= ports
        lost = len(traffic.failures)
        (objects / "more.yaml").write_text(route("more", "/more"))
        async with controller(tmp_path, objects) as again:
            await until(lambda: agent.log().count("connected to the control plane") == 2, agent.log)
            await agent.says("connected to the control plane")
            await until(lambda: is_programmed(again), again.process.log)
            assert await has_route(world.proxy, "default/more/0")
            await more(traffic)
        assert len(traffic.failures) == lost
        assert set(traffic.statuses) == {200}


@fault("The demo upstreams are killed", "An agent is killed", "`gatewright up` is killed")
async def test_what_up_started_comes_back_and_goes_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    services = folder / "services.yaml"
    text = services.read_text()
    for port in ("19001", "19002", "19003"):
        text = text.replace(port, str(reserve()))
    services.write_text(text)
    offset = reserve_offset((LISTENER, 15000, 15020, 15021))
    command = [sys.executable, "-m", "controlplane.cli", "up", str(folder), "--socket", str(tmp_path / "x.sock")]
    command += ["--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--port-offset", str(offset)]
    async with started(tmp_path, "up", [*command, "--workers", "1", "--proxies", "1"], environment=TIMES) as up:
        await up.ready()
        listener = LISTENER + offset
        (demo,) = _named(up.pid, "controlplane.cli.local.demo")
        os.kill(demo, signal.SIGKILL)
        await until(lambda: page.said("the demo servers ended", up.out()), up.out)
        await _serves(listener)
        (agent,) = _named(up.pid, "dataplane --xds")
        os.kill(agent, signal.SIGKILL)
        await until(lambda: "proxy-1 ended with -9; it is started again in 1 s" in up.out(), up.out)
        await _serves(listener)
        family = descendants(up.pid)
        assert len(family) == 4  # demo servers, agent, fork server, worker
        up.signal(signal.SIGKILL)
        await until(lambda: is_gone(family), "everything that it started ends")


def _named(parent: int, words: str) -> list[int]:
    return [pid for pid in descendants(parent) if words in command_of(pid)]


async def _serves(port: int) -> None:
    async with load(port, kept=1) as traffic:
        await more(traffic, 10)
