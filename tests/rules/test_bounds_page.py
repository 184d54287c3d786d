"""docs/bounds.md says what the constants are: whoever changes one changes a promise, and sees it here."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.rules.bounds import PLANES, page


def test_the_page_is_current(root: Path, seconds_of_an_evaluation: float) -> None:
    file = root / "docs/bounds.md"
    made = page(root)
    if os.environ.get("BOUNDS") == "write":
        file.write_text(made)
    assert file.read_text() == made, "run BOUNDS=write scripts/test tests/rules/test_bounds_page.py"


def test_every_plane_has_some(root: Path) -> None:
    """On the page, which is what the source says (above)."""
    text = (root / "docs/bounds.md").read_text()
    rows = {plane: len(re.findall(rf"^\| `{plane}[.]", text, re.MULTILINE)) for plane in PLANES}
    assert all(number > 15 for number in rows.values()), rows
