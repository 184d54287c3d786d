"""docs/faults.md and the tests of this folder, tied together.

`fault("heading")` marks the test of a section; `said(piece, output)` asserts that the line of the page that contains
`piece` stands in what processes wrote. tests/rules/test_faults.py checks that no section and no line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

PAGE = Path(__file__).resolve().parents[2] / "docs/faults.md"

_BLOCK = re.compile(r"^```log\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELLIPSIS = "…"

Test = TypeVar("Test", bound=Callable[..., object])


def sections() -> dict[str, str]:
    """Heading of each fault -> its text."""
    _, *parts = PAGE.read_text().split("\n## ")
    return {heading: text for heading, _, text in (part.partition("\n") for part in parts)}


def lines() -> list[str]:
    """Every log line that the page quotes."""
    return [line for text in sections().values() for block in _BLOCK.findall(text) for line in block.splitlines()]


def fault(*headings: str) -> Callable[[Test], Test]:
    """This test makes the faults of these sections."""
    known = sections()
    for heading in headings:
        if heading not in known:
            raise LookupError(f"docs/faults.md has no section {heading!r}")

    def mark(test: Test) -> Test:
        return test

    return mark


def pattern(piece: str) -> re.Pattern[str]:
    """The one line of the page with this piece, as an expression for a line of output: `…` is any text."""
    (line,) = {line for line in lines() if piece in line}
    return re.compile(".*?".join(map(re.escape, line.split(_ELLIPSIS))))


def count(piece: str, output: str) -> int:
    """How many lines of the output are that line of the page."""
    expression = pattern(piece)
    return sum(bool(expression.search(line.replace("\t", " "))) for line in output.splitlines())


def said(piece: str, output: str) -> bool:
    """Whether that line of the page stands in the output."""
    return count(piece, output) > 0
