"""Programs of ours as forks of one process that has loaded them all, so that a test does not pay for loading.

`start` is what `processes.Program` asks first. A process that was begun so has what one of its own has: its arguments,
variables, descriptors, folder, mark and parent-death signal; and so have the processes that it starts before it has
threads. What a program loads, and when, it cannot show: tests of that start real ones (`preloaded=False`), as do tests
that give variables which are read while loading. `GATEWRIGHT_PRELOADED=0` makes every program a real one.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

ROOT = Path(__file__).resolve().parents[2]

MAINS = {
    "dataplane": "dataplane.__main__",
    "dataplane.worker": "dataplane.worker",
    "dataplane.worker_entry": "dataplane.worker",
    "dataplane.agent.reader_entry": "dataplane.agent.reader",
    "controlplane": "controlplane.__main__",
    "controlplane.cli": "controlplane.cli.__main__",
    "controlplane.sources.aside": "controlplane.sources.aside",
}
"""What stands behind `-m` -> the module whose `main` that is."""

LOADED_LATE = (
    "dataplane.agent.entry",
    "dataplane.agent.agent",
    "dataplane.agent.file_source",
    "dataplane.agent.xds_client",
    "controlplane.cli.serving.controller",
    "uvloop",
)
"""What the programs load when they need it."""

READ_WHILE_LOADING = ("POD_", "PYTHON", "GRPC_", "COVERAGE", "LD_")
"""Beginnings of variables."""

SWITCH = "GATEWRIGHT_PRELOADED"
_MARK_BYTES = 32
_MOST_BYTES = 1 << 18
_MOST_FDS = 64
_HIGH = 600
"""Numbers that no descriptor of a request has."""


# In the process of the tests.


class Forked:
    """A program that runs, as subprocess.Popen shows it."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, end: socket.socket) -> None:
        self.pid, self._end = pid, end
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._look(None if timeout is None else timeout)
        if status is None:
            raise subprocess.TimeoutExpired(["preloaded"], timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            self._end.settimeout(seconds)
            with contextlib.suppress(BlockingIOError, TimeoutError):
                self.returncode = int(self._end.recv(64) or b"-9")
                self._end.close()
        return self.returncode


class _Origin:
    """The process that has loaded everything, seen from the tests."""

    def __init__(self) -> None:
        from tests.harness.processes import MARK, tied

        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", "-c", _ENTRY, str(ROOT), str(theirs.fileno()), MARK]
            environment = {**os.environ, MARK: "0" * _MARK_BYTES}
            self._process = subprocess.Popen(tied(command), pass_fds=(theirs.fileno(),), env=environment)
        self.owner = os.getpid()
        for hear in on_begin:
            hear(self._sock.fileno(), self._process.pid)

    def ask(self, request: Mapping[str, Any], fds: Sequence[int]) -> Forked:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._sock, [pickle.dumps(dict(request))], [theirs.fileno(), *fds])
        pid = int(self._sock.recv(64))
        return Forked(pid, ours)

    def close(self) -> None:
        if self.owner == os.getpid():
            self._sock.close()
            self._process.wait()


_ENTRY = "import sys; sys.path.insert(0, sys.argv[1]); from tests.harness import preloaded; preloaded.main(sys.argv)"

on_begin: list[Callable[[int, int], None]] = []
"""Called with a descriptor and a child of this process, which stay until its end. Nothing is preloaded while nobody is
to hear of them: benchmarks measure real programs."""

_origins: list[_Origin] = []


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> Forked | None:
    """A program of ours; None when it is to be started as others are. `stdin`: a descriptor, or subprocess.DEVNULL."""
    module = _module(command)
    if module is None or not on_begin or os.environ.get(SWITCH) == "0" or not sys.platform.startswith("linux"):
        return None
    names = {name for name in {*environment, *os.environ} if environment.get(name) != os.environ.get(name)}
    if any(name.startswith(READ_WHILE_LOADING) for name in names) or stdin != subprocess.DEVNULL:
        return None
    if threading.current_thread() is not threading.main_thread():
        return None
    if not _origins or _origins[0].owner != os.getpid():
        _origins[:] = [_Origin()]
        atexit.register(_origins[0].close)
    request = {
        "words": list(command),
        "environment": dict(environment),
        "cwd": os.fspath(cwd or os.getcwd()),
        "numbers": [1, 2, *pass_fds],
    }
    return _origins[0].ask(request, [stdout, stderr, *pass_fds])


def _module(command: Sequence[str]) -> str | None:
    words = [word for word in command[:4] if word != "-P"]
    if len(words) > 2 and words[0] == sys.executable and words[1] == "-m" and words[2] in MAINS:
        return words[2]
    return None


# In the process that has loaded everything.


def main(arguments: Sequence[str]) -> NoReturn:
    """Load, then fork what is asked for until nobody asks any more."""
    sock, mark = socket.socket(fileno=int(arguments[2])), arguments[3]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    for name in (*MAINS.values(), *LOADED_LATE):
        importlib.import_module(name)
    _fork_instead()
    gc.collect()
    gc.freeze()
    gc.enable()
    alive: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in alive:
                pid, end = alive.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                _, status = os.waitpid(pid, 0)
                with end, contextlib.suppress(OSError):  # nobody wants to know
                    end.send(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            data, fds, _, _ = socket.recv_fds(sock, _MOST_BYTES, _MOST_FDS, socket.MSG_CMSG_CLOEXEC)
            if not data:
                os._exit(0)
            end = socket.socket(fileno=fds.pop(0))
            pid = os.fork()
            if not pid:
                try:
                    _become(pickle.loads(data), fds, mark)
                except BaseException:
                    raise
            for fd in fds:
                os.close(fd)
            pidfd = os.pidfd_open(pid)
            alive[pidfd] = pid, end
            poll.register(pidfd, select.POLLIN)
            sock.send(str(pid).encode())


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """The kernel kills this process when the thread that forked it ends (Linux; elsewhere it does not)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(request: Mapping[str, Any], fds: Sequence[int], mark: str) -> NoReturn:
    die_with_parent()
    environment: dict[str, str] = request["environment"]
    _show(mark, environment[mark])
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(request["cwd"])
    _arrange(dict(zip(request["numbers"], fds, strict=True)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run(request["words"])


def _show(name: str, value: str) -> None:
    """Let /proc show this value: it shows the memory that the process began with."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    ctypes.memmove(getenv(name.encode()), value.encode(), _MARK_BYTES)


def _arrange(wanted: Mapping[int, int]) -> None:
    """Give descriptors their numbers (wanted -> now), and close all others; standard input is empty, if not wanted."""
    import fcntl

    null = os.open(os.devnull, os.O_RDONLY)
    moved = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number, fd in {0: null, 2: 2, **wanted}.items()}
    for number, fd in moved.items():
        os.dup2(fd, number)
    last = 0
    for number in (*sorted(moved), os.sysconf("SC_OPEN_MAX")):
        if number > last + 1:  # an empty range would be all that follow
            os.closerange(last + 1, number)
        last = number


def _run(words: Sequence[str]) -> NoReturn:
    module = _module(words)
    assert module is not None
    sys.argv = [module, *words[words.index(module) + 1 :]]
    code: Any = 0
    try:
        code = importlib.import_module(MAINS[module]).main()
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)  # what is further up belongs to the process that forked


# In a program that was begun so: the processes that it starts.


class _ForkingPopen:
    """subprocess.Popen for a module of ours, as far as our programs use it."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        self.returncode: int | None = None
        self.stdin: BinaryIO | None = None
        self.stdout: BinaryIO | None = None
        wanted = {number: number for number in (1, 2, *options.get("pass_fds", ()))}
        theirs = []
        if options.get("stdin") == subprocess.PIPE:
            wanted[0], writing = os.pipe()
            self.stdin = os.fdopen(writing, "wb")
            theirs.append(wanted[0])
        if options.get("stdout") == subprocess.PIPE:
            reading, wanted[1] = os.pipe()
            self.stdout = os.fdopen(reading, "rb")
            theirs.append(wanted[1])
        self.pid = os.fork()
        if not self.pid:
            if "env" in options:
                os.environ.clear()
                os.environ.update(options["env"])
            _arrange(wanted)
            _run(words)
        for fd in theirs:
            os.close(fd)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(["preloaded"], timeout or 0.0)
            time.sleep(0.002)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class _Subprocess:
    """The module of this name, whose Popen forks where it can."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, words: Any, **options: Any) -> Any:
        # With threads a fork may have half of what they were doing.
        if _module(words) is None or threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1:
            return subprocess.Popen(words, **options)
        return _ForkingPopen(words, **options)


STARTING = ("dataplane.agent.reader_process", "controlplane.sources.aside")
"""Modules that start processes of ours."""


def _fork_instead() -> None:
    for name in STARTING:
        importlib.import_module(name).subprocess = _Subprocess()  # type: ignore[attr-defined]
    fork_start = importlib.import_module("dataplane.agent.fork_start")

    def spawn(words: Sequence[str], kept: int) -> Any:
        options = {"stdin": subprocess.DEVNULL, "env": fork_start.environment(), "pass_fds": (kept,)}
        return fork_start.Process(_Subprocess().Popen(words, **options).pid)

    fork_start.spawn = spawn  # type: ignore[attr-defined]
