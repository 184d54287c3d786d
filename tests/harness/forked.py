"""A pytest plugin: the tests of a run in several processes, all forks of the one that has collected them.

`--forks N`, with `-p tests.harness.forked`. Files are imported and tests are made once, whatever N is; what a process
reports of a test that passed is a few numbers. A process is given the tests of one file at a time, later ones fewer,
so that all end together; it knows the next test before it ends the last one, so fixtures live as long as in one
process. A process that dies fails the test that it ran: another one goes on with the rest.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import pickle
import signal
import struct
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests.harness.preloaded import die_with_parent

ROOT: Final = Path(__file__).resolve().parents[2]
TOGETHER: Final = (ROOT / "tests/cluster",)
"""Folders whose tests share what is dear (an API server): they go to one process."""
LAST: Final = ROOT / "tests/policies"
"""Thousands of short tests: they fill what the long ones leave of the run's end."""
FLUSH_SECONDS: Final = 0.5
_SHARES: Final = 4
"""Of what is left, a process gets at most one of so many parts for each process."""
_NONE: Final = -1
_PLAIN: Final = ("setup", "call", "teardown")

Row = tuple[int, Any]
"""Index of a test, and its reports: thrice (start, stop, duration) when it passed, else as pytest sends them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forks of this process")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    if options.forks < 1 or options.collectonly or not session.items:
        return None
    if session.testsfailed and not options.continue_on_collection_errors:
        return None  # pytest's own loop says so
    _Run(session, min(options.forks, len(session.items))).run()
    return True


# In the process that collected.


def order(paths: Sequence[Path]) -> list[int]:
    """Indexes of tests, given by the paths of their files, in the order in which they are begun."""
    return sorted(range(len(paths)), key=lambda index: paths[index].is_relative_to(LAST))


def take(pending: deque[int], paths: Sequence[Path], processes: int) -> list[int]:
    """The next tests for one process: of one file, or of one folder of `TOGETHER`."""
    if not pending:
        return []
    path = paths[pending[0]]
    group = next((folder for folder in TOGETHER if path.is_relative_to(folder)), None)
    most = len(pending) if group else max(1, len(pending) // (_SHARES * processes))
    taken: list[int] = []
    while pending and len(taken) < most:
        following = paths[pending[0]]
        if not (following.is_relative_to(group) if group else following == path):
            break
        taken.append(pending.popleft())
    return taken


@dataclass(slots=True)
class _Process:
    pid: int
    connection: Connection
    number: int
    given: dict[int, None] = field(default_factory=dict)
    """Tests of which it has not reported yet."""


class _Run:
    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._config, self._count = session, session.config, count
        self._paths = [item.path for item in session.items]
        self._pending = deque(order(self._paths))
        self._processes: dict[Connection, _Process] = {}
        # What each runs just now, and whether all are to end.
        self._running = mmap.mmap(-1, 4 * (count + 1))
        self._folder = _folder(session.config)

    def run(self) -> None:
        try:
            for number in range(self._count):
                _note(self._running, number, _NONE)
                self._begin(number)
            while self._processes:
                for connection in wait(list(self._processes)):
                    assert isinstance(connection, Connection)
                    self._hear(self._processes[connection])
        finally:
            _note(self._running, self._count, 1)
            self._end()
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _begin(self, number: int) -> None:
        ours, theirs = Pipe()
        pid = os.fork()
        if not pid:
            for other in self._processes:
                other.close()
            ours.close()
            _work(_Worker(self._session, theirs, number, self._count, self._running, self._folder))
        theirs.close()
        self._processes[ours] = _Process(pid, ours, number)

    def _hear(self, process: _Process) -> None:
        try:
            wants_more, rows, noted = process.connection.recv()
        except (EOFError, ConnectionError):
            self._gone(process)
            return
        for index, reported in rows:
            process.given.pop(index, None)
            self._report(index, reported)
        for warning in noted:
            self._config.hook.pytest_warning_recorded.call_historic(kwargs=warning)
        if self._session.shouldfail or self._session.shouldstop:
            self._pending.clear()
            _note(self._running, self._count, 1)
        if wants_more:
            taken = take(self._pending, self._paths, self._count)
            process.given.update(dict.fromkeys(taken))
            process.connection.send(taken)

    def _report(self, index: int, reported: Any) -> None:
        item = self._session.items[index]
        for report in _reports(item, reported, self._config):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=_location(item))

    def _gone(self, process: _Process) -> None:
        """It has ended: done, or lost, and then another one takes its place."""
        del self._processes[process.connection]
        process.connection.close()
        status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        running = _noted(self._running, process.number)
        if status == 0 and not process.given:
            return
        if running in process.given:
            del process.given[running]
            self._report(running, [_lost(self._session.items[running], status, self._config)])
        elif status:
            raise RuntimeError(f"a process of tests ended with {status} and ran none")
        if not (self._session.shouldfail or self._session.shouldstop):
            self._pending.extendleft(reversed(process.given))
            _note(self._running, process.number, _NONE)
            self._begin(process.number)

    def _end(self) -> None:
        for process in self._processes.values():  # there are some only when the run breaks off
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)


def _reports(item: pytest.Item, reported: Any, config: pytest.Config) -> Iterator[pytest.TestReport]:
    if isinstance(reported, list):
        for data in reported:
            yield config.hook.pytest_report_from_serializable(config=config, data=data)
        return
    # Of those that passed nobody looks at what is around the test, but who asks for durations.
    is_timed = config.option.durations is not None
    for when, (start, stop, duration) in zip(_PLAIN, reported, strict=True):
        if when == "call" or is_timed:
            yield pytest.TestReport(
                item.nodeid,
                _location(item),
                {},
                "passed",
                None,
                when,
                (),
                duration,
                start,
                stop,  # type: ignore[arg-type]
            )


def _location(item: pytest.Item) -> tuple[str, int | None, str]:
    file, _, name = item.nodeid.partition("::")
    return file, None, name


def _lost(item: pytest.Item, status: int, config: pytest.Config) -> Any:
    end = f"signal {-status}" if status < 0 else f"exit code {status}"
    text = f"the process that ran {item.nodeid} ended by itself: {end}"
    now = time.time()
    report = pytest.TestReport(item.nodeid, _location(item), {}, "failed", text, "call", (), 0.0, now, now)
    return config.hook.pytest_report_to_serializable(config=config, report=report)


def _folder(config: pytest.Config) -> Path | None:
    """In which processes make their temporary folders."""
    factory = getattr(config, "_tmp_path_factory", None)
    return None if factory is None else factory.getbasetemp()


def _note(shared: mmap.mmap, number: int, value: int) -> None:
    struct.pack_into("i", shared, 4 * number, value)


def _noted(shared: mmap.mmap, number: int) -> int:
    found: int = struct.unpack_from("i", shared, 4 * number)[0]
    return found


# In a fork.


@dataclass(slots=True, eq=False)  # plugins are known by identity
class _Worker:
    session: pytest.Session
    connection: Connection
    number: int
    count: int
    running: mmap.mmap
    folder: Path | None
    rows: list[Row] = field(default_factory=list)
    noted: list[dict[str, Any]] = field(default_factory=list)
    reports: list[pytest.TestReport] = field(default_factory=list)
    """Of the test that runs."""
    flushed: float = 0.0

    def run(self) -> None:
        session, items = self.session, self.session.items
        queue = deque(self._more())
        while queue and not (session.shouldfail or session.shouldstop or _noted(self.running, self.count)):
            index = queue.popleft()
            if not queue:
                queue.extend(self._more())
            _note(self.running, self.number, index)
            following = items[queue[0]] if queue else None
            items[index].config.hook.pytest_runtest_protocol(item=items[index], nextitem=following)
            self.rows.append((index, self._reported()))
            if time.monotonic() > self.flushed + FLUSH_SECONDS:
                self.send()

    def _more(self) -> list[int]:
        self.send(wants_more=True)
        found: list[int] = self.connection.recv()
        return found

    def send(self, wants_more: bool = False) -> None:
        self.flushed = time.monotonic()
        self.connection.send((wants_more, self.rows, self.noted))
        self.rows, self.noted = [], []

    def _reported(self) -> Any:
        reports, self.reports = self.reports, []
        if all(map(self._is_plain, reports)) and tuple(report.when for report in reports) == _PLAIN:
            return tuple((report.start, report.stop, report.duration) for report in reports)
        self.flushed = 0.0  # at once
        hook, config = self.session.config.hook, self.session.config
        return [hook.pytest_report_to_serializable(config=config, report=report) for report in reports]

    def _is_plain(self, report: pytest.TestReport) -> bool:
        """Passed, and there is nothing to show. What it printed is shown for those who ask (`-rP`)."""
        is_shown = bool(report.sections) and not {"P", "A"}.isdisjoint(self.session.config.option.reportchars)
        return report.passed and not hasattr(report, "wasxfail") and not report.user_properties and not is_shown

    # As a plugin of pytest.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        text = warnings.WarningMessage(
            str(warning_message.message), warning_message.category, warning_message.filename, warning_message.lineno
        )
        with contextlib.suppress(pickle.PicklingError, AttributeError):  # a class of one test's own
            pickle.dumps(text)
            self.noted.append({"warning_message": text, "when": when, "nodeid": nodeid, "location": location})


def _work(worker: _Worker) -> NoReturn:
    code = 1
    try:
        settle(worker.session, worker.folder)
        worker.session.config.pluginmanager.register(worker, "forked-worker")
        worker.run()
        worker.session.config.hook.pytest_sessionfinish(session=worker.session, exitstatus=worker.session.exitstatus)
        _note(worker.running, worker.number, _NONE)
        worker.send()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def settle(session: pytest.Session, folder: Path | None) -> None:
    """In a fork: what several processes must not have in common. `folder`: where it makes its temporary ones."""
    die_with_parent()
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]  # CPython 3.11 keeps that of the parent
    plugins = session.config.pluginmanager
    for name in ("terminalreporter", "terminalprogress"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    capture = plugins.get_plugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    if folder is not None:
        own = folder / f"fork{os.getpid()}"
        own.mkdir(mode=0o700)
        session.config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]
