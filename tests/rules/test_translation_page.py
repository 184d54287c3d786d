"""docs/llm/translation.md says what the tables of translations do."""

from __future__ import annotations

import os
from pathlib import Path

from tests.rules.translation_page import page


def test_the_page_is_current(root: Path) -> None:
    file = root / "docs/llm/translation.md"
    if os.environ.get("TRANSLATION") == "write":
        file.write_text(page())
    assert file.read_text() == page(), "run TRANSLATION=write scripts/test tests/rules/test_translation_page.py"
