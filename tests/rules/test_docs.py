"""What the documents name exists: files of the repository, and targets of links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHERE = ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
PAGES = sorted(page for place in WHERE for page in ROOT.glob(place))

PLACES = "gatewright|controlplane|dataplane|proto|tests|docs|scripts|benchmarks|examples|requirements"
FILE = re.compile(rf"`((?:{PLACES}|\.ci)/[\w./-]*\w/?)`")
"""A path in backquotes that starts at a folder of ours; one with a placeholder (`<policy>`, `*`) is not one."""

MADE = {"benchmarks/out/"}
"""Folders that a run makes and git ignores."""

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def missing(page: Path) -> list[str]:
    text = page.read_text()
    names = [name for name in FILE.findall(text) if name not in MADE]
    files = [name for name in names if not (ROOT / name).exists() and not (ROOT / f"{name}.py").is_file()]
    return files + [link for link in LINK.findall(text) if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    assert missing(page) == []


INDEXES = (
    "docs/README.md",
    "docs/policies.md",
    "docs/mcp/README.md",
    "docs/llm/README.md",
    "docs/specification/README.md",
)
"""Pages that list others; those after the first are reached from it, and it from the README."""


def linked(index: Path) -> set[Path]:
    return {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}


def test_every_page_is_reached_from_the_map() -> None:
    reached = {ROOT / INDEXES[0], *(page for index in INDEXES for page in linked(ROOT / index))}
    assert [str(page) for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in reached] == []
    assert {ROOT / index for index in INDEXES[1:]} <= linked(ROOT / INDEXES[0])
    assert ROOT / INDEXES[0] in linked(ROOT / "README.md")


RARE_WORDS: Final = {
    r"rooms": "packages, modules",
    r"house(?!-rules)|household|lamp": "product",
    r"told|tells": "reported, logged, described",
    r"heals": "recovers",
    r"whoever": "anyone who, the process that",
    r"leads nowhere": "target not found",
    r"not as wished": "when False",
    r"stands still": "hangs",
    r"ended unasked": "ended unexpectedly",
    r"sure to refuse|sure refusal": "always rejected",
    r"spec [123]\b": "the name of the field",
}
"""Words that a reader in a hurry does not look for, and what pages say instead."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_plain_words(page: Path) -> None:
    if page.name == "CHANGELOG.md" or page.is_relative_to(ROOT / "docs/conformance"):
        return
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    found = {word: plain for word, plain in RARE_WORDS.items() if re.search(rf"\b(?:{word})\b", text, re.IGNORECASE)}
    assert found == {}


def test_missing_files_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`dataplane/no_such.py`, `dataplane/exchange.py`, `docs/x/<y>.md`, [a](gone.md), [b](page.md)")
    assert missing(page) == ["dataplane/no_such.py", "gone.md"]
