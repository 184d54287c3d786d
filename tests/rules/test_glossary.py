"""docs/glossary.md: few words, and each is to be found where the page says."""

from __future__ import annotations

import re
from pathlib import Path

ROWS = re.compile(r"^\| (?P<words>[^|]+) \| [^|]+ \| (?P<places>`[^|]+`) \|$", re.MULTILINE)


def test_words_that_are_no_standard_terms_are_few_and_used(root: Path) -> None:
    rows = ROWS.findall((root / "docs/glossary.md").read_text())
    assert 10 < len(rows) <= 20
    for words, places in rows:
        named = [root / place for place in re.findall("`([^`]+)`", places)]
        files = [file for place in named for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
        assert files, places
        text = "".join(file.read_text() for file in files).lower()
        for word in words.replace("`", "").replace("…", "").split(", "):
            assert word.lower().replace(" ", "_") in text or word.lower() in text, f"{word} in {places}"
