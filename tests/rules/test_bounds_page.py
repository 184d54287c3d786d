"""docs/bounds.md has the values of the code: a changed limit that users meet is a changed promise, and is seen here."""

from __future__ import annotations

import os
from pathlib import Path

from tests.rules.bounds import BOUNDS, page


def test_the_page_is_current(root: Path, seconds_of_an_evaluation: float) -> None:
    file = root / "docs/bounds.md"
    if os.environ.get("BOUNDS") == "write":
        file.write_text(page())
    assert file.read_text() == page(), "run BOUNDS=write scripts/test tests/rules/test_bounds_page.py"


def test_no_limit_has_two_rows() -> None:
    rows = [(row.module, row.name) for rows in BOUNDS.values() for row in rows]
    assert len(rows) == len(set(rows))
