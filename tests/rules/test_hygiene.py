"""Nothing is committed that does not belong in the repository, and the check that says so finds what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def hygiene(root: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "scripts/hygiene"), *names], capture_output=True, text=True, check=False
    )


def test_tree_is_clean(root: Path) -> None:
    run = hygiene(root)
    assert (run.returncode, run.stdout) == (0, "")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("see /ho" + "me/someone/notes", "a path of one machine"),
        ("open('/wo" + "rk/tree')", "a path of one machine"),
        ("index = https://pyp" + "i.org/simple", "a host of a package registry"),
        ("# TO" + "DO: the rest", "a promise in place of work"),
        ("# FIX" + "ME", "a promise in place of work"),
    ],
)
def test_sin_is_named(root: Path, tmp_path: Path, line: str, what: str) -> None:
    file = tmp_path / "file.py"
    file.write_text(f"fine\n{line}\n")
    run = hygiene(root, str(file))
    assert run.returncode == 1
    assert run.stdout.startswith(f"{file}:2: {what}: ")
