"""Files of at most 250 lines, folders of at most 15 files, functions of at most 40 lines; `sizes` has the exceptions.

The product alone: generated code is as long as it is, and a docstring counts for a file but not for a function.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.rules.sizes import FILES, FOLDERS, FUNCTIONS, Row

PACKAGES = ("gatewright", "controlplane", "dataplane")
GENERATED = ("gatewright/wire/v1/", "gatewright/wire/external/")
MOST_LINES, MOST_FILES, MOST_LINES_OF_A_FUNCTION = 250, 15, 40
GROWTH = 1.1
"""How much longer than its row a thing may be."""


def texts(root: Path) -> dict[str, str]:
    """The modules with something in them, by their paths."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    found = {path.relative_to(root).as_posix(): path.read_text() for path in paths}
    return {name: text for name, text in found.items() if text and not name.startswith(GENERATED)}


def lines_of_functions(name: str, text: str) -> Iterator[tuple[str, int]]:
    """Each function by the module's name and its own, with those that it is in."""
    waiting: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    while waiting:
        node, above = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                waiting.append((child, above))
                continue
            waiting.append((child, f"{above}{child.name}."))
            if isinstance(child, ast.ClassDef):
                continue
            words = child.body[0] if ast.get_docstring(child) is not None else None
            described = 0 if words is None else (words.end_lineno or 0) - words.lineno + 1
            yield f"{name}:{above}{child.name}", (child.end_lineno or 0) - child.lineno + 1 - described


def sizes(root: Path) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Of all files, folders and functions."""
    found = texts(root)
    functions = (each for name, text in found.items() for each in lines_of_functions(name, text))
    return (
        {name: text.count("\n") for name, text in found.items()},
        dict(Counter(name.rpartition("/")[0] for name in found)),
        dict(functions),
    )


def judged(found: Mapping[str, int], most: int, rows: Mapping[str, Row]) -> list[str]:
    """What is wrong, as whoever reads it has to mend it."""
    wrong = [
        f"{name} has {size}, more than {most}: divide it, or add a row with the reason"
        for name, size in found.items()
        if size > most and name not in rows
    ]
    for name, row in rows.items():
        size = found.get(name, 0)
        if size <= most:
            wrong.append(f"{name} has {size}: delete its row")
        elif size > row.size * GROWTH:
            wrong.append(f"{name} has {size}, more than a tenth above {row.size}: divide it, or say why it is larger")
    return wrong


def test_what_is_longer_than_usual_has_a_reason() -> None:
    files, folders, functions = sizes(ROOT)
    assert judged(files, MOST_LINES, FILES) == []
    assert judged(folders, MOST_FILES, FOLDERS) == []
    assert judged(functions, MOST_LINES_OF_A_FUNCTION, FUNCTIONS) == []


@pytest.mark.parametrize("rows", [FILES, FOLDERS, FUNCTIONS])
def test_a_reason_is_a_sentence(rows: Mapping[str, Row]) -> None:
    assert [name for name, row in rows.items() if len(row.reason.split()) < 3] == []
