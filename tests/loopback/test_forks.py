"""Workers of a fork server: what they have of it, how their end is reported, and what becomes of them when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dataplane import fork_server
from dataplane.agent import fork_start
from dataplane.agent.forks import UNKNOWN, Forks, OneByOne
from dataplane.agent.process import WorkerProcess, start_all
from dataplane.agent.workers import Pace
from dataplane.link import messages
from dataplane.link.forks import QUESTION, REPORT_BYTES, Report, decode
from tests.fakes.proxy_process import get, origin, running
from tests.harness.patience import PATIENCE
from tests.harness.processes import is_alive
from tests.harness.waiting import until
from tests.loopback.test_agent import file_of
from tests.loopback.test_worker_lives import REAL, restarts, workers

pytestmark = pytest.mark.skipif(not fork_start.CAN_FORK, reason="this system has no descriptors of processes")


@asynccontextmanager
async def starter(command: list[str] = REAL, is_ahead: bool = False) -> AsyncIterator[Forks]:
    made = Forks(command, fork_start.start(command) if is_ahead else None)
    try:
        yield made
    finally:
        made.end()


def servers() -> list[int]:
    """Children of this process that are fork servers."""
    children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split()
    return [int(pid) for pid in children if b"--forks-fd" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def opened(pid: int) -> list[str]:
    """What the descriptors of a process are, but for the first three."""
    folder = Path(f"/proc/{pid}/fd")
    return sorted(os.readlink(folder / name).partition(":")[0] for name in os.listdir(folder) if int(name) > 2)


async def status_of(life: WorkerProcess) -> int:
    async with asyncio.timeout(PATIENCE):
        return await life.ended()


async def begun(life: WorkerProcess) -> int:
    await until(lambda: life.pid > 0, "the beginning of a worker")
    return life.pid


async def test_a_worker_has_nothing_of_its_server_but_what_is_loaded() -> None:
    async with starter() as launch:
        lives = await start_all(3, launch)
        assert len({await begun(life) for life in lives}) == 3
        (server,) = servers()
        assert os.listdir(f"/proc/{server}/task") == [str(server)]  # a thread would be missing in what is forked
        for life in lives:
            life.send(messages.Ping(1))
            await until(lambda life=life: life.has_answered(1), "an answer")
        names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in (server, *(life.pid for life in lives))]
        assert names == ["gw-fork-server", *["gw-worker"] * 3]
        alike = [opened(life.pid) for life in lives]
        assert alike[0] == alike[1] == alike[2]
        assert alike[0].count("socket") <= 12  # its link, what is held back of it, and the loop's own
        assert not any("pidfd" in name for name in alike[0])
        assert opened(server).count("socket") == 1
        for life in lives:
            life.hang_up()
        assert [await status_of(life) for life in lives] == [0, 0, 0]


async def test_a_worker_hears_signals_as_one_that_was_started_by_itself() -> None:
    async with starter() as launch:
        terminated, killed, interrupted = lives = await start_all(3, launch)
        for life in lives:
            life.send(messages.Ping(1))
            await until(lambda life=life: life.has_answered(1), "an answer")
        os.kill(interrupted.pid, signal.SIGINT)
        os.kill(terminated.pid, signal.SIGTERM)
        killed.kill()
        assert (await status_of(terminated), await status_of(killed)) == (0, -signal.SIGKILL)
        assert is_alive(interrupted.pid)
        interrupted.kill()
        interrupted.kill()
        assert await status_of(interrupted) == -signal.SIGKILL
        interrupted.kill()  # nothing happens


async def test_a_worker_that_is_not_wanted_any_more_before_it_began_is_killed() -> None:
    async with starter() as launch:
        (life,) = await start_all(1, launch)
        life.kill()
        assert life.pid == 0
        assert await status_of(life) == -signal.SIGKILL


async def test_the_server_goes_on_where_signals_are_sent_to_all_processes() -> None:
    async with starter() as launch:
        (life,) = await start_all(1, launch)
        await begun(life)
        (server,) = servers()
        os.kill(server, signal.SIGINT)
        os.kill(server, signal.SIGTERM)
        (another,) = await start_all(1, launch)
        await begun(another)
        assert servers() == [server]
        for each in (life, another):
            each.kill()
            await status_of(each)


async def test_workers_outlive_their_server_and_the_next_one_has_a_new_server() -> None:
    async with starter() as launch, workers(launch, Pace(heartbeat=0.1), count=2) as (room, metrics):
        async with asyncio.timeout(PATIENCE):
            await room.apply([])
        first, second = (slot.pid for slot in room.slots)
        assert first and second
        (server,) = servers()
        os.kill(server, signal.SIGKILL)
        await until(lambda: not is_alive(server), "the end of the server")
        async with asyncio.timeout(PATIENCE):
            assert (await room.apply([])).refused == {}
        assert [slot.pid for slot in room.slots] == [first, second] and not servers()
        os.kill(first, signal.SIGKILL)
        await until(lambda: room.pending() != [], "the end of a worker")
        await until(lambda: room.pending() == [], "its replacement")
        assert room.slots[0].pid not in (first, 0) and room.slots[1].pid == second
        assert len(servers()) == 1 and restarts(metrics, "exit") == 1
        os.kill(second, signal.SIGKILL)
        await until(lambda: room.slots[1].pid not in (second, 0, None), "the other replacement")
        await until(lambda: room.pending() == [], "the other replacement")
    assert not servers()


async def test_a_server_that_ends_before_it_was_asked_is_replaced_when_it_is() -> None:
    async with starter(is_ahead=True) as launch:
        (server,) = await until(servers, "the server")
        os.kill(server, signal.SIGKILL)
        await until(lambda: not is_alive(server), "the end of the server")
        (life,) = await start_all(1, launch)
        await begun(life)
        life.kill()
        await status_of(life)


async def test_a_server_that_cannot_load_ends_its_workers_at_once_and_they_are_tried_again() -> None:
    pace = Pace(restart_first=0.01, restart_most=0.1)
    command = [sys.executable, "-S", "-c", "raise SystemExit(3)"]
    async with starter(command) as launch, workers(launch, pace) as (room, metrics):
        await until(lambda: restarts(metrics, "exit") + restarts(metrics, "start") >= 3, "three starts")
        async with asyncio.timeout(PATIENCE):
            assert "again and again" in (await room.apply([])).refused[""]


async def test_no_server_is_begun_from_a_program_that_is_not_there() -> None:
    async with starter(["/no/such/program"]) as launch:
        assert await start_all(2, launch) == []
    with pytest.raises(FileNotFoundError):
        fork_start.start(["/no/such/program"])
    assert fork_start.begin(["/no/such/program"]) is None


async def test_a_server_that_was_begun_ahead_is_asked_and_one_that_nobody_asks_ends_at_once() -> None:
    async with starter(is_ahead=True) as launch:
        (server,) = await until(servers, "the server")
        (life,) = await start_all(1, launch)
        assert await begun(life) and servers() == [server]
        life.hang_up()
        assert await status_of(life) == 0
    assert not servers()
    async with starter(is_ahead=True):
        (unasked,) = await until(servers, "the server")
    assert not servers() and not is_alive(unasked)


def test_a_server_has_nothing_open_but_the_standard_files_and_where_it_is_asked() -> None:
    """Its input is empty, and what this process was given is not handed on."""
    given, kept = os.pipe()
    os.set_inheritable(given, True)
    shown = "print(sorted(os.path.realpath(f'/proc/self/fd/{each}') for each in os.listdir('/proc/self/fd')))"
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    try:
        code = f"import os; os.dup2({writing}, 1); {shown}"
        process = fork_start.spawn([sys.executable, "-S", "-c", code], writing)
        os.close(writing)
        with os.fdopen(reading) as answer:
            found = answer.read()
        assert process.wait(PATIENCE) and process.wait(0.0)
        process.kill()  # it has ended, and its number may be another's
        assert f"pipe:[{os.stat(given).st_ino}]" not in found and "'/dev/null'" in found, found
        assert "socket:" not in found
    finally:
        for each in (given, kept):
            os.close(each)
        ours.close()
        theirs.close()


def test_a_process_that_does_not_end_is_waited_for_so_long_and_no_longer() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = fork_start.spawn([sys.executable, "-S", "-c", "import time; time.sleep(1000)"], theirs.fileno())
        assert not process.wait(0.0)
        process.kill()
        assert process.wait(PATIENCE) and not theirs.get_inheritable()


async def test_without_a_server_each_worker_loads_by_itself() -> None:
    launch = OneByOne(REAL)
    lives = await start_all(2, launch)
    assert not servers() and len({life.pid for life in lives}) == 2
    for life in lives:
        life.hang_up()
    assert [await status_of(life) for life in lives] == [0, 0]
    launch.end()


async def test_a_proxy_leaves_no_server_behind_however_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with origin() as upstream:
        file.write_text(file_of((8080, upstream)))
        for end in (signal.SIGTERM, signal.SIGKILL):
            async with running("-f", str(file), workers=2, preloaded=False) as proxy:
                await proxy.ready()
                assert await get(proxy.at(8080)) == (200, "hello")
                family = proxy.agent.children()
                assert len(family) >= 3  # the server, two workers, and the reader for as long as it stays
                proxy.agent.signal(end)
                await proxy.ended()
                await until(lambda family=family: not any(map(is_alive, family)), "the end of all of them")


# The server's loop, in a thread of this process.


def test_where_nothing_can_be_forked_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", no_fork)
    ours, theirs = socket.socketpair()
    link, other = socket.socketpair()
    with ours, other:
        thread = threading.Thread(target=fork_server.answer_all, args=(theirs, {}))
        thread.start()
        with link:
            socket.send_fds(ours, [QUESTION], [link.fileno()])
        ours.settimeout(PATIENCE)
        assert decode(ours.recv(REPORT_BYTES, socket.MSG_WAITALL)) == Report(False, 0, 11)
        other.settimeout(PATIENCE)
        assert other.recv(1) == b""  # the server keeps nothing of the link
        ours.shutdown(socket.SHUT_WR)
        thread.join(PATIENCE)
        assert not thread.is_alive()
    theirs.close()


async def test_an_agent_hears_that_nothing_can_be_forked(caplog: pytest.LogCaptureFixture) -> None:
    program = (
        "import errno, os, sys\n"
        "def no_fork(): raise BlockingIOError(errno.EAGAIN, '')\n"
        "os.fork = no_fork\n"
        "import dataplane.worker; dataplane.worker.main()"
    )
    async with starter([sys.executable, "-c", program]) as launch:
        (life,) = await start_all(1, launch)
        assert await status_of(life) == UNKNOWN and life.pid == 0
    assert "a worker cannot be forked: Resource temporarily unavailable" in caplog.text


@pytest.mark.parametrize("report", [Report(False, 17, 0), Report(False, 0, 11), Report(True, 2**22, -9)])
def test_a_report_is_itself_again(report: Report) -> None:
    assert len(report.encode()) == REPORT_BYTES and decode(report.encode()) == report
