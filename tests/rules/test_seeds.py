"""One seed for a run: new each time, printed, replayed by one option, the same for all processes of the run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests.harness import seeds

pytestmark = pytest.mark.process  # it runs pytest

SETTINGS = "[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n    needs\naddopts = -q\n"
SUITE = """
import random
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st
from tests.harness.seeds import rolls, times

DRAWN = []
ROUNDS = range(times(2))

def note(name, *drawn):
    Path(name).write_text(repr(drawn))

@pytest.mark.parametrize("n", [1, 2])
def test_own(n, dice):
    note(f"own-{n}", dice.random(), rolls("a").random(), rolls("b").random(), random.random())

@settings(max_examples=20)
@given(st.integers(0, 2**60))
def test_drawn(number):
    DRAWN.append(number)

def test_after():
    note("drawn", *DRAWN)
    note("rounds", *ROUNDS)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Run:
    """`run(*arguments, **environment)`: SUITE under this repository's conftest, in a folder of its own."""
    shutil.copy(root / "tests/conftest.py", tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    clean = {name: value for name, value in os.environ.items() if name not in (seeds.SEED, seeds.EXAMPLES)}

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), *arguments]
        return subprocess.run(
            command, env={**clean, **environment}, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def drawn(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in ("own-1", "own-2", "drawn")}


def test_a_run_has_a_new_seed_and_a_run_with_it_draws_the_same(run: Run, tmp_path: Path) -> None:
    first = run()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "replay" not in first.stdout
    before = drawn(tmp_path)
    assert len(set(before["own-1"].split(", "))) == 4 and before["own-1"] != before["own-2"]
    (seed,) = re.findall(r"^seed: (\d+)$", first.stdout, re.MULTILINE)
    assert f"seed: {seed}\n" in run("--seed", seed).stdout
    assert drawn(tmp_path) == before
    workers = run("-p", "tests.harness.forked", "--forks", "1", **{seeds.SEED: seed})
    assert workers.stdout.count(f"seed: {seed}\n") == 1, workers.stdout
    assert drawn(tmp_path) == before
    longer = run(**{seeds.EXAMPLES: "3"})
    assert re.search(r"^seed: \d+, 3 times the examples$", longer.stdout, re.MULTILINE)
    assert (tmp_path / "rounds").read_text() == "(0, 1, 2, 3, 4, 5)"
    after = drawn(tmp_path)
    assert (before["drawn"].count(","), after["drawn"].count(",")) == (19, 59)
    assert all(after[name] != before[name] for name in after)


def test_what_failed_is_told_with_the_command_that_replays_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text("".join(f"def test_{n}(): assert 0\n" for n in range(20)))
    lines = run("--seed", "7", "test_fails.py").stdout.splitlines()
    assert "replay with: scripts/test --seed 7 'test_fails.py::test_0'" in lines
    assert sum(line.startswith("replay with: ") for line in lines) == seeds.MOST_COMMANDS
    assert "seed of this run and of 10 more failures: 7" in lines


FOREIGN_BUGS = {"test_the_same_as_cel_cpp", "test_the_same_as_cel_python"}
"""Each new seed finds another bug of a foreign library: random in long runs only (tests/oracles)."""


def test_no_test_is_the_same_each_time_by_its_own_settings(request: pytest.FixtureRequest) -> None:
    """`derandomize` and a seed at a test would freeze it again."""
    tests = {item.function for item in request.session.items if is_hypothesis_test(getattr(item, "function", None))}
    frozen = [
        test.__qualname__
        for test in tests
        if test._hypothesis_internal_use_settings.derandomize or test._hypothesis_internal_use_seed is not None
    ]
    assert [name for name in frozen if name.rpartition(".")[2] not in FOREIGN_BUGS] == []
