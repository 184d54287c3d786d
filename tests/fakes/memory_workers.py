"""Workers that are no processes: the real worker, or a script, at the other end of a real link on the same event loop.

`MemoryWorkers()` and `ScriptedWorkers()` are what `agent.process.by_command(...)` is: given to an agent, they start its
workers. A worker in memory is the product's own (`dataplane.worker.Worker`), so agent and worker say to each other what
they say between processes, descriptors included. A scripted one answers only what its test says: for workers that hang,
are slow or talk nonsense.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
from collections.abc import Callable, Mapping, Sequence

from dataplane import serving
from dataplane import worker as worker_process
from dataplane.filters.registry import ROWS
from dataplane.link import messages
from dataplane.link.channel import Channel
from dataplane.link.messages import Message

PIDS = itertools.count(1_000_000_000)
"""Of no process."""


class MemoryWorker:
    """One life. `lines`: its access log; `levels`: the log levels that it was told."""

    def __init__(self, link: socket.socket) -> None:
        self.pid = next(PIDS)
        self.lines: list[bytes] = []
        self.levels: list[tuple[str, Mapping[str, str]]] = []
        self.first_states = 0
        self.worker = worker_process.Worker(link, ROWS, self._host())
        self.task = asyncio.get_running_loop().create_task(self.worker.run())
        self._status: int | None = None

    def _host(self) -> serving.Host:
        def configure_log(_form: str, _who: str) -> None:
            """The log is the test's."""

        def first_state_serves() -> None:
            self.first_states += 1

        return serving.Host(
            clock=asyncio.get_running_loop().time,
            stdout=lambda: self.lines.append,
            configure_log=configure_log,
            set_levels=lambda default, modules: self.levels.append((default, modules)),
            first_state_serves=first_state_serves,
        )

    async def wait(self) -> int:
        await asyncio.wait({self.task})
        if self._status is None:
            self._status = 0 if self.task.exception() is None else 1
        return self._status

    def kill(self) -> None:
        self.die(-signal.SIGKILL)

    def die(self, status: int) -> None:
        """End as a process does that says nothing more."""
        if not self.task.done():
            self._status = status
            self.task.cancel()


class MemoryWorkers:
    """Starts them; `born` are all lives so far. The next `failing` starts fail."""

    def __init__(self) -> None:
        self.born: list[MemoryWorker] = []
        self.failing = 0

    async def __call__(self, link: socket.socket) -> MemoryWorker:
        if self.failing:
            self.failing -= 1
            raise FileNotFoundError(2, "No such file or directory")
        life = MemoryWorker(link.dup())
        self.born.append(life)
        return life


class ScriptedWorker:
    """One life that does what the test says. `heard` are the messages that it was sent, in order."""

    def __init__(self, link: socket.socket, answer: Callable[[ScriptedWorker, Message], None]) -> None:
        self.pid = next(PIDS)
        self.heard: list[Message] = []
        self.is_killed = self.is_hung_up = False
        self.answer = answer
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.channel = Channel(link, self._on_message, self._on_end)

    def say(self, message: Message) -> None:
        self.channel.send(message)

    def numbers(self) -> list[int]:
        """Of the states that it was sent."""
        return [each.number for each in self.heard if isinstance(each, messages.StateEnd)]

    def end(self, status: int) -> None:
        self.channel.close()
        if not self._status.done():
            self._status.set_result(status)

    def kill(self) -> None:
        self.is_killed = True
        self.end(-signal.SIGKILL)

    async def wait(self) -> int:
        return await asyncio.shield(self._status)

    def _on_message(self, message: Message, fd: int) -> None:
        if fd >= 0:
            socket.close(fd)
        self.heard.append(message)
        self.answer(self, message)

    def _on_end(self, _reason: str) -> None:
        self.is_hung_up = True


def obedient(worker: ScriptedWorker, message: Message) -> None:
    """Answer as a worker does that has nothing to do."""
    match message:
        case messages.StateEnd(number) if number:
            worker.say(messages.Prepared(number, {}, ()))
        case messages.Ping(number):
            worker.say(messages.Pong(number))
        case messages.OpenBind(key):
            worker.say(messages.BindOpened(key))
        case messages.CloseBind(key):
            worker.say(messages.BindClosed(key))
        case messages.DumpRequest(number):
            worker.say(messages.DumpAnswer(number, {"pid": worker.pid}))
        case messages.Drain():
            worker.end(0)


def silent(_worker: ScriptedWorker, _message: Message) -> None:
    """Hear and say nothing."""


class ScriptedWorkers:
    """Starts them; each life behaves as the next of `manners`, the last one for ever."""

    def __init__(self, *manners: Callable[[ScriptedWorker, Message], None]) -> None:
        self.born: list[ScriptedWorker] = []
        self._manners: Sequence[Callable[[ScriptedWorker, Message], None]] = manners or (obedient,)

    async def __call__(self, link: socket.socket) -> ScriptedWorker:
        life = ScriptedWorker(link.dup(), self._manners[min(len(self.born), len(self._manners) - 1)])
        self.born.append(life)
        return life
