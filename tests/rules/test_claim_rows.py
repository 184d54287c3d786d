"""The rows of `claims` are those of the specification's tables, where its text is at hand."""

from __future__ import annotations

from collections.abc import Iterator

from tests.rules.claims import ERRORS, LIMITS
from tests.rules.verdicts import specification

__test__ = specification.is_there()
"""pytest collects nothing here where the text is absent: a skip would be a failure of a full run."""


def rows(title: str) -> Iterator[list[str]]:
    """Cells of the body lines of the table below a heading of the specification's second part."""
    inside = body = False
    for line in specification.lines("2-policies.md"):
        if line.startswith("## "):
            inside, body = line == f"## {title}", False
        elif inside and line.startswith("|---"):
            body = True
        elif body and line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_errors() -> None:
    assert [cells[0] for cells in rows("Errors")] == list(ERRORS)


def test_limits() -> None:
    assert [cells[0] for cells in rows("Limits")] == list(LIMITS)


def test_texts_that_the_specification_gives() -> None:
    """Status and text of a row are the table's, where it names them."""
    for row, *said in rows("Errors"):
        for case in ERRORS[row].values():
            words = " ".join(said)
            if "HTTP 4" in words:
                assert f"HTTP {case.status}" in words, row
            if "body text" in words:
                assert f"body text `{case.body.decode()}`" in words, row
