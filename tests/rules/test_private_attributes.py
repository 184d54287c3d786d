"""Tests ask objects what is public: a look at a private attribute has a row with its reason in `private_attributes`."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

from tests.rules.private_attributes import LOOKS
from tests.rules.test_public_names import PLANTING, PRODUCT, is_private, texts

DECLARED: Final = re.compile(
    r"\bself\.(_[a-z]\w*)\b[^=\n]*=(?!=)|^\s+(?:async )?def (_[a-z]\w*)\(|^    (_[a-z]\w*):", re.MULTILINE
)
LOOK: Final = re.compile(r"[\w)\]]\._[a-z]")
"""Texts that may have what is looked for: to parse all of them takes a minute."""
NAMED_TUPLE: Final = frozenset({"_asdict", "_fields", "_make", "_replace"})


def declared(text: str) -> set[str]:
    """Private attributes and methods of the classes in a module."""
    return {name for groups in DECLARED.findall(text) for name in groups if name} - NAMED_TUPLE


@cache
def of_product(root: Path) -> frozenset[str]:
    found = (declared(text) for package in PRODUCT for text in texts(root / package).values())
    return frozenset().union(*found)


def looks(text: str, private: frozenset[str]) -> list[str]:
    """Private attributes that a test takes of another object than its own: not what its own classes declare."""
    if not LOOK.search(text):
        return []
    asked = private - declared(text)
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr in asked
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def found(root: Path) -> dict[str, list[str]]:
    private = of_product(root)
    all_of = {path.relative_to(root).as_posix(): looks(text, private) for path, text in texts(root / "tests").items()}
    return {test: each for test, each in all_of.items() if each and test != PLANTING}


def test_no_more_private_attributes_are_looked_at_than_have_a_reason(root: Path) -> None:
    rows = Counter({test: number for tests in LOOKS.values() for test, number in tests.items()})
    wrong = [
        f"{test} has {len(each)}, its row {rows[test]}: {', '.join(each)}"
        for test, each in found(root).items()
        if len(each) > rows[test]
    ]
    assert wrong == [], "ask what is public, or write the reason into tests/rules/private_attributes.py"


def test_rows_are_as_small_as_can_be(root: Path) -> None:
    now = found(root)
    over = [test for tests in LOOKS.values() for test, number in tests.items() if number > len(now.get(test, ()))]
    assert over == [], "they look at less than their rows in tests/rules/private_attributes.py say"
    assert len({test for tests in LOOKS.values() for test in tests}) == sum(map(len, LOOKS.values())), "one row each"


def test_what_counts() -> None:
    fake = "class Fake:\n    def _own(self): ...\n"
    text = f"{fake}made._kept\nself._kept\nmade._own()\nmade.it._kept.x\nrow._replace(a=1)\nos._exit"
    private = frozenset({"_kept", "_own"})
    assert looks(text, private) == ["3: made._kept", "6: made.it._kept"]
    assert declared("class A:\n    _x: int\n    def _y(self):\n        self._z = 1\n        self._no == 2\n") == {
        "_x",
        "_y",
        "_z",
    }
