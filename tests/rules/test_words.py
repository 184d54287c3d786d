"""Plain words (`words`) in pages, and in comments, docstrings, texts and identifiers of the product.

`words_left.txt` has what is still to be rewritten: a line for each page or folder of code, with its words. A line gets
shorter, and goes; WORDS=write scripts/test tests/rules/test_words.py takes out what is clean, and never adds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.rules.test_docs import PAGES
from tests.rules.words import PHRASES, RARE_WORDS, TERMS, apart, words_in

LEFT = Path(__file__).with_name("words_left.txt")
PRODUCT = ("gatewright", "controlplane", "dataplane")


def lines() -> dict[str, set[str]]:
    rows = (line.split(": ") for line in LEFT.read_text().splitlines())
    return {place: set(words.split(", ")) for place, words in rows}


def product(root: Path) -> dict[str, str]:
    """Pages, and modules with their names, by their paths."""
    modules = (path for package in PRODUCT for path in (root / package).rglob("*.py") if "_pb2" not in path.name)
    texts = {path.relative_to(root).as_posix(): f"{path.stem}\n{path.read_text()}" for path in [*PAGES, *modules]}
    aside = ("CHANGELOG.md", "docs/conformance/")
    return {path: text for path, text in texts.items() if not path.startswith(aside)}


def found(root: Path) -> dict[str, set[str]]:
    """Words by page, and by folder of code."""
    words: dict[str, set[str]] = {}
    for path, text in product(root).items():
        place = path.rpartition("/")[0] if path.endswith(".py") else path
        words.setdefault(place, set()).update(words_in(path, text))
    return {place: each for place, each in words.items() if each}


def without(left: Mapping[str, set[str]], words: Mapping[str, set[str]]) -> dict[str, set[str]]:
    kept = {place: each & words.get(place, set()) for place, each in left.items()}
    return {place: each for place, each in kept.items() if each}


def _where(new: Mapping[str, set[str]], root: Path) -> str:
    """The files that have them, of those that a place stands for."""
    files = {path: words_in(path, text) for path, text in product(root).items()}
    lines = {
        path: words & more
        for place, more in new.items()
        for path, words in files.items()
        if place in (path, path.rpartition("/")[0])
    }
    return "\n".join(f"{path}: {', '.join(sorted(words))}" for path, words in lines.items() if words)


def test_plain_words(root: Path) -> None:
    words, left = found(root), lines()
    if os.environ.get("WORDS") == "write":
        left = without(left, words)
        LEFT.write_text("".join(f"{place}: {', '.join(sorted(each))}\n" for place, each in sorted(left.items())))
    new = {place: more for place, each in words.items() if (more := each - left.get(place, set()))}
    instead = "; ".join(f"{word}: {RARE_WORDS[word].instead}" for word in sorted(set().union(*new.values())))
    assert not new, f"write instead: {instead}\n{_where(new, root)}"
    stale = {place: gone for place, each in left.items() if (gone := each - words.get(place, set()))}
    assert stale == {}, "clean: run WORDS=write scripts/test tests/rules/test_words.py"


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("dataplane/a.py", "# it must be\n# told so", {"told"}),
        ("dataplane/a.py", "def house_of(x): ...", {"house"}),
        ("dataplane/a.py", "class AnswersOurs: ...", {"ours"}),
        ("dataplane/a.py", '"""What stands\n    for it."""', {"stands for"}),
        ("dataplane/a.py", "self._guarded(hours, guardrails, PromptGuard, prompt_guards)", {"guard"}),
        ("dataplane/guards/a.py", "guard = 1", set()),
        ("dataplane/a.py", "mushroom, warehouse, tellurium, makes room for one", set()),
        ("docs/a.md", "Nobody\n```\nwhoever\n```\nguards, `house-rules`, household", {"nobody", "house"}),
    ],
)
def test_each_of_them_is_found(path: str, text: str, words: set[str]) -> None:
    assert words_in(path, text) == words


def test_every_exception_is_needed(root: Path) -> None:
    texts = {path: apart(path, text) for path, text in product(root).items()}
    whole = "\n".join(texts.values())
    assert [phrase for phrase in PHRASES if not re.search(rf"\b(?:{phrase})\b", whole, re.IGNORECASE)] == []
    for place, words in TERMS.items():
        there = "\n".join(text for path, text in texts.items() if path.startswith(place))
        forms = [RARE_WORDS[word].forms for word in words]
        assert [each for each in forms if not re.search(rf"\b(?:{each})\b", there, re.IGNORECASE)] == [], place
