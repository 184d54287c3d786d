"""What every test may use, and how a run treats what is absent.

`tool` finds a program that a test needs; where it is absent the test is skipped. Under `scripts/test --all`
(GATEWRIGHT_ALL=1) nothing may be skipped: there any skip is a failure. A run ends with one line per reason for a skip.
`refused` compares an answer with the table of errors (tests/rules/claims); a test that claims a row of it and compares
no answer fails. Expressions may take long, but where a test asks for `seconds_of_an_evaluation`.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from gatewright.cel import budget
from tests.harness.processes import Notices

ROOT = Path(__file__).resolve().parent.parent
ALL = os.environ.get("GATEWRIGHT_ALL") == "1"
OWN_FOLDERS = (os.environ.get("GATEWRIGHT_TOOLS"), f"{ROOT}/.tools/bin", f"{ROOT}/.venv/bin")
TOOL_FOLDERS = (*OWN_FOLDERS, os.environ.get("PATH"), "/usr/sbin")
TOOL_PATH = os.pathsep.join(folder for folder in TOOL_FOLDERS if folder)

pytest_plugins = ("tests.harness.seeds", "tests.harness.lane_files", "tests.fakes.waiting")

# Deadlines, and the complaint that examples are slow to draw, would measure the machine.
hypothesis.settings.register_profile(
    "gatewright",
    derandomize=False,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("gatewright")


def find_tool(name: str) -> str | None:
    """Path of a program, or None: looked for in $GATEWRIGHT_TOOLS, .tools/bin, .venv/bin and PATH, in this order."""
    return shutil.which(name, path=TOOL_PATH)


def need_tool(name: str) -> str:
    """Path of a program; where it is absent the running test is skipped (under --all: fails)."""
    path = find_tool(name)
    if path is None:
        pytest.skip(f"needs {name} (scripts/tools installs it)")
    return path


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """`tool("grpcurl")`: the path of a program, or a skip."""
    return need_tool


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


# A machine that is busy, or collects the garbage of thousands of tests, makes no expression wrong; steps and bytes are
# counted as ever.
SECONDS = budget.MAX_SECONDS
budget.MAX_SECONDS = 60.0


@pytest.fixture
def seconds_of_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> float:
    """The product's own limit, in force for this test."""
    monkeypatch.setattr(budget, "MAX_SECONDS", SECONDS)
    return SECONDS


@pytest.fixture
def notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Notices, None, None]:
    """What commands that run in this process say of themselves, as to a service manager."""
    heard = Notices(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", heard.address)
    yield heard
    heard.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            need_tool(name)


# Claims (tests/rules/claims).


def _refused(item: pytest.Item) -> Any:
    """The comparer of a test: one for each. Imported late: only tests that claim something need it."""
    from tests.rules.claims import Refused

    if Claims not in item.stash:
        item.stash[Claims] = Refused(claim for marker in item.iter_markers("claims") for claim in marker.args)
    return item.stash[Claims]


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Any:
    """`refused(answer)`: asserts that an answer is what the row says that the test claims."""
    return _refused(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if item.get_closest_marker("claims") is not None:
        lacking = _refused(item).lacking()
        assert not lacking, f"claimed, but no answer was compared by `refused`: {lacking}"


# Skips: failures under --all, else counted by reason.

CollectHook = Generator[None, pytest.CollectReport, pytest.CollectReport]
Reports = pytest.StashKey[dict[str, str]]()
"""Test or module -> why it was skipped. Several processes of one run collect the same modules."""
Claims = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[Reports] = {}
    config.pluginmanager.register(Skips(config.stash[Reports]), "skips")
    config.pluginmanager.register(Frozen(), "frozen")


def _reason(report: Any) -> str:
    """The text after "Skipped: "; pytest reports a skip as (file, line, text)."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _judge(report: Any) -> None:
    if ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped, which a full run does not allow: {_reason(report)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> CollectHook:
    report = yield
    _judge(report)
    return report


class Skips:
    """Counts skips where reports of all test processes come together."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self._reasons = reasons

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._count(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._count(report)

    def _count(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._reasons[report.nodeid] = _reason(report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, count in sorted(Counter(config.stash[Reports].values()).items()):
        terminalreporter.write_line(f"skipped ({count}): {reason}")


# Garbage: ten thousand tests and what they import stay for ever, and a collection that looks at them takes a second.


class Frozen:
    """Sets aside what there is when the first test begins; and again behind a test that undid it, as parts of the
    product do at their end."""

    def __init__(self) -> None:
        self._unfreeze = gc.unfreeze
        self._is_undone = False

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()
        gc.unfreeze = self._undo

    def pytest_runtest_logfinish(self) -> None:
        if self._is_undone:
            self._is_undone = False
            gc.collect(1)
            gc.freeze()

    def pytest_unconfigure(self) -> None:
        gc.unfreeze = self._unfreeze

    def _undo(self) -> None:
        self._is_undone = True
        self._unfreeze()
