"""Workers that die, hang or never start; the connections that wait for them; what they load; the agent's death."""

from __future__ import annotations

import asyncio
import compileall
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dataplane
import gatewright
from dataplane.agent.process import Launch, WorkerProcess, by_command, start_all
from dataplane.agent.resources import XDS, Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.workers import Pace, Workers
from dataplane.link.messages import RESOURCE, Record
from dataplane.settings import Drain, SessionKey, WorkerSettings
from dataplane.telemetry.metrics import Metrics
from tests.fakes import control_plane
from tests.fakes.proxy_process import get, origin, running
from tests.harness.patience import PATIENCE
from tests.harness.processes import is_alive
from tests.harness.waiting import until
from tests.loopback.test_agent import file_of

FORBIDDEN = ("pydantic", "yaml", "grpc", "prometheus_client", "inotify_simple")
MAX_RSS_KIB = 38 * 1024


def rss_kib(pid: int) -> int:
    (line,) = (row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS:"))
    return int(line.split()[1])


async def test_connections_that_wait_for_a_worker_survive_its_death(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", 8080
    async with origin() as upstream:
        file.write_text(file_of((port, upstream)))
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            workers = await proxy.workers()
            for pid in workers:
                os.kill(pid, signal.SIGSTOP)  # nobody accepts: everything waits in the sockets
            waiting = [asyncio.create_task(get(proxy.at(port))) for _ in range(40)]
            await asyncio.sleep(0.2)
            os.kill(workers[0], signal.SIGKILL)
            await proxy.logged("worker ended and is replaced")
            os.kill(workers[1], signal.SIGCONT)
            assert await asyncio.gather(*waiting) == [(200, "hello")] * 40
            assert (await proxy.workers())[1] == workers[1]


async def test_a_replaced_worker_goes_on_with_the_counters_and_says_what_is_refused(tmp_path: Path) -> None:
    path, port = tmp_path / "xds.sock", 80
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    async with origin() as upstream, control_plane.serving(path) as plane, running(*flags, workers=1) as proxy:
        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        broken = control_plane.route("/x")
        broken.min_revision = 99
        plane.say("v2", {"route/httproute/default/all/0": broken})
        assert list(await plane.answered()) == ["route/httproute/default/all/0"]
        for _ in range(3):
            assert await get(proxy.at(port)) == (200, "hello")

        (pid,) = await proxy.workers()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: proxy.log().count("worker serves") == 2)
        # The last good route, and the same verdict on the bad one.
        assert await get(proxy.at(port)) == (200, "hello")
        worker = await proxy.dump("?worker=0")
        assert worker["pid"] != pid and worker["state"] == 2
        assert list(worker["refused"]) == ["route/httproute/default/all/0"]
        plane.say("v3", {})
        assert list(await plane.answered()) == ["route/httproute/default/all/0"]
        total = 'gatewright_downstream_connections_total{bind="bind/default/web/80"}'
        assert await proxy.metric(total) == 4
        assert await proxy.metric('gatewright_workers_restarted_total{cause="signal"}') == 1


async def test_workers_end_when_the_agent_is_killed(tmp_path: Path) -> None:
    file, port = tmp_path / "config.yaml", 8080
    async with origin() as upstream:
        file.write_text(file_of((port, upstream)))
        async with running("-f", str(file)) as proxy:
            await proxy.ready()
            workers = await proxy.workers()
            proxy.agent.signal(signal.SIGKILL)
            await proxy.ended()
            await until(lambda: not any(map(is_alive, workers)), "the end of the workers")
            with pytest.raises(OSError, match="Connect call failed"):
                await get(proxy.at(port))


ENTRY = """
import atexit, sys
atexit.register(lambda: open({report!r}, "a").write("\\n".join(sys.modules) + "\\n"))
import dataplane.worker
dataplane.worker.main()
"""

AGENT = """
import sys
from dataplane.__main__ import main
sys.exit(main(worker_command=[sys.executable, {script!r}]))
"""


async def test_a_worker_is_small_and_loads_nothing_heavy(tmp_path: Path) -> None:
    for package in (*dataplane.__path__, *gatewright.__path__):  # as installers do: compiling takes memory
        compileall.compile_dir(package, quiet=1)
    path, port, report, script = tmp_path / "xds.sock", 80, tmp_path / "modules", tmp_path / "worker.py"
    script.write_text(ENTRY.format(report=str(report)))
    entry = ("-c", AGENT.format(script=str(script)))
    flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
    async with origin() as upstream, control_plane.serving(path) as plane, running(*flags, entry=entry) as proxy:
        plane.say("v1", control_plane.gateway(port, upstream))
        assert await plane.answered() == {}
        for pid in await proxy.workers():
            shown = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
            assert b"SESSION_KEY" not in shown and b"abab" not in shown
        sizes = [rss_kib(pid) for pid in await proxy.workers()]
        assert max(sizes) <= MAX_RSS_KIB, sizes
        for _ in range(10):
            assert await get(proxy.at(port)) == (200, "hello")
        await proxy.dump("?worker=0")
    modules = set(report.read_text().split())
    assert {"dataplane.worker", "dataplane.server.acceptor", "uvloop"} <= modules
    assert not {name for name in modules if name.partition(".")[0] in FORBIDDEN}


# The workers' room alone, with its own pace.


@asynccontextmanager
async def workers(
    launch: Launch, pace: Pace, count: int = 1, ahead: Sequence[WorkerProcess] = ()
) -> AsyncIterator[tuple[Workers, Metrics]]:
    metrics = Metrics.in_memory()
    settings = WorkerSettings("", "test", count, "text", "off", {}, Drain(0.0, 1.0), SessionKey(bytes(32)))
    made = Workers(settings, launch, Resources(), Sockets(count, 0), metrics, pace, ahead)
    task = asyncio.create_task(made.run())
    try:
        yield made, metrics
    finally:
        await made.drain(0.0, 0.5)
        task.cancel()
        await asyncio.wait({task})
        made.close()


def restarts(metrics: Metrics, cause: str) -> int:
    return metrics.slots[metrics.counter("workers_restarted_total", cause)]


REAL = [sys.executable, "-m", "dataplane.worker"]


async def test_a_worker_whose_loop_stands_still_is_noticed_and_replaced() -> None:
    async with workers(by_command(REAL), Pace(heartbeat=0.1, patience=1.5)) as (room, metrics):
        async with asyncio.timeout(PATIENCE):
            verdict = await room.apply([])
        assert verdict.refused == {} and room.pending() == []
        stuck = room.slots[0].pid
        assert stuck is not None
        os.kill(stuck, signal.SIGSTOP)
        await until(lambda: restarts(metrics, "signal") == 1, "the end of the stuck worker")
        await until(lambda: room.pending() == [], "its replacement")
        assert room.slots[0].pid != stuck and not is_alive(stuck)


async def test_workers_that_were_started_ahead_take_their_places_and_one_that_ended_is_replaced() -> None:
    ahead = await start_all(2, by_command(REAL))
    first, second = (life.pid for life in ahead)
    ahead[1].kill()
    await until(lambda: not is_alive(second), "the end of the second")
    async with workers(by_command(REAL), Pace(), count=2, ahead=ahead) as (room, metrics):
        async with asyncio.timeout(PATIENCE):
            await room.apply([])
        assert room.pending() == [] and restarts(metrics, "signal") == 1
        assert room.slots[0].pid == first and room.slots[1].pid not in (second, None)


async def test_workers_that_were_started_ahead_end_with_a_start_that_fails() -> None:
    ahead = await start_all(2, by_command(REAL))
    settings = WorkerSettings("", "test", 2, "text", "off", {}, Drain(0.0, 1.0), SessionKey(bytes(32)))
    made = Workers(settings, by_command(REAL), Resources(), Sockets(2, 0), Metrics.in_memory(), Pace(), ahead)
    await made.dismiss()
    made.close()
    assert [is_alive(life.pid) for life in ahead] == [False, False]


async def test_nothing_is_started_ahead_that_cannot_be() -> None:
    assert await start_all(2, by_command(["/no/such/program"])) == []


async def test_workers_that_die_again_and_again_are_restarted_with_pauses_and_hold_up_nothing() -> None:
    command = [sys.executable, "-S", "-c", "raise SystemExit(3)"]
    async with workers(by_command(command), Pace(restart_first=0.2, restart_most=60.0, state=10 * PATIENCE)) as (
        room,
        metrics,
    ):
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE):
            verdict = await room.apply([Record(RESOURCE, "route/a", b"")])
        assert "again and again" in verdict.refused[""]
        assert verdict.binds is None  # nobody said that nothing should listen
        assert room.pending() == ["worker 0"]
        await until(lambda: restarts(metrics, "exit") >= 4)
        # Three pauses lie between four deaths: 0.2, 0.4, ... after the first, which is at once.
        assert time.monotonic() - began > 0.2 + 0.4
        async with asyncio.timeout(PATIENCE):
            await room.apply([])


async def test_a_program_that_cannot_be_run_is_a_worker_that_does_not_start() -> None:
    async with workers(by_command(["/no/such/program"]), Pace(restart_first=0.01)) as (room, metrics):
        verdict = await room.apply([])
        assert "" in verdict.refused
        assert restarts(metrics, "start") >= 3


async def test_a_worker_that_dies_while_it_applies_is_filled_and_waited_for() -> None:
    resources = Resources()
    async with workers(by_command(REAL), Pace(), count=1) as (room, metrics):
        room._resources = resources
        async with asyncio.timeout(PATIENCE):
            await room.apply([])
        pid = room.slots[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        change = resources.update(XDS, [Record(RESOURCE, "nonsense", b"\xff")])
        applying = asyncio.create_task(room.apply(change))
        await asyncio.sleep(0.05)
        assert not applying.done()
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            verdict = await applying
        assert list(verdict.refused) == ["nonsense"]
        assert restarts(metrics, "signal") == 1
