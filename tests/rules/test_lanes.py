"""`scripts/test` runs what it says, judges what lanes cost, and closes with one line for all of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.harness import lane_files, lanes
from tests.harness.lanes import MEMORY, PROCESS, SLOW, Outcome

pytestmark = pytest.mark.process  # it runs pytest


def outcome(cpu: float = 1.0, code: int = 0, pace: float = 1.0, **counts: int) -> Outcome:
    return Outcome(MEMORY, Counter(counts), code, 2.0, cpu, pace)


def test_every_test_is_in_one_lane() -> None:
    """The marks of the lanes divide all combinations of the two markers between them."""
    for process in (False, True):
        for slow in (False, True):
            names = {"process": process, "slow": slow}
            assert [eval(lane.marks, {}, names) for lane in (MEMORY, PROCESS, SLOW)].count(True) == 1


def test_a_lane_reads_no_file_that_has_none_of_its_tests(root: Path, tmp_path: Path) -> None:
    assert set(lane_files.FILES) == {lane.marks for lane in (MEMORY, PROCESS, SLOW)}
    marked = {"fast": "", "process": "@pytest.mark.process", "slow": "pytestmark = pytest.mark.slow"}
    for name, text in marked.items():
        (tmp_path / f"test_{name}.py").write_text(f"{text}\n# mark.processes, slow\n")
    read = {
        lane.name: [name for name in marked if lane_files.FILES[lane.marks](tmp_path / f"test_{name}.py")]
        for lane in (MEMORY, PROCESS, SLOW)
    }
    assert read == {"memory": [*marked], "process": ["process"], "slow": ["slow"]}
    kills = root / "tests/faults/test_kills.py"
    assert [lane_files.FILES[lane.marks](kills) for lane in (MEMORY, PROCESS, SLOW)] == [False, True, False]
    assert lane_files.may_be_slow(root / "tests/policies/test_cors.py")


@pytest.mark.parametrize("name", ["process", "slow"])
def test_a_file_that_does_not_say_what_its_tests_are_ends_the_run(name: str, tmp_path: Path) -> None:
    """It would be left out of its lane, and nobody would miss it."""
    file = tmp_path / "test_it.py"
    file.write_text("from somewhere import mark_of_mine\n")
    item = SimpleNamespace(path=file, nodeid="test_it", get_closest_marker=lambda asked: asked == name or None)
    with pytest.raises(pytest.UsageError, match=f"test_it is marked {name}, which the text of its file does not say"):
        lane_files.pytest_collection_modifyitems([cast(pytest.Item, item)])


def test_paths_are_run_as_they_are() -> None:
    assert lanes.parse(["tests/rules/test_lanes.py::test_paths_are_run_as_they_are"], {}).paths
    assert not lanes.parse(["-k", "no_such_path"], {}).paths


def failing(*bad: str, code: int = lanes.TESTS_FAILED) -> Outcome:
    found = outcome(code=code, passed=5, failed=len(bad))
    found.bad = list(bad)
    return found


def test_a_few_tests_that_fail_are_asked_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []
    found = [failing("a::one", "a::two"), failing(), failing("b::three")]
    passed = lanes.ask_again(found, lambda test: asked.append(test) is None and test != "b::three")
    assert passed == ["a::one", "a::two"]
    assert asked == ["a::one", "a::two", "b::three"]
    assert [(each.code, +each.counts) for each in found[::2]] == [(0, {"passed": 7}), (1, {"passed": 5, "failed": 1})]
    assert "unsteady: a::two failed beside other tests, and passed by itself" in capsys.readouterr().out


def test_a_run_that_broke_off_stays_broken() -> None:
    """pytest's other exit codes: interrupted, an error of its own, bad usage."""
    found = [failing("a::one", code=2)]
    assert lanes.ask_again(found, lambda _: True) == ["a::one"]
    assert found[0].code == 2


@pytest.mark.parametrize(
    ("found", "is_ci", "code"),
    [
        (outcome(), True, 0),
        (outcome(code=1), False, 1),
        (outcome(code=lanes.NO_TESTS), True, 0),
        (outcome(cpu=MEMORY.budget + 1), False, 0),
        (outcome(cpu=MEMORY.budget + 1), True, 1),
        (outcome(cpu=MEMORY.budget * 1.5, pace=1.6), True, 0),
        (outcome(cpu=MEMORY.budget * 1.5, pace=1.4), True, 1),
    ],
)
def test_only_ci_fails_for_a_budget_and_a_slow_machine_has_more(found: Outcome, is_ci: bool, code: int) -> None:
    assert lanes.judged(found, is_ci) == code


SUITE = """
import subprocess, sys, time
import pytest

def test_passes(): pass

def test_costs():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.6: pass"], check=True)

@pytest.mark.skip(reason="bad weather")
def test_skipped(): pass
"""


def test_a_lane_counts_tests_skips_and_the_cpu_of_children(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    monkeypatch.setenv("PYTHONPATH", str(root))
    arguments = ["-q", "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]
    code = f"""
import os, sys
from tests.harness import lanes
os.environ["GATEWRIGHT_SEED"] = "1"
lane = lanes.Lane("tiny", "not slow", 0.5, 10)
(found,) = lanes._round([lane], {arguments!r})
print(dict(found.counts), found.code, found.cpu > 0.6)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1]
    assert last.endswith("0 True"), done.stdout + done.stderr
    assert "'passed': 2" in last
    assert "'skipped': 1" in last
