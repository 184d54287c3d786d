"""Workers by a fork server (`dataplane/fork_server`): starts it ahead, asks it for workers, and hears of each end.

The server loads while the agent does. Where it ends before its workers, they serve on, the next start of a worker
begins another server, and of the exit status of its workers nothing is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Sequence

from dataplane.agent import fork_start
from dataplane.agent.fork_start import CAN_FORK, Begun
from dataplane.agent.process import Started, by_command
from dataplane.link.channel import CLOEXEC
from dataplane.link.forks import QUESTION, REPORT_BYTES, decode

log = logging.getLogger("dataplane.agent.workers")

UNKNOWN = 255
"""Exit status of a worker whose server ended first."""

LAST_WORDS = 5.0
"""Seconds for the server to end when the agent does: it has nothing to do but that."""


class Forks:
    """Starts workers (a `Launch`). `command` runs a server (`fork_start.start`); `begun`: one that is there already."""

    def __init__(self, command: Sequence[str], begun: Begun | None = None) -> None:
        self._command = command
        self._server = None if begun is None else _Server(begun)

    async def __call__(self, link: socket.socket) -> Started:
        """See `Launch`."""
        if self._server is not None:
            with contextlib.suppress(OSError):  # it ended, seen or not
                return self._server.ask(link)
            self.end()
        self._server = _Server(fork_start.start(self._command))
        return self._server.ask(link)

    def end(self) -> None:
        """End the server, if there is one. Its workers live on as long as their links."""
        server, self._server = self._server, None
        if server is not None:
            server.end()


class OneByOne:
    """`Forks` where nothing can be forked: each worker is a program that loads by itself."""

    def __init__(self, command: Sequence[str]) -> None:
        self._launch = by_command(command)

    async def __call__(self, link: socket.socket) -> Started:
        """See `Launch`."""
        return await self._launch(link)

    def end(self) -> None:
        """Nothing runs but the workers."""


Starter = Forks | OneByOne


def starter(command: Sequence[str], begun: Begun | None = None) -> Starter:
    """What this system can do."""
    return Forks(command, begun) if CAN_FORK else OneByOne(command)


class _Server:
    """One life of the server. It notes when its workers begin and end, and when that can no longer be known."""

    def __init__(self, begun: Begun) -> None:
        self._process, self._control = begun.process, socket.socket(fileno=begun.control)
        self._control.setblocking(False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: deque[_Fork] = deque()
        self._alive: dict[int, _Fork] = {}
        self._heard = b""
        self._fds: deque[int] = deque()
        self._is_over = False

    def ask(self, link: socket.socket) -> _Fork:
        """A worker, which may not have begun yet. Raises OSError when the server does not listen."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._control.fileno(), self._readable)
        socket.send_fds(self._control, [QUESTION], [link.fileno()])
        fork = _Fork(self._loop)
        self._asked.append(fork)
        return fork

    def end(self) -> None:
        if self._loop is None:
            self._process.kill()  # it has no worker, and may be loading still
        self._lose()
        self._control.close()
        while self._fds:
            os.close(self._fds.popleft())
        if not self._process.wait(LAST_WORDS):
            self._process.kill()
            self._process.wait(LAST_WORDS)

    def _readable(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, REPORT_BYTES, 1, CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        self._fds.extend(fds)
        if not data:
            log.warning("the fork server ended; its workers go on, and the next one has a new server")
            self._lose()
            return
        self._heard += data
        if len(self._heard) == REPORT_BYTES:  # never more: no read asks for more than the rest of one
            report, self._heard = decode(self._heard), b""
            if report.is_end:
                self._alive.pop(report.pid).over(report.value)
            elif report.pid:
                fork = self._asked.popleft()
                self._alive[report.pid] = fork
                fork.began(report.pid, self._fds.popleft())
            else:
                log.error("a worker cannot be forked: %s", os.strerror(report.value))
                self._asked.popleft().over(UNKNOWN)

    def _lose(self) -> None:
        """The server is gone: nothing more is reported."""
        if self._is_over:
            return
        self._is_over = True
        if self._loop is not None:
            self._loop.remove_reader(self._control.fileno())
        for fork in (*self._asked, *self._alive.values()):
            fork.orphaned()


class _Fork:
    """A worker, from the question for it to its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = 0
        """0: it has not begun."""
        self._loop = loop
        self._status: asyncio.Future[int] = loop.create_future()
        self._fd = -1
        """Of the process: its number may be another one's by the time that a signal is sent."""
        self._is_condemned = False

    async def wait(self) -> int:
        """See `Started`."""
        return await asyncio.shield(self._status)

    def kill(self) -> None:
        """See `Started`."""
        self._is_condemned = True
        if self._fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    def began(self, pid: int, fd: int) -> None:
        self.pid, self._fd = pid, fd
        if self._is_condemned:
            self.kill()

    def over(self, status: int) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        if not self._status.done():
            self._status.set_result(status)

    def orphaned(self) -> None:
        """The server is gone: watch the process itself."""
        if self._fd < 0:
            self.over(UNKNOWN)
        else:
            self._loop.add_reader(self._fd, self._has_ended)

    def _has_ended(self) -> None:
        self._loop.remove_reader(self._fd)
        with contextlib.suppress(OSError):  # it is a child where this is process 1; it has ended anyway
            os.waitid(os.P_PIDFD, self._fd, os.WEXITED | os.WNOHANG)
        self.over(UNKNOWN)
