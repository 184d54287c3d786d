"""The agent's side of its fork server: the server is a socket that the test speaks on, a process is a pipe."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from dataplane.agent import fork_start, forks
from dataplane.agent.fork_start import Begun
from dataplane.agent.forks import UNKNOWN, Forks
from dataplane.agent.process import Started
from dataplane.link.forks import REPORT_BYTES, Report
from tests.fakes.moved_loop import moved


class Process:
    """The server's process, which ends when it is asked to unless it `hangs`."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs
        self.said: list[str] = []

    def kill(self) -> None:
        self.said.append("killed")

    def wait(self, seconds: float) -> bool:
        assert seconds == forks.LAST_WORDS
        self.said.append("waited for")
        return not self.hangs or "killed" in self.said


class Server:
    """One life of a server: what it hears, and what it says."""

    def __init__(self, hangs: bool = False) -> None:
        ours, self.control = socket.socketpair()
        self.process = Process(hangs)
        self.begun = Begun(self.process, ours.detach())  # type: ignore[arg-type]
        self.lives: dict[int, int] = {}
        """The other ends of processes, by pid: a process has ended when its own is closed."""

    def hears(self) -> bytes:
        """One question, whose link comes with it."""
        data, fds, _, _ = socket.recv_fds(self.control, 100, 9)
        for fd in fds:
            os.close(fd)
        assert len(fds) == 1
        return data

    def begins(self, pid: int) -> None:
        fd, self.lives[pid] = os.pipe()
        socket.send_fds(self.control, [Report(False, pid, 0).encode()], [fd])
        os.close(fd)

    def says(self, *report: int) -> None:
        self.control.sendall(Report(bool(report[0]), *report[1:]).encode())

    def is_left(self) -> bool:
        self.control.setblocking(False)
        return self.control.recv(100) == b""

    def ends(self) -> None:
        self.control.close()

    def process_ends(self, pid: int) -> None:
        os.close(self.lives.pop(pid))


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.servers: list[Server] = []
        self.signals: list[int] = []
        self.has_gone = False
        self.link, self.other = socket.socketpair()
        monkeypatch.setattr(fork_start, "start", self._start)
        monkeypatch.setattr(signal, "pidfd_send_signal", self._signal)

    def server(self, hangs: bool = False) -> Server:
        self.servers.append(Server(hangs))
        return self.servers[-1]

    def _start(self, command: Any) -> Begun:
        assert command == ["run"]
        return self.server().begun

    def _signal(self, fd: int, number: int) -> None:
        os.fstat(fd)  # it is open
        self.signals.append(number)
        if self.has_gone:
            raise ProcessLookupError

    async def end(self, made: Forks) -> None:
        """The agent's end, and that of all processes."""
        made.end()
        for server in self.servers:
            for pid in [*server.lives]:
                server.process_ends(pid)
        await turns()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    for each in (made.link, made.other, *(server.control for server in made.servers)):
        each.close()


async def turns() -> None:
    await asyncio.sleep(0.01)


async def status_of(fork: Started) -> int | None:
    """None: it has not ended."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            return await fork.wait()
    return None


@moved
async def test_a_report_may_come_in_pieces(world: World) -> None:
    server = world.server()
    made = Forks(["run"], server.begun)
    fork = await made(world.link)
    server.begins(71)
    await turns()
    data = Report(True, 71, 5).encode()
    assert len(data) == REPORT_BYTES
    for number in range(len(data)):
        assert await status_of(fork) is None
        server.control.sendall(data[number : number + 1])
        await turns()
    assert await status_of(fork) == 5
    await world.end(made)


@moved
async def test_a_worker_that_cannot_be_forked_has_ended(world: World, caplog: pytest.LogCaptureFixture) -> None:
    server = world.server()
    made = Forks(["run"], server.begun)
    first, second = await made(world.link), await made(world.link)
    server.says(False, 0, 12)
    server.begins(72)
    assert await status_of(first) == UNKNOWN == 255
    await turns()
    assert second.pid == 72 and await status_of(second) is None
    assert caplog.messages == ["a worker cannot be forked: Cannot allocate memory"]
    first.kill()
    assert world.signals == []
    await world.end(made)


@pytest.mark.parametrize("when", ["before it begins", "while it runs", "after its end", "gone, not yet reported"])
@moved
async def test_a_worker_is_killed_by_its_descriptor(when: str, world: World) -> None:
    server = world.server()
    made = Forks(["run"], server.begun)
    fork = await made(world.link)
    if when == "before it begins":
        fork.kill()
        assert world.signals == []
    server.begins(71)
    await turns()
    if when == "after its end":
        server.says(True, 71, 0)
        await turns()
    world.has_gone = when == "gone, not yet reported"
    if when != "before it begins":
        fork.kill()
    assert world.signals == ([] if when == "after its end" else [signal.SIGKILL])
    await world.end(made)


@moved
async def test_a_server_that_does_not_end_is_killed_and_waited_for(world: World) -> None:
    server = world.server(hangs=True)
    made = Forks(["run"], server.begun)
    fork = await made(world.link)
    made.end()
    assert server.process.said == ["waited for", "killed", "waited for"]
    assert await status_of(fork) == UNKNOWN
