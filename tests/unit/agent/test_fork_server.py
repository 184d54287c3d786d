"""The fork server's own side: the test asks as the agent does, a fork is a number, and a process is a pipe."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from dataplane import fork_server
from dataplane.link.forks import QUESTION, REPORT_BYTES, Report, decode


class World:
    """Forks get the numbers in `pids`. `after` is called as each one is made, `waits` as its end is noticed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent, self.control = socket.socketpair()
        self.agent.setblocking(False)
        self.pids: list[int | OSError] = []
        self.after: Callable[[int], None] = lambda _pid: None
        self.waits: Callable[[int], None] = lambda _pid: None
        self.alive: dict[int, int] = {}
        self.status: dict[int, int] = {}
        self.signals: list[tuple[int, object]] = []
        self.names: list[str] = []
        self.links: list[tuple[socket.socket, socket.socket]] = []
        monkeypatch.setattr(os, "fork", self._fork)
        monkeypatch.setattr(os, "pidfd_open", self._open)
        monkeypatch.setattr(os, "waitpid", self._wait)
        monkeypatch.setattr(signal, "signal", lambda number, action: self.signals.append((number, action)))
        monkeypatch.setattr(fork_server, "_call_itself", self.names.append)

    def ask(self) -> socket.socket:
        """The agent's end of a worker's link."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self.agent, [QUESTION], [theirs.fileno()])
        theirs.close()
        ours.setblocking(False)
        self.links.append((ours, theirs))
        return ours

    def hears(self) -> list[Report]:
        """All that the server has said; a beginning comes with its process."""
        found: list[Report] = []
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.agent, REPORT_BYTES, 9)
            except BlockingIOError:
                return found
            if not data:
                return found
            report = decode(data)
            assert len(fds) == (not report.is_end and report.pid > 0)
            for fd in fds:
                os.close(fd)
            found.append(report)

    def leaves(self) -> None:
        self.agent.shutdown(socket.SHUT_WR)

    def ends(self, pid: int, status: int) -> None:
        self.status[pid] = status
        os.close(self.alive.pop(pid))

    def _fork(self) -> int:
        pid = self.pids.pop(0)
        if isinstance(pid, OSError):
            raise pid
        return pid

    def _open(self, pid: int) -> int:
        fd, self.alive[pid] = os.pipe()
        self.after(pid)
        return fd

    def _wait(self, pid: int, options: int) -> tuple[int, int]:
        assert options == 0
        self.waits(pid)
        return pid, self.status.pop(pid)

    def close(self) -> None:
        self.agent.close()
        self.control.close()
        for ours, _ in self.links:
            ours.close()
        for fd in self.alive.values():
            os.close(fd)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    made.close()


def test_a_worker_returns_with_its_link_and_nothing_of_the_servers(world: World) -> None:
    world.ask()
    ours = world.ask()
    world.pids = [71, 0]
    link = fork_server.serve(world.control)
    assert link is not None
    with link:
        link.sendall(b"x")
        assert ours.recv(1) == b"x"
    assert world.hears() == [Report(False, 71, 0)] and world.control.fileno() == -1
    assert world.names == ["gw-fork-server", "gw-worker"]
    ignored = [(signal.SIGINT, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_IGN)]
    assert world.signals == [*ignored, (signal.SIGTERM, signal.SIG_DFL)], "Ctrl-C stays the agent's to decide"


@pytest.mark.parametrize(("status", "said"), [(0, 0), (3 << 8, 3), (9, -9)])
def test_the_end_of_a_worker_is_reported_once(status: int, said: int, world: World) -> None:
    world.pids = [71, 72]

    def after(pid: int) -> None:
        if pid == 71:
            world.ends(71, status)
            world.ask()
        else:
            world.leaves()

    world.after = after
    world.ask()
    assert fork_server.serve(world.control) is None
    reports = world.hears()
    assert sorted(reports) == [Report(False, 71, 0), Report(False, 72, 0), Report(True, 71, said)]
    assert reports[0] == Report(False, 71, 0)


@pytest.mark.parametrize(("error", "said"), [(OSError(errno.ENOMEM, "no"), errno.ENOMEM), (OSError(), 1)])
def test_a_fork_that_fails_is_reported_and_the_next_one_may_succeed(error: OSError, said: int, world: World) -> None:
    failed = world.ask()
    world.ask()
    world.leaves()
    world.pids = [error, 72]
    assert fork_server.serve(world.control) is None
    assert world.hears() == [Report(False, 0, said), Report(False, 72, 0)]
    assert failed.recv(1) == b""


def test_an_agent_that_is_gone_in_the_middle_is_the_end(world: World) -> None:
    world.pids = [71]
    world.after = lambda pid: world.ends(pid, 0)
    world.waits = lambda _pid: world.agent.close()
    world.ask()
    assert fork_server.serve(world.control) is None
