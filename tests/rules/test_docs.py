"""What the documents name exists: files of the repository, and targets of links."""

from __future__ import annotations

import re
from pathlib import Path

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


PART = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)")
"""A link to a part of a page: the file ("": the page itself) and the part."""
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def missing(page: Path) -> list[str]:
    text = page.read_text()
    names = [name for name in FILE.findall(text) if name not in MADE]
    files = [name for name in names if not (ROOT / name).exists() and not (ROOT / f"{name}.py").is_file()]
    return files + [link for link in LINK.findall(text) if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    assert missing(page) == []


def prose(page: Path) -> str:
    """A page without its blocks of code, where `#` begins a comment."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def parts(page: Path) -> set[str]:
    """What a link can name of a page, as GitHub derives it from headings."""
    counted: dict[str, int] = {}
    names = set()
    for heading in HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        before = counted.get(name, 0)
        counted[name] = before + 1
        names.add(f"{name}-{before}" if before else name)
    return names


def missing_parts(page: Path) -> list[str]:
    """Links to parts of pages that have no heading of that name."""
    links = [((page.parent / file).resolve() if file else page, file, part) for file, part in PART.findall(prose(page))]
    pages = [each for each in links if each[0].suffix == ".md"]
    return [f"{file}#{part}" for target, file, part in pages if not target.exists() or part not in parts(target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_parts_of_pages_exist(page: Path) -> None:
    assert missing_parts(page) == []


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
