"""The table of docs/security.md on who can do what to whom: a row for each pair, and tests that exist."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

WHO = ("client", "origin", "tenant", "proxy", "replica")
WHAT = ("reads", "acts as", "delays", "exhausts")
ELSEWHERE = "[hostile streams](hostile-streams.md)"
"""The page whose rows have a test each (tests/hostile)."""


class Row(NamedTuple):
    who: str
    what: str
    bounds: str
    shown: str


def rows(text: str) -> list[Row]:
    """Of the table in the section."""
    _, _, section = text.partition("## Who can do what to whom\n")
    section, _, _ = section.partition("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


@cache
def names() -> frozenset[str]:
    """Of all tests."""
    found = (re.findall(r"def (test_\w+)", file.read_text()) for file in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(itertools.chain.from_iterable(found))


def unknown(row: Row) -> list[str]:
    return [name for name in re.findall(r"`(\w+)`", row.shown) if name not in names()]


PAGE = rows((ROOT / "docs" / "security.md").read_text())


def test_there_is_a_row_for_each_pair() -> None:
    assert [(row.who, row.what) for row in PAGE] == [*itertools.product(WHO, WHAT)]


@pytest.mark.parametrize("row", PAGE, ids=lambda row: f"{row.who} {row.what}")
def test_each_row_says_what_bounds_it_and_names_tests_that_exist(row: Row) -> None:
    assert row.bounds
    assert re.search(r"`test_\w+`", row.shown) or ELSEWHERE in row.shown
    assert unknown(row) == []
