"""docs/faults.md and tests/faults are one: no section without a test, no quoted log line that is not asserted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.faults import page

FOLDER = Path(page.__file__).parent
ASKS = frozenset(("says", "said", "count"))


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every call in the tests: its last name and its literal texts."""
    for path in FOLDER.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                yield name, [text for text in texts if isinstance(text, str)]


def test_every_section_has_a_test() -> None:
    claimed = {heading for name, texts in calls() if name == "fault" for heading in texts}
    assert claimed == set(page.sections())


def test_every_line_of_the_page_is_asserted() -> None:
    asserted = {text for name, texts in calls() if name in ASKS for text in texts}
    quoted = page.lines()
    assert quoted
    assert [line for line in quoted if not any(text in line for text in asserted)] == []
