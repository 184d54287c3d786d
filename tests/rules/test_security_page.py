"""The table of docs/security.md on who can do what to whom: a row for each pair, and tests that exist."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import NamedTuple

import pytest

from gatewright.regexes import prices
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


def test_there_is_a_row_for_each_pair_and_all_of_a_pair_stand_together() -> None:
    pairs = itertools.groupby((row.who, row.what) for row in PAGE)
    assert [pair for pair, _ in pairs] == [*itertools.product(WHO, WHAT)]


@pytest.mark.parametrize("who", ["client", "tenant"])
def test_what_regular_expressions_may_take_has_a_row(who: str) -> None:
    """Who brings the values, and who writes the patterns; with the bounds that the product has."""
    (row,) = (row for row in PAGE if row.who == who and "regular expressions" in row.bounds)
    assert f"{prices.MOST // 1_000_000} ms" in row.bounds
    if who == "tenant":
        assert f"for {prices.SHORT} bytes" in row.bounds


@pytest.mark.parametrize("row", PAGE, ids=lambda row: f"{row.who} {row.what} {row.bounds[:20]}")
def test_each_row_says_what_bounds_it_and_names_tests_that_exist(row: Row) -> None:
    assert row.bounds
    assert re.search(r"`test_\w+`", row.shown) or ELSEWHERE in row.shown
    assert unknown(row) == []
