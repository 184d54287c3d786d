"""One life of one worker process, seen from the agent: start it, talk to it, know what it said, see it end.

`agent/workers` decides when to start and what to send; here is no decision, and no state of the proxy. A worker is
started with one end of a socket pair; everything else that it gets comes over that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from dataplane.agent.fork_start import environment
from dataplane.link import codec, messages
from dataplane.link.channel import Channel
from dataplane.link.messages import Message, Record, Trouble, WantedBind

log = logging.getLogger("dataplane.agent.workers")


class Started(Protocol):
    """A worker that was started, or will be in a moment, whatever it runs in."""

    @property
    def pid(self) -> int:
        """0 while it has not begun."""
        ...

    async def wait(self) -> int:
        """Its exit status when it has ended, negative for a signal (as subprocess gives it)."""
        ...

    def kill(self) -> None:
        """At once; nothing happens when it has ended."""
        ...


Launch = Callable[[socket.socket], Awaitable[Started]]
"""Starts a worker with its end of the link, which stays the caller's to close. Raises OSError when it cannot."""


def by_command(command: Sequence[str]) -> Launch:
    """Workers that are processes: the command is given `--link-fd` and the descriptor of the link."""

    async def launch(link: socket.socket) -> Started:
        return _Subprocess(
            await asyncio.create_subprocess_exec(
                *command,
                "--link-fd",
                str(link.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                env=environment(),
                pass_fds=(link.fileno(),),
            )
        )

    return launch


class _Subprocess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.wait = process.wait

    def kill(self) -> None:
        if self._process.returncode is None:
            # Not by the process object: that one looks for the exit status first, and would take it from its watcher.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class WorkerProcess:
    """One running worker. `heard` is called with it after each message that changes what is known of it, and at its
    end."""

    def __init__(self, index: int, heard: Callable[[WorkerProcess], None]) -> None:
        self.index = index
        self.heard = heard
        self.on_troubles: Callable[[], None] = _no_troubles
        self._clock = asyncio.get_running_loop().time
        self.started = self.last_pong = self._clock()
        self.prepared = 0
        """Number of the newest state that it serves, or will from the commit on."""
        self.accepts = False
        """It was given the sockets, so requests may reach it."""
        self.is_late = False
        """A state was committed that it had not prepared, and it has not caught up yet."""
        self.refused: dict[str, str] = {}
        self.binds: dict[str, WantedBind] = {}
        self.troubles: tuple[Trouble, ...] = ()
        """Endpoints that are not well, as it has them."""
        self.opened: set[str] = set()
        """Binds that it accepts for."""
        self.trouble = ""
        """Why its link ended, when that was not its end."""
        self.is_condemned = False
        """It was killed and its end is awaited."""
        self._process: Started | None = None
        self._channel: Channel | None = None
        self._dumps: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._answered = 0

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def start(self, launch: Launch) -> None:
        """Raises OSError when it cannot be started."""
        own_end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                self._process = await launch(theirs)
            except BaseException:
                own_end.close()
                raise
        self._channel = Channel(own_end, self._on_message, self._on_end)

    def send(self, message: Message, fd: int = -1) -> None:
        """Nothing happens when its link is gone: `ended` says so."""
        if self._channel is not None:
            self._channel.send(message, fd)

    def send_state(self, number: int, records: Iterable[Record]) -> None:
        """A whole state, or the difference to the one before."""
        if self._channel is not None:
            self._channel.send_all((*codec.chunked(records), messages.StateEnd(number)))

    def ping(self) -> int:
        """Ask for a sign of life; `has_answered` reports it, by the number that is returned."""
        self._number += 1
        self.send(messages.Ping(self._number))
        return self._number

    def has_answered(self, ping: int) -> bool:
        return self._answered >= ping

    def excuse(self, seconds: float) -> None:
        """Do not count so many seconds as silence: this process did not listen."""
        self.started += seconds
        self.last_pong += seconds

    async def dump(self) -> dict[str, Any]:
        """What it says about itself; the caller limits the wait."""
        self._number += 1
        number = self._number
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._dumps[number] = answer
        self.send(messages.DumpRequest(number))
        try:
            return await answer
        finally:
            del self._dumps[number]

    async def ended(self) -> int:
        """Wait for its end; the exit status as subprocess gives it."""
        assert self._process is not None
        status = await self._process.wait()
        if self._channel is not None:
            self._channel.close()
        return status

    def kill(self) -> None:
        """At once, without a chance to clean up."""
        self.is_condemned = True
        if self._process is not None:
            self._process.kill()

    def hang_up(self) -> None:
        """Close the link: the worker drains and ends as if the agent had died."""
        if self._channel is not None:
            self._channel.close()

    def _on_message(self, message: Message, fd: int) -> None:
        if fd >= 0:
            os.close(fd)  # no message from a worker carries one
        self.last_pong = self._clock()  # whatever it says, its loop turns
        _HEARD.get(type(message), WorkerProcess._nonsense)(self, message)
        self.heard(self)

    def _on_end(self, reason: str) -> None:
        # Nothing to kill at a plain end: the process is ending, or its silence is noticed.
        if reason:
            self.trouble = reason
            self.kill()
        self.heard(self)

    def _has_prepared(self, message: Any) -> None:
        if not self.prepared and message.number:
            after = f"{self._clock() - self.started:.2f}s"
            log.info("worker serves", extra={"fields": {"worker": self.index, "pid": self.pid, "after": after}})
        self.prepared = message.number
        self.refused = message.refused
        self.binds = {bind.key: bind for bind in message.binds}

    def _opened(self, message: Any) -> None:
        self.opened.add(message.key)

    def _closed(self, message: Any) -> None:
        self.opened.discard(message.key)

    def _has_troubles(self, message: Any) -> None:
        self.troubles = message.rows
        self.on_troubles()

    def _ponged(self, message: Any) -> None:
        self._answered = message.number

    def _dumped(self, message: Any) -> None:
        future = self._dumps.get(message.number)
        if future is not None and not future.done():
            future.set_result(message.dump)

    def _nonsense(self, message: Any) -> None:
        self.trouble = f"it sent {type(message).__name__}, which is the agent's to send"
        self.kill()


async def start_all(count: int, launch: Launch) -> list[WorkerProcess]:
    """A worker for each place, which are not listened to yet; without those that cannot be started."""
    lives = []
    for index in range(count):
        life = WorkerProcess(index, _nothing)
        with contextlib.suppress(OSError):  # `agent/workers` tries again, and logs it
            await life.start(launch)
            lives.append(life)
    return lives


def _no_troubles() -> None:
    """Until `Workers` sets it."""


def _nothing(_life: WorkerProcess) -> None:
    """It is too early to say anything: a worker that ends meanwhile is found ended."""


_HEARD: dict[type[Message], Callable[[WorkerProcess, Any], None]] = {
    messages.Prepared: WorkerProcess._has_prepared,
    messages.BindOpened: WorkerProcess._opened,
    messages.BindClosed: WorkerProcess._closed,
    messages.Pong: WorkerProcess._ponged,
    messages.Troubles: WorkerProcess._has_troubles,
    messages.DumpAnswer: WorkerProcess._dumped,
}
