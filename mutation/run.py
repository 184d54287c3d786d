"""Runs tests against one fault, in a process of its own, and says whether one of them noticed.

The processes are forks of one that has loaded the libraries already (a "fork server"), and nothing of the product.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mutation import planted
from mutation.probes import Wanted
from tests.harness.patience import SCALE

ROOT = Path(__file__).resolve().parents[1]
HOOK = ROOT / "mutation/hook"
LIBRARIES = ("pytest", "hypothesis", "hypothesis.strategies", "pytest_asyncio.plugin", "asyncio", "unittest.mock")
LIBRARIES += ("google.protobuf.message", "pydantic", "yaml", "httptools", "cryptography.hazmat.primitives.hashes")
"""Most of what tests load, but for grpc, which must not be forked."""

OPTIONS = (
    "-q",
    "--tb=line",
    "-m",
    "not slow",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)

MEMORY = 32 << 30
"""Bytes of a process's own, touched or not: a fault may ask for memory without end. A limit of requests with keys has
512 MiB of its own, of which a test touches little, and some proxies in memory are there at a time."""
STACK = 1 << 20
"""Bytes of addresses for each thread: every proxy in memory starts one for its log."""
WAIT_FACTOR = 4 * SCALE
"""Seconds by the wall clock for each second of computing that tests may use, whatever they do. More of them beside
other work (GATEWRIGHT_PATIENCE), which would end tests that only wait for their turn."""
IDLE = 30.0
"""Seconds by the wall clock in which tests neither compute nor wait for a processor: what they wait for does not come.
A busy machine does not look like that, so this needs no patience."""
AT_WORK = 0.01
"""Share of the time that whoever is not idle computes or wants to."""
LOOK = 2.0
"""Seconds between two looks at that."""
UNREAD = ("ERROR collecting ", "ImportError while loading conftest ")
"""What pytest prints of a file of tests that it cannot import, and of what a folder of them has in common."""
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s:]+\.py(?:::[^\s\[]+(?:\[.*?\](?= - |$))?)?)(?= - |$)", re.MULTILINE)
"""What pytest prints of a test that failed, whose arguments may have spaces; not a line that a test logged."""
ABSENT = re.compile(r"^ERROR: not found: (\S+)$", re.MULTILINE)
"""What pytest prints of a test that is not there: without its arguments, and it runs no other then."""
NO_VERDICT, TESTS_FAILED, NOT_FOUND, NO_TESTS = -1, 1, 4, 5
"""Codes: ours when a process hung, ran out of memory or crashed; pytest's: some failed, there is no such test, none."""
UNPROVEN = -2
"""Tests failed or hung, but not for the fault alone: it counts as not noticed."""

server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(list(LIBRARIES))


@dataclass(frozen=True, slots=True)
class Fault:
    """A module with its text."""

    module: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """A file that takes which tests execute what."""

    path: Path
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of tests: pytest's exit code, or `NO_VERDICT`."""

    code: int
    output: str
    was_cut: bool = False
    """It had used up its time."""

    @property
    def is_killed(self) -> bool:
        """A file of tests that cannot be imported noticed it, although pytest says that its tests are not there."""
        is_unread = any(each in self.output for each in UNREAD)
        return self.code != UNPROVEN and (self.code not in (0, NOT_FOUND, NO_TESTS) or is_unread)

    @property
    def by(self) -> str:
        """The test that failed first."""
        first = FAILED.search(self.output)
        return first[1] if first else "no verdict" if self.code == NO_VERDICT else ""


def run(
    tests: Sequence[Path | str], fault: Fault | None, seconds: float, root: Path = ROOT, record: Record | None = None
) -> Outcome:
    """Run these tests, up to the first that fails. `seconds`: of computing; more ends them without a verdict.

    `record`: what each of them executes is written down (`index`), and all of them run. Tests that are not there are
    left out: the names of some have a constant in them, which the fault may have changed.
    """
    outcome = _run(tests, fault, seconds, root, record)
    absent = {str(Path(name).relative_to(root)) for name in ABSENT.findall(outcome.output)}
    left = [test for test in tests if str(test).partition("[")[0] not in absent]
    return _run(left, fault, seconds, root, record) if absent and left else outcome


def _run(
    tests: Sequence[Path | str], fault: Fault | None, seconds: float, root: Path, record: Record | None
) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        process = server.Process(target=_child, args=(list(map(str, tests)), fault, seconds, str(root), folder, record))
        process.start()
        assert process.pid is not None
        watch = Watch(process.pid, seconds)
        while process.exitcode is None and not watch.is_over():
            process.join(LOOK)
        was_cut = process.exitcode in (None, -signal.SIGXCPU)
        watch.end()
        process.join()
        return outcome_of(folder, was_cut)


def outcome_of(folder: str, was_cut: bool) -> Outcome:
    """What a process wrote down (`contain`, `conclude`) before it ended."""
    verdict, output = Path(folder, "verdict"), Path(folder, "output")
    return Outcome(
        int(verdict.read_text()) if verdict.exists() else NO_VERDICT,
        output.read_text("utf-8", "replace") if output.exists() else "",
        was_cut,
    )


class Watch:
    """Whether a group of processes has had its time (`seconds` of computing), or only waits."""

    def __init__(self, group: int, seconds: float) -> None:
        self._group = group
        self._end = time.monotonic() + seconds * WAIT_FACTOR
        self._since, self._work = time.monotonic(), 0.0

    def is_over(self) -> bool:
        now, work = time.monotonic(), busy(self._group)
        if abs(work - self._work) > AT_WORK * (now - self._since):  # less: one of them ended
            self._since, self._work = now, work
        return now > self._end or now - self._since > IDLE

    def end(self) -> None:
        """End what tests started, and the process itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._group, signal.SIGKILL)


def busy(group: int) -> float:
    """Seconds that the threads of a group of processes have computed, or waited for a processor."""
    total = 0
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended
            if os.getpgid(int(process)) == group:
                threads = Path(f"/proc/{process}/task").glob("*/schedstat")
                total += sum(sum(map(int, each.read_text().split()[:2])) for each in threads)
    return total / 1e9


def _child(
    tests: list[str], fault: Fault | None, seconds: float, root: str, folder: str, record: Record | None
) -> None:
    contain(seconds, folder)
    os.chdir(root)
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    os.environ["PYTEST_DEBUG_TEMPROOT"] = folder  # the usual one is shared with all runs of the machine
    if fault is not None:
        pass_on(fault, folder)
        planted.plant(fault.module, fault.file, fault.text)
    import pytest

    from mutation import index

    if record is None:
        code = pytest.main(["-x", *OPTIONS, "--rootdir", root, *tests])
    else:
        recorder = index.Recorder(Path(root), record.wanted)
        code = pytest.main([*OPTIONS, "--rootdir", root, *tests], [recorder])
        recorder.write(record.path)
    conclude(code, folder)


def contain(seconds: float, folder: str) -> None:
    """A group of its own, limits, and a file for what it prints."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    threading.stack_size(STACK)
    output = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", closefd=False)


def conclude(code: int, folder: str) -> NoReturn:
    """End with this verdict."""
    sys.stdout.flush()
    Path(folder, "verdict").write_text(str(int(code)))
    os._exit(code)  # threads that a fault left behind are not waited for


def pass_on(fault: Fault, folder: str) -> None:
    """To the processes that tests start."""
    described = Path(folder, "mutant.json")
    described.write_text(json.dumps({"module": fault.module, "file": fault.file, "text": fault.text}))
    os.environ[planted.VARIABLE] = str(described)
    os.environ["PYTHONPATH"] = os.pathsep.join((str(HOOK), os.getcwd()))
