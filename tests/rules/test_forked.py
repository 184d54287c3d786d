"""The tests of a lane run in forks of one process: all of them, each once, and none is lost with a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path

import pytest

from tests.harness import forked

pytestmark = pytest.mark.process  # it runs pytest

ONE = Path("/tests/test_one.py")
TWO = Path("/tests/test_two.py")


class TestWhatAProcessIsGiven:
    def test_is_of_one_file(self) -> None:
        pending = deque(range(5))
        paths = [ONE, ONE, TWO, TWO, TWO]
        pending.extend(range(5, 100))
        paths += [Path(f"/tests/test_{number}.py") for number in range(5, 100)]
        assert [forked.take(pending, paths, 2) for _ in range(3)] == [[0, 1], [2, 3, 4], [5]]

    def test_is_less_the_less_is_left(self) -> None:
        pending, paths = deque(range(80)), [ONE] * 80
        sizes = []
        while taken := forked.take(pending, paths, 2):
            sizes.append(len(taken))
        assert sizes[:3] == [10, 8, 7]
        assert sizes[-8:] == [1] * 8
        assert sum(sizes) == 80
        assert forked.take(pending, paths, 2) == []

    def test_is_a_whole_folder_where_its_tests_share_a_server(self) -> None:
        folder = forked.TOGETHER[0]
        paths = [folder / "test_a.py", folder / "test_b.py", folder / "test_b.py", ONE]
        assert forked.take(deque(range(4)), paths, 2) == [0, 1, 2]

    def test_short_tests_come_last(self) -> None:
        assert forked.order([ONE, forked.LAST / "test_cors.py", TWO]) == [0, 2, 1]


SUITE = """
import os, signal, threading
from pathlib import Path
import pytest

HERE = Path(__file__).parent

def noted(name):
    with (HERE / "ran").open("a") as file:
        file.write(f"{name} {os.getpid()}\\n")

@pytest.fixture(scope="session", autouse=True)
def whole_run():
    yield
    noted("end")

@pytest.mark.parametrize("number", range(20))
def test_passes(number, tmp_path):
    noted(number)
    assert threading.main_thread().native_id == os.getpid()
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").touch()

def test_fails():
    print("what it printed")
    assert 1 == 2

@pytest.mark.skip(reason="bad weather")
def test_skipped(): pass

@pytest.mark.xfail(strict=True)
def test_expected_to_fail(): assert False

@pytest.fixture
def broken():
    yield
    raise ValueError("at its end")

def test_that_ends_badly(broken): pass
"""
DEATHS = """
def test_is_killed():
    noted("killed")
    os.kill(os.getpid(), signal.SIGKILL)

def test_leaves():
    noted("left")
    os._exit(0)

@pytest.mark.parametrize("number", range(20, 40))
def test_behind_it(number): noted(number)
"""


def run(root: Path, folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.harness.forked"]
    where = ["--forks", "2", "--rootdir", str(folder), "-c", str(folder / "pytest.ini"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [*command, *where, *words], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def ran(folder: Path) -> tuple[Counter[str], set[str]]:
    """What ran how often, and in which processes."""
    lines = [line.split() for line in (folder / "ran").read_text().splitlines()]
    return Counter(name for name, _ in lines), {pid for _, pid in lines}


def test_all_run_once_and_what_becomes_of_them_is_told(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, SUITE, "-rs")
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert re.match(r"1 failed, 21 passed, 1 skipped, 1 xfailed, 1 error in ", last), done.stdout + done.stderr
    for shown in ("what it printed", "assert 1 == 2", "ValueError: at its end", "bad weather", "[100%]"):
        assert shown in done.stdout
    counts, processes = ran(tmp_path)
    assert counts == {**{str(number): 1 for number in range(20)}, "end": 2}
    assert len(processes) == 2


def test_a_process_that_dies_fails_its_test_and_no_other(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, SUITE + DEATHS)
    last = done.stdout.splitlines()[-1]
    assert re.match(r"3 failed, 41 passed, 1 skipped, 1 xfailed, 1 error in ", last), done.stdout + done.stderr
    assert "the process that ran test_suite.py::test_is_killed ended by itself: signal 9" in done.stdout
    assert "the process that ran test_suite.py::test_leaves ended by itself: exit code 0" in done.stdout
    counts = ran(tmp_path)[0]
    assert {name for name in counts if name.isdigit()} == {str(number) for number in range(40)}
    assert counts["killed"] == counts["left"] == 1


def test_the_first_failure_may_end_the_run(root: Path, tmp_path: Path) -> None:
    later = "\n@pytest.mark.parametrize('number', range(900))\ndef test_later(number): noted(f'later {number}')\n"
    done = run(root, tmp_path, SUITE.replace("{os.getpid()}", "0") + later, "-x")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout
    assert (tmp_path / "ran").read_text().count("later") < 900


@pytest.mark.parametrize(("words", "shown"), [([], False), (["--durations=0", "--durations-min=0"], True)])
def test_times_of_what_is_around_a_test_are_told_to_who_asks(
    root: Path, tmp_path: Path, words: list[str], shown: bool
) -> None:
    done = run(root, tmp_path, "def test_it(tmp_path): pass\n", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert bool(re.search(r"s setup +test_suite.py::test_it", done.stdout)) == shown


def test_a_file_that_cannot_be_imported_ends_the_run(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "import no_such_module\n")
    assert done.returncode == 2
    assert "1 error during collection" in done.stdout
