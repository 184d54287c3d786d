"""The machine of a benchmark: cores, ports, and processes that are started on a core and surely ended again."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import cpu

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "out"
"""Results."""
_CORES = sorted(os.sched_getaffinity(0))
PROXY_CORE = _CORES[0]
"""The proxy under test has this core; load and backend share the other one."""
LOAD_CORE = _CORES[1 % len(_CORES)]


def run_folder() -> Path:
    """Where this run keeps configurations and logs until it ends: two runs at once must not share a file."""
    path = OUT / f"run-{os.getpid()}"
    if not path.exists():
        path.mkdir(parents=True)
        atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the machine: two benchmarks at once would measure each other. Waits for the other one to end."""
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Missing(RuntimeError):
    """A program that the benchmark needs is not installed."""


def find(program: str) -> str:
    """Path of a program: .venv/bin, PATH, then where Debian puts servers."""
    folders = (str(ROOT / ".venv" / "bin"), os.environ.get("PATH", ""), "/usr/sbin")
    path = shutil.which(program, path=os.pathsep.join(folders))
    if path is None:
        raise Missing(f"{program} is not installed (Debian package or Python package of that name)")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Process:
    """A program pinned to one core, with its output in a file."""

    def __init__(
        self, name: str, command: Sequence[str], core: int | str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = run_folder() / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "-c", str(core), *command],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
            )
        self.pid = self.process.pid

    def await_port(self, port: int, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not is_open(port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the tree: politely, then by force."""
        family = cpu.tree(self.pid)
        _signal(family, signal.SIGTERM)
        try:
            self.process.wait(8)
        except subprocess.TimeoutExpired:
            pass
        _signal(family, signal.SIGKILL)
        self.process.wait()

    def __repr__(self) -> str:
        return f"Process({self.name}, {self.pid})"


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
