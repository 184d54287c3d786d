"""docs/intermediary.md: each test that it names exists, and each duty has one or says why it does not apply."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.raw.corpus import CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/intermediary.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| Section ", "| --- "))
]
NAMED = [name for row in ROWS for name in re.findall(r"`((?:raw: |tests/)[^`]+)`", row[-1])]
CORPUS = frozenset(case.name for case in CASES)


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_bytes())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def exists(name: str) -> bool:
    if name.startswith("raw: "):
        return name.removeprefix("raw: ") in CORPUS
    file, _, function = name.partition("::")
    path = ROOT / file
    return path.is_file() and (not function or function in functions(path))


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_a_named_test_exists(name: str) -> None:
    assert exists(name)


def test_each_duty_is_shown_or_does_not_apply() -> None:
    assert len(ROWS) > 50 and all(len(row) == 4 for row in ROWS)
    without = [row for row in ROWS if "`raw: " not in row[3] and "`tests/" not in row[3]]
    assert [row for row in without if row[3] != "-" or not row[2].startswith("not applicable: ")] == []
