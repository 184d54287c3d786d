"""Programs that tests, faults and benchmarks start: followed by a descriptor of the process, ended with whoever started
them, and gone with all that they started when their block ends. What is left then is killed, and fails the test.

A program is killed by the kernel when the thread that started it ends (parent-death signal): start programs from the
main thread. What it starts has the same mark in its environment, by which it is found also when its parent is gone.
Readiness is an event: what speaks sd_notify(3) says when it is ready, and where it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM
from typing import Any

from tests.harness import preloaded as _preloaded
from tests.harness.patience import PATIENCE

MARK = "GATEWRIGHT_FAMILY"
"""Variable of every process that was started from here."""

_PR_SET_PDEATHSIG = 1
_TIE = f"import ctypes; ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {SIGKILL:d})"
# Whoever started it may have ended before the signal was asked for.
_UNLESS_ORPHANED = 'test "$PPID" = "$0" && exec "$@"'


def tied(command: Sequence[str]) -> list[str]:
    """The command of a program that the kernel kills when the thread that starts it ends (Linux; else as it is)."""
    if not sys.platform.startswith("linux"):
        return list(command)
    setpriv = shutil.which("setpriv")
    rest = ["sh", "-c", _UNLESS_ORPHANED, str(os.getpid()), *command]
    if setpriv:
        return [setpriv, "--pdeathsig", "KILL", *rest]
    return [sys.executable, "-S", "-c", f"{_TIE}; import os, sys; os.execvp(sys.argv[1], sys.argv[1:])", *rest]


class LeftBehind(AssertionError):
    """Processes outlived what started them, or did not end when they were asked to."""


class Notices:
    """What a program says of itself by sd_notify(3)."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        name = f"gatewright-{uuid.uuid4().hex}"
        self.address = f"@{name}" if sys.platform.startswith("linux") else str(folder / name[:20])
        self._socket.bind(f"\0{name}" if self.address.startswith("@") else self.address)
        self.heard: dict[str, str] = {}

    def fileno(self) -> int:
        return self._socket.fileno()

    def take(self) -> Mapping[str, str]:
        """All that was said until now: name -> last value."""
        with contextlib.suppress(BlockingIOError):
            while text := self._socket.recv(1 << 18).decode():
                self.heard.update(line.partition("=")[::2] for line in text.split("\n"))
        return self.heard

    def close(self) -> None:
        self._socket.close()


class Program:
    """A program that runs. `folder` takes what it writes: `NAME.out` and `NAME.log` (standard error).

    `stdout`, `stderr`: descriptors instead of these files. `preloaded`: it may be a fork of a process that has loaded
    it already. The other parameters are those of subprocess.Popen.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        stdin: int = subprocess.DEVNULL,
        preloaded: bool = True,
        **options: Any,
    ) -> None:
        self.name, self.command = name, tuple(command)
        self._log, self._out = folder / f"{name}.log", folder / f"{name}.out"
        self._mark = uuid.uuid4().hex
        self.notices = Notices(folder)
        given = {**os.environ, **(environment or {}), MARK: self._mark, "NOTIFY_SOCKET": self.notices.address}
        with self._log.open("ab") as log, self._out.open("ab") as out:
            to = out.fileno() if stdout is None else stdout
            errors = log.fileno() if stderr is None else stderr
            forked = None
            if preloaded and options.keys() <= {"cwd", "pass_fds"}:
                forked = _preloaded.start(command, given, stdin, to, errors, **options)
            self.process = forked or subprocess.Popen(
                tied(command), stdin=stdin, stdout=to, stderr=errors, env=given, **options
            )
        self.pid = self.process.pid
        self._pidfd = _open(self.pid)
        self._is_over = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {self.pid})"

    # What it says.

    def log(self) -> str:
        """Standard error until now."""
        return self._log.read_text()

    def out(self) -> str:
        """Standard output until now."""
        return self._out.read_text()

    @property
    def returncode(self) -> int | None:
        return self.process.poll()

    @property
    def is_ready(self) -> bool:
        return self.notices.take().get("READY") == "1"

    async def ready(self) -> Mapping[str, str]:
        """Wait until it says so; answers all that it said. AssertionError when it ends before."""
        async with _patiently(lambda: self._not_ready()):
            while not self.is_ready:
                assert self.returncode is None, self._not_ready()
                await _readable(self.notices.fileno(), *self._watched())
        return self.notices.heard

    def await_ready(self) -> Mapping[str, str]:
        """`ready` for code without an event loop."""
        end = time.monotonic() + PATIENCE
        while not self.is_ready:
            assert self.returncode is None and time.monotonic() < end, self._not_ready()
            _poll((self.notices.fileno(), *self._watched()), end)
        return self.notices.heard

    def port(self, name: str) -> int:
        """Where it said that it listens: `ADMIN`, `XDS`, `BIND_8080`. It must be ready."""
        heard = self.notices.take()
        address = heard.get(f"X_GATEWRIGHT_{name}")
        assert address is not None, f"{self.name} did not say where {name} is: {dict(heard)}\n{self.log()}"
        return int(address.partition(",")[0].rpartition(":")[2])

    # Its end.

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end; the exit status as subprocess gives it."""
        async with _patiently(lambda: f"{self} has not ended:\n{self.log()}"):
            while self.returncode is None:
                await _readable(*self._watched())
        return self.process.returncode

    def wait(self) -> int:
        """`ended` for code without an event loop. AssertionError when it does not end."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} has not ended:\n{self.log()}") from None

    def family(self) -> set[int]:
        """It and all that it started, also indirectly, as far as they run."""
        return _marked(f"{MARK}={self._mark}".encode())

    def children(self) -> set[int]:
        """`family` without itself."""
        return self.family() - {self.pid}

    async def end(self, number: int = SIGTERM) -> None:
        """End it and see its family gone. Raises LeftBehind when that takes force. Nothing happens the second time."""
        if self._is_over:
            return
        with self._closing():
            self._ask_to_end(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while self.returncode is None:
                        await _readable(*self._watched())
                    while found := self.children():
                        with _opened(found) as fds:
                            await _readable(*fds)

    def stop(self, number: int = SIGTERM) -> None:
        """`end` for code without an event loop."""
        if self._is_over:
            return
        with self._closing():
            self._ask_to_end(number)
            end = time.monotonic() + PATIENCE
            while self.returncode is None and time.monotonic() < end:
                _poll(self._watched(), end)
            while (found := self.children()) and time.monotonic() < end:
                with _opened(found) as fds:
                    _poll(fds, end)

    def _ask_to_end(self, number: int) -> None:
        for pid in self.family():  # a process that was stopped takes no signal but SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, SIGCONT)
        self.process.send_signal(number)

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        """Whatever happens, nothing of it is left afterwards."""
        left: dict[int, str] = {}
        self._is_over = True
        try:
            yield
        finally:
            if self.process.poll() is None:
                left[self.pid] = " ".join(self.command)
                self.process.kill()
            children = self.children()
            with _opened(children) as fds:
                for pid in children:
                    left[pid] = command_of(pid)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, SIGKILL)
                for fd in fds:
                    _poll((fd,), _NEVER)
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe is not None:
                    pipe.close()
            self.notices.close()
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
        if left:
            raise LeftBehind(f"{self.name} left processes, which were killed: {left}\n{self.log()}")

    def _watched(self) -> tuple[int, ...]:
        return (self._pidfd,) if self._pidfd >= 0 else ()

    def _not_ready(self) -> str:
        end = "" if self.returncode is None else f"; it ended with {self.returncode}"
        return f"{self} is not ready{end}:\n{self.log()}\n{self.out()}"


@contextlib.asynccontextmanager
async def started(
    folder: Path, name: str, command: Sequence[str], *, end: int = SIGTERM, **options: Any
) -> AsyncIterator[Program]:
    """This program until the block ends. `options` are those of `Program`."""
    program = Program(folder, name, command, **options)
    try:
        yield program
    finally:
        await program.end(end)


@contextlib.contextmanager
def running(
    folder: Path, name: str, command: Sequence[str], *, end: int = SIGTERM, **options: Any
) -> Iterator[Program]:
    """`started` for code without an event loop."""
    program = Program(folder, name, command, **options)
    try:
        yield program
    finally:
        program.stop(end)


# Any process.


def is_alive(pid: int) -> bool:
    """Runs or was stopped; one that ended and waits for its parent does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def descendants(pid: int) -> set[int]:
    """Its children, theirs, and so on."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found |= {child} | descendants(child)
    return found


def command_of(pid: int) -> str:
    """Its command line, as one writes it."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "?"


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def files(pid: int) -> list[int]:
    """Descriptors that a process has open."""
    return [int(name) for name in os.listdir(f"/proc/{pid}/fd")]


def _marked(mark: bytes) -> set[int]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes() and is_alive(int(folder.name)):
                found.add(int(folder.name))
    return found


def _open(pid: int) -> int:
    """A descriptor that becomes readable at its end; -1 where there is none, or no such process any more."""
    with contextlib.suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return -1


@contextlib.contextmanager
def _opened(pids: set[int]) -> Iterator[tuple[int, ...]]:
    fds = tuple(fd for pid in pids if (fd := _open(pid)) >= 0)
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


_NEVER = float("inf")
_PAUSE = 0.05
"""Seconds between two looks, where there is nothing that wakes."""


async def _readable(*fds: int) -> None:
    """Until one of them is; a moment without any."""
    if not fds:
        await asyncio.sleep(_PAUSE)
        return
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    own = [os.dup(fd) for fd in fds]  # a loop has one reader for each number, and others may wait for the same
    for fd in own:
        loop.add_reader(fd, event.set)
    try:
        await event.wait()
    finally:
        for fd in own:
            loop.remove_reader(fd)
            os.close(fd)


def _poll(fds: Sequence[int], end: float) -> None:
    if not fds:
        time.sleep(_PAUSE)
        return
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    poll.poll(None if end == _NEVER else max(0.0, end - time.monotonic()) * 1000)


@contextlib.asynccontextmanager
async def _patiently(what: Any) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError:
        raise AssertionError(what()) from None
