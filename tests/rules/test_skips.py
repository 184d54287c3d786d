"""A full run allows no skip; an ordinary run says once for each reason what it skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process  # it runs pytest

SETTINGS = "[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n    needs\n"
SUITE = """
import pytest

@pytest.mark.needs("no-such-tool")
def test_marked(): pass

@pytest.mark.parametrize("n", [1, 2])
def test_asks(tool, n): tool("no-such-tool")

@pytest.mark.skip(reason="bad weather")
def test_skipped(): pass

@pytest.mark.xfail(strict=True)
def test_expected_to_fail(): assert False

def test_finds(tool): assert tool("some-tool").endswith("/some-tool")
"""


@pytest.fixture
def run(root: Path, tmp_path: Path) -> list[str]:
    """A pytest command for SUITE under this repository's conftest, in a folder of its own."""
    shutil.copy(root / "tests/conftest.py", tmp_path)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/some-tool").touch(0o755)
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]


def outcome(run: list[str], tmp_path: Path, full: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GATEWRIGHT_ALL": full, "GATEWRIGHT_TOOLS": str(tmp_path / "bin")}
    return subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_ordinary_run_names_each_reason_once(run: list[str], tmp_path: Path) -> None:
    done = outcome(run, tmp_path, "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("skipped (")] == [
        "skipped (1): bad weather",
        "skipped (3): needs no-such-tool (scripts/tools installs it)",
    ]
    assert "1 passed, 4 skipped, 1 xfailed" in done.stdout.splitlines()[-1]


def test_full_run_fails_on_every_skip(run: list[str], tmp_path: Path) -> None:
    done = outcome(run, tmp_path, "1")
    assert done.returncode == 1
    assert done.stdout.count("skipped, which a full run does not allow: ") >= 4
    assert "2 failed, 1 passed, 1 xfailed, 2 errors" in done.stdout.splitlines()[-1]


def test_full_run_fails_on_a_skipped_module(run: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text("import pytest\npytest.skip('bad weather', allow_module_level=True)\n")
    assert outcome(run, tmp_path, "0").stdout.splitlines()[-2:][0] == "skipped (1): bad weather"
    assert outcome(run, tmp_path, "1").returncode != 0
