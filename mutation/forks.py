"""Asks tests about a fault in a fork of a process that has collected them all: milliseconds, where `run` takes seconds.

A module that is loaded there has other code in the functions that the fault changes (`swap`); one that is not loaded
yet gets the fault as in `run`. So what a module makes when it is imported (a table, a default) is not asked here.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

import pytest

from mutation import planted, swap
from mutation.index import file_of
from mutation.run import (
    LOOK,
    OPTIONS,
    ROOT,
    Fault,
    Outcome,
    Watch,
    conclude,
    contain,
    outcome_of,
    pass_on,
    server,
)
from tests.harness import forked

CANNOT = 120
"""Verdict of a fork that cannot show the fault."""

Question = tuple[list[str], Fault | None, float]


class Forks:
    """Those of one process. Several threads may ask at a time, as many as it has workers."""

    def __init__(self, free: SimpleQueue[Connection]) -> None:
        self._free = free

    def ask(self, tests: Sequence[Path | str], fault: Fault | None, seconds: float) -> Outcome | None:
        """As `run.run`; None: what was collected cannot say. `tests`: also whole files of them."""
        connection = self._free.get()
        try:
            connection.send((list(map(str, tests)), fault, seconds))
            found: Outcome | None = connection.recv()
        except (EOFError, ConnectionError):  # nothing could be collected
            return None
        finally:
            self._free.put(connection)
        return found


@contextmanager
def collected(tests: Sequence[Path | str], jobs: int, root: Path = ROOT) -> Generator[Forks, None, None]:
    """A process that has collected these files of tests, with so many workers."""
    ends = [server.Pipe() for _ in range(jobs)]
    process = server.Process(target=_collect, args=(list(map(str, tests)), str(root), [theirs for _, theirs in ends]))
    process.start()
    free: SimpleQueue[Connection] = SimpleQueue()
    for ours, theirs in ends:
        theirs.close()
        free.put(ours)
    try:
        yield Forks(free)
    finally:
        for ours, _ in ends:
            ours.close()
        process.join()


# In the process that collects.


def _collect(tests: list[str], root: str, connections: list[Connection]) -> None:
    os.chdir(root)
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # nothing of it runs before a fork
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, open(f"{folder}/output", "w") as output:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        pytest.main([*OPTIONS, "--rootdir", root, *tests], [_Asked(connections)])


class _Asked:
    """A plugin of pytest: in place of running tests it answers questions."""

    def __init__(self, connections: list[Connection]) -> None:
        self._connections = connections
        self._loaded: swap.Loaded = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        """Before what is there is set aside from the collection of garbage, which lists it."""
        self._loaded = swap.loaded()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        workers = [self._begin(session, connection) for connection in self._connections]
        for connection in self._connections:
            connection.close()
        for worker in workers:
            os.waitpid(worker, 0)
        return True

    def _begin(self, session: pytest.Session, connection: Connection) -> int:
        pid = os.fork()
        if not pid:
            for other in self._connections:
                if other is not connection:  # its end shows only where nobody else has it
                    other.close()
            with contextlib.suppress(EOFError, ConnectionError):  # nobody asks any more
                _Worker(session, self._loaded, connection).serve()
            os._exit(0)
        return pid


class _Worker:
    def __init__(self, session: pytest.Session, loaded: swap.Loaded, connection: Connection) -> None:
        self._session, self._loaded, self._connection = session, loaded, connection
        self._items: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            self._items[item.nodeid].append(item)
            self._items[file_of(item.nodeid)].append(item)

    def serve(self) -> None:
        while True:
            question: Question = self._connection.recv()
            self._connection.send(self._answer(*question))

    def _answer(self, tests: list[str], fault: Fault | None, seconds: float) -> Outcome | None:
        root = f"{self._session.config.rootpath}/"
        names = [test.removeprefix(root) for test in tests]
        if not all(name in self._items for name in names):
            return None
        items = [item for name in names for item in self._items[name]]
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            pid = os.fork()
            if not pid:
                self._run(items, fault, seconds, folder)
            status = _end_of(pid, Watch(pid, seconds))
            outcome = outcome_of(folder, status in (-signal.SIGXCPU, -signal.SIGKILL))
            return None if outcome.code == CANNOT else outcome

    # In a fork of its own.

    def _run(self, items: Sequence[pytest.Item], fault: Fault | None, seconds: float, folder: str) -> NoReturn:
        contain(seconds, folder)
        try:
            forked.settle(self._session, Path(folder))
            if fault is not None and not self._plant(fault, folder):
                conclude(CANNOT, folder)
            failed = self._first_failed(items)
            _note(f"FAILED {failed}" if failed else "", folder)
            conclude(int(bool(failed)), folder)
        except BaseException as error:  # also what ends programs: somebody noticed something
            _note(f"{type(error).__name__}: {error}", folder)
            conclude(1, folder)

    def _plant(self, fault: Fault, folder: str) -> bool:
        pass_on(fault, folder)
        if fault.module not in sys.modules:
            planted.plant(fault.module, fault.file, fault.text)
            return True
        before = Path(fault.file).read_text()
        with contextlib.suppress(swap.Unswappable):
            return swap.swap(self._loaded[fault.file], fault.file, before, fault.text) > 0
        return False

    def _first_failed(self, items: Sequence[pytest.Item]) -> str:
        """The name of the first that fails; the others are not asked then."""
        first = _First()
        self._session.config.pluginmanager.register(first)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if first.failed:
                break
        return first.failed


def _note(text: str, folder: str) -> None:
    """For `outcome_of`: pytest's capture has put back the output of the process that collected."""
    Path(folder, "output").write_text(text)


class _First:
    """The test that failed first."""

    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def _end_of(pid: int, watch: Watch) -> int:
    """Its exit code, or the signal that ended it as a negative number."""
    end = os.pidfd_open(pid)
    try:
        while not select.select([end], [], [], LOOK)[0]:
            if watch.is_over():
                watch.end()
        watch.end()
    finally:
        os.close(end)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
