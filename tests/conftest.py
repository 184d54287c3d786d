"""What every test may use, and how a run treats what is absent.

`tool` finds a program that a test needs; where it is absent the test is skipped. Under `scripts/test --all`
(GATEWRIGHT_ALL=1) nothing may be skipped: there any skip is a failure. A run ends with one line per reason for a skip.
`refused` compares an answer with the table of errors (tests/rules/claims); a test that claims a row of it and compares
no answer fails. Expressions may take long, but where a test asks for `seconds_of_an_evaluation`.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from gatewright.cel import budget

ROOT = Path(__file__).resolve().parent.parent
ALL = os.environ.get("GATEWRIGHT_ALL") == "1"
OWN_FOLDERS = (os.environ.get("GATEWRIGHT_TOOLS"), f"{ROOT}/.tools/bin", f"{ROOT}/.venv/bin")
TOOL_FOLDERS = (*OWN_FOLDERS, os.environ.get("PATH"), "/usr/sbin")
TOOL_PATH = os.pathsep.join(folder for folder in TOOL_FOLDERS if folder)

# Random tests take the same way each time, so that a red run is about the change that it judges. Other ways are looked
# for on purpose: GATEWRIGHT_SEEDS=random. Deadlines would measure the machine.
hypothesis.settings.register_profile(
    "gatewright", derandomize=os.environ.get("GATEWRIGHT_SEEDS") != "random", deadline=None, print_blob=True
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
Reports = pytest.StashKey[Counter[str]]()
Claims = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[Reports] = Counter()


def _reason(report: Any) -> str:
    """The text after "Skipped: "; pytest reports a skip as (file, line, text)."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _judge(report: Any, config: pytest.Config) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    if ALL:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped, which a full run does not allow: {_reason(report)}"
    else:
        config.stash[Reports][_reason(report)] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> CollectHook:
    report = yield
    _judge(report, collector.config)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason, count in sorted(config.stash[Reports].items()):
        terminalreporter.write_line(f"skipped ({count}): {reason}")
