"""docs/specification has every row of the API, with a test that exists; the pages are what the rows give."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from tests.rules.walk.fields import rows
from tests.rules.walk.page import all_pages
from tests.rules.walk.places import page_of
from tests.rules.walk.table import is_there, notes, proofs


def test_every_field_and_value_has_a_row() -> None:
    lacking = sorted(row.key for row in rows() if row.key not in proofs())
    lines = [f"{key}\\tFILE::TEST" for key in lacking]
    assert not lacking, "\n".join(("write into tests/rules/walk/fields.tsv, of FILE below tests/:", *lines))


def test_every_row_is_of_a_field() -> None:
    strange = sorted(proofs().keys() - {row.key for row in rows()})
    assert not strange, f"take out of tests/rules/walk/fields.tsv what is no field or value: {', '.join(strange)}"


def test_rows_are_sorted() -> None:
    keys = list(proofs())
    late = [key for before, key in pairwise(keys) if key < before]
    assert not late, f"in tests/rules/walk/fields.tsv these belong further up: {', '.join(late)}"


def test_every_test_exists() -> None:
    named = {proof.test for proof in proofs().values()} | {note.proof.test for note in notes()}
    unknown = sorted(test for test in named if not is_there(test))
    assert not unknown, f"tables in tests/rules/walk name tests that do not exist: {', '.join(unknown)}"


def test_no_note_is_there_twice() -> None:
    found = [(note.section, note.row) for note in notes()]
    assert len(found) == len(set(found))


def test_every_page_exists(root: Path) -> None:
    pages = {note.page for note in notes()} | {page_of(row.kind, row.path) for row in rows()}
    assert sorted(page for page in pages if not (root / "docs" / page).is_file()) == []


@pytest.mark.parametrize("name", ["README.md", "behaviour.md"])
def test_a_page_is_among_them(name: str) -> None:
    assert name in all_pages()


def test_the_pages_are_current(root: Path) -> None:
    folder, made = root / "docs/specification", all_pages()
    if os.environ.get("SPECIFICATION") == "write":
        for name, text in made.items():
            (folder / name).write_text(text)
    there = {file.name: file.read_text() for file in folder.iterdir()}
    stale = sorted(name for name in there.keys() | made.keys() if there.get(name) != made.get(name))
    assert not stale, f"{stale}: run SPECIFICATION=write scripts/test tests/rules/test_specification_pages.py"
