"""The scripts can be run, and their shell is sound."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path for path in (*ROOT.glob("scripts/*"), ROOT / ".ci/run") if path.is_file())
SHELL = [path for path in SCRIPTS if path.read_text().startswith("#!/usr/bin/env bash\n")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_is_executable_and_says_what_it_does(script: Path) -> None:
    shebang, first = script.read_text().splitlines()[:2]
    assert shebang.startswith("#!/usr/bin/env ")
    assert first.startswith(("# ", '"""'))
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("script", SHELL, ids=lambda path: path.name)
def test_shell_parses(script: Path) -> None:
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False).stderr == ""
