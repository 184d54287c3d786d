"""`docs/cel.md` says what is so: its table is that of the functions, and every example gives what stands beside it.

`python -m tests.rules.test_cel_page` writes the table anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatewright.cel import budget
from gatewright.cel.environment import Environment, Values
from gatewright.cel.functions import STANDARD
from gatewright.cel.lexer import MAX_TEXT
from gatewright.cel.macros import MACROS
from gatewright.cel.parser import MAX_DEPTH
from gatewright.cel.patterns import MAX_PATTERN
from gatewright.cel.program import compile_expression
from gatewright.cel.values import equals
from tests.rules.cel_examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"
PART = re.compile(r"(<!-- functions: begin [^\n]*-->\n)(.*)(<!-- functions: end -->)", re.DOTALL)


def table() -> str:
    lines = ["", "| Function | Forms | Meaning | Example |", "|---|---|---|---|"]
    for name, overloads in STANDARD.items():
        meaning, example, result = EXAMPLES[name]
        forms = "<br>".join(f"`{one.signature()} -> {one.result}`" for one in overloads)
        shown = f"`{example}` is `{result}`".replace("|", "\\|")
        lines.append(f"| `{name}` | {forms} | {meaning} | {shown} |")
    return "\n".join([*lines, "", ""])


def value(text: str) -> object:
    return compile_expression(text, Environment()).evaluate(Values({}))


def test_the_table_is_that_of_the_functions() -> None:
    found = PART.search(PAGE.read_text())
    assert found is not None
    assert found.group(2) == table(), "run: .venv/bin/python -m tests.rules.test_cel_page"


def test_every_function_has_an_example_with_its_name() -> None:
    assert set(EXAMPLES) == set(STANDARD)
    assert all(f"{name}(" in example for name, (_, example, _) in EXAMPLES.items())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_the_page_says(name: str) -> None:
    _, example, result = EXAMPLES[name]
    assert equals(value(example), value(result))


def test_the_page_names_the_macros_and_the_limits(seconds_of_an_evaluation: float) -> None:
    page = PAGE.read_text()
    assert [name for name, _, _ in MACROS if name not in page and name != "existsOne"] == []
    limits = (MAX_TEXT // 1024, MAX_DEPTH, budget.MAX_STEPS, budget.MAX_BUILT // 1_000_000, MAX_PATTERN)
    words = ("{} KiB", "| {}; operators", "| {:,}: passes", "| {} MB of", "{:,} characters")
    assert [
        word.format(limit) for word, limit in zip(words, limits, strict=True) if word.format(limit) not in page
    ] == []
    assert f"{seconds_of_an_evaluation * 1000:.0f} ms of the thread" in page


if __name__ == "__main__":
    PAGE.write_text(PART.sub(lambda found: found.group(1) + table() + found.group(3), PAGE.read_text()))
