"""The walk's own data: for each row of the API the test that fails when the row does nothing, and what differs.

`fields.tsv`: row, test, deviation; the rows are those of `fields.rows()`. `notes.tsv`: section, row in our own words,
page, test, deviation. A test is `FILE::NAME` below tests/. Lines are sorted, so that two hands rarely meet.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TESTS: Final = HERE.parents[1]


@dataclass(frozen=True, slots=True)
class Proof:
    """The test that fails without a row, and how the row acts otherwise than it is specified."""

    test: str
    deviation: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A row that is no field: how something behaves, an error, a limit, a warning."""

    section: str
    row: str
    page: str
    proof: Proof


def _lines(name: str, cells: int) -> Iterator[list[str]]:
    """Raises ValueError for a line with other than so many cells; the last one may be left out."""
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        found = line.split("\t")
        if len(found) not in (cells - 1, cells):
            raise ValueError(f"{name}:{number} has {len(found)} cells of {cells}")
        yield found


@cache
def proofs() -> dict[str, Proof]:
    """Of fields and values, by key. Raises ValueError for a row that stands there twice."""
    found: dict[str, Proof] = {}
    for key, *rest in _lines("fields.tsv", 3):
        if key in found:
            raise ValueError(f"fields.tsv has {key} twice")
        found[key] = Proof(*rest)
    return found


@cache
def notes() -> tuple[Note, ...]:
    """All rows that are no fields."""
    return tuple(Note(section, row, page, Proof(*rest)) for section, row, page, *rest in _lines("notes.tsv", 5))


def is_there(test: str) -> bool:
    """Whether a test exists."""
    file, _, name = test.partition("::")
    return name in _tests(file)


@cache
def _tests(file: str) -> frozenset[str]:
    path = TESTS / file
    if not path.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions))
