"""The machine of a benchmark: cores, programs that are there, and processes on one core (`tests/harness`)."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.harness import processes
from tests.harness.waiting import wait_until

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


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Process(processes.Program):
    """A program pinned to one core, with its output in files of this run."""

    def __init__(
        self, name: str, command: Sequence[str], core: int | str, environment: Mapping[str, str] | None = None
    ) -> None:
        given = {"PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        super().__init__(run_folder(), name, ["taskset", "-c", str(core), *command], cwd=ROOT, environment=given)

    def await_port(self, port: int) -> None:
        """For programs that do not say when they are ready."""
        wait_until(lambda: self.returncode is not None or is_open(port), self._not_ready)
        if self.returncode is not None:
            raise RuntimeError(self._not_ready())
