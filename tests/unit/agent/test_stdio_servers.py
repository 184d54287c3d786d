"""The process that runs MCP servers of the file: not beside a control plane; nothing left of it at the end."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from dataplane.agent import stdio_servers
from dataplane.agent.stdio_servers import StdioServers
from dataplane.link import commands
from dataplane.link.commands import Command, read
from dataplane.settings import Logging
from dataplane.telemetry.metrics import Metrics

COMMAND = Command("d1", "own", sys.executable, ("-c", "pass"), {"A": "secret"}, keeps_one=True)


async def test_beside_a_control_plane_none_is_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    servers = StdioServers(tmp_path / "folder/stdio", Logging(), may_run=False, metrics=Metrics.in_memory())
    running = asyncio.create_task(servers.run())
    await servers.take([COMMAND])
    await asyncio.sleep(0)
    assert not (tmp_path / "folder").exists()
    assert "stdio targets are not run beside a control plane: own" in caplog.text
    running.cancel()
    await asyncio.wait([running])


async def test_its_socket_is_for_its_user_alone_and_goes_with_it(tmp_path: Path) -> None:
    socket = tmp_path / "folder/stdio"
    servers = StdioServers(socket, Logging(), may_run=True, metrics=Metrics.in_memory())
    running = asyncio.create_task(servers.run())
    await servers.take([COMMAND])
    assert os.stat(socket.parent).st_mode & 0o777 == 0o700
    assert os.stat(socket).st_mode & 0o777 == 0o600
    running.cancel()
    await asyncio.wait([running])
    assert not socket.parent.exists()


class Runner:
    """The process that runs servers, as far as the agent sees it. Its input is read with the loop's next turn."""

    def __init__(self, *words: str) -> None:
        self.stdout = asyncio.StreamReader()
        self.tables: list[bytes] = []
        self.returncode: int | None = None
        self.was_killed = False
        self._last = words
        self.stdin = self  # what is written to it

    def write(self, table: bytes) -> None:
        self.tables.append(table)
        self.say(commands.TAKEN)

    def close(self) -> None:
        """Of its input: it ends, with its last words."""
        self.say(*self._last)
        self.end()

    def say(self, *words: str) -> None:
        self.stdout.feed_data("".join(f"{word}\n" for word in words).encode())

    def end(self) -> None:
        self.returncode = 0
        self.stdout.feed_eof()

    def kill(self) -> None:
        self.was_killed = True
        self.end()

    async def wait(self) -> int:
        assert self.returncode is not None
        return self.returncode


class Runs:
    """What the agent has started, and which groups of processes it has killed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, socket: Path, *runners: Runner) -> None:
        self.killed: list[int] = []
        self.started = 0
        self.left = list(runners)
        monkeypatch.setattr(asyncio, "create_subprocess_exec", self._start)
        monkeypatch.setattr(os, "killpg", lambda group, _signal: self.killed.append(group))
        self.metrics = Metrics.in_memory()
        self.servers = StdioServers(socket, Logging(), may_run=True, metrics=self.metrics)
        self._running = asyncio.create_task(self.servers.run())

    async def _start(self, *_words: str, **_rest: object) -> Runner:
        self.started += 1
        if not self.left:
            raise OSError(11, "no process can be had")
        return self.left.pop(0)

    async def end(self) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])


async def test_processes_that_found_no_place_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    runs = Runs(monkeypatch, tmp_path / "folder/stdio", runner)
    await runs.servers.take([COMMAND])
    runner.say(commands.FULL, "started 701", commands.FULL)
    await runs.end()
    assert runs.metrics.slots[runs.metrics.counter("limits_exceeded_total", "stdioProcesses")] == 2


async def test_at_the_end_its_last_words_say_which_processes_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a process that ended may be another one's by now."""
    runner = Runner("ended 701", "started 703")
    runs = Runs(monkeypatch, tmp_path / "folder/stdio", runner)
    await runs.servers.take([COMMAND])
    runner.say("started 701", "started 702")
    await asyncio.sleep(0)
    await runs.end()
    assert sorted(runs.killed) == [702, 703] and not runner.was_killed


async def test_what_a_process_leaves_is_ended_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Runner(), Runner()
    monkeypatch.setattr(stdio_servers, "FIRST_PAUSE", 0.0)
    runs = Runs(monkeypatch, tmp_path / "folder/stdio", one, other)
    await runs.servers.take([COMMAND])
    one.say("started 701", "started 702", "ended 702")
    one.end()
    while not other.tables:
        await asyncio.sleep(0)
    assert runs.killed == [701], "once"
    assert read(other.tables[0]) == {"d1": COMMAND}
    await runs.end()
    assert runs.killed == [701] and runs.started == 2


async def test_pauses_grow_until_a_table_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    enough, sleep = asyncio.Event(), asyncio.sleep

    async def slept(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 10:
            enough.set()
        await sleep(0)

    one = Runner()
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", slept)
        patched.setattr(stdio_servers, "TAKE_SECONDS", 0.0)
        runs = Runs(monkeypatch, tmp_path / "folder/stdio")
        await runs.servers.take([COMMAND])
        await enough.wait()
        runs.left.append(one)
        while not one.tables:
            await sleep(0)
        count = len(pauses)
        one.end()
        while len(pauses) == count:
            await sleep(0)
        await runs.end()
    assert pauses[:10] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]
    assert pauses[count] == 0.1
    assert "cannot be started: [Errno 11] no process can be had" in caplog.text
    assert "ended and is started again" in caplog.text
