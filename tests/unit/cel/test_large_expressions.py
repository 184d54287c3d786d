"""An expression whose plan is made in parts (large ones are) means what it means in one piece."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.cel import emit_operators, plan
from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelError
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, INT, STRING

ENVIRONMENT = Environment({"i": INT, "s": STRING, "d": DYN})
VALUES = Values({"i": 7, "s": "seven", "d": {"list": [1, 2, 3], "name": "x"}})
FAILS = "an error"

EXPRESSIONS = [
    ("1 + i * 2 - 3 + i / 7 + i % 4", 16),
    ("i - 1 - 1 - 1 - 1 - 1 - 1 - 1 - 1", -1),
    ("i + 9223372036854775807 + 1 + 1", FAILS),
    ("1 / (i - 7) == 1 || s == 'seven' || d.nothing == 1", True),
    ("1 / (i - 7) == 1 || s == 'eight' || d.name == 'y'", FAILS),
    ("d.nothing == 1 && s == 'eight' && 1 / (i - 7) == 1", False),
    ("d.nothing == 1 && s == 'seven'", FAILS),
    ("(d.nothing == 1 ? 1 : 2) == 1 || true", True),
    ("d.list.map(x, x * i).filter(x, x > 7 && x < 21) == [14]", True),
    ("d.list.map(x, d.list.map(y, x * y + i)) == [[8, 9, 10], [9, 11, 13], [10, 13, 16]]", True),
    ("d.list.exists(x, x / (x - 2) == 3 || x == i - 4)", True),
    ("d.list.all(x, d.list.exists(y, y == x) && x != i)", True),
    ("cel.bind(a, i + 1, cel.bind(b, a * a, b - a == 56 && d.list.exists(x, x + a == 9)))", True),
    ("cel.bind(a, d.nothing, a == 1 || s == 'seven')", True),
    ("s + '-' + s + '-' + d.name + '-' + s", "seven-seven-x-seven"),
    ("{'a': [i, i + 1], 'b': d.list, s: {'c': i * i}}['seven'].c", 49),
    ("i == 1 ? 'a' : i == 2 ? 'b' : i == 3 ? 'c' : i == 7 ? s + '!' : 'e'", "seven!"),
    ("has(d.name) && !has(d.nothing) && s in ['six', s] && 2 in d.list && !(i in d.list)", True),
    ("s.startsWith('sev') && s.matches('^s.*n$') && s.size() == 5 && s.replace('e', '') == 'svn'", True),
]


@pytest.mark.parametrize(("text", "wanted"), EXPRESSIONS)
@pytest.mark.parametrize("largest", [1, 4, 16])
def test_parts_mean_what_the_whole_does(text: str, wanted: Any, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LARGE", 1), ("PART", largest), ("SMALL", 1), ("SHORT", 1), ("AT_ONCE", 1)):
        monkeypatch.setattr(plan, name, value)
    monkeypatch.setattr(emit_operators, "PART_OF_CHAIN", 2)
    program = compile_expression(text, ENVIRONMENT)
    program.prepare()
    assert answer(program) == wanted


@pytest.mark.parametrize(("text", "wanted"), EXPRESSIONS)
def test_the_whole_means_this(text: str, wanted: Any) -> None:
    assert answer(compile_expression(text, ENVIRONMENT)) == wanted


def answer(program: Any) -> Any:
    try:
        return program.evaluate(VALUES)
    except CelError:
        return FAILS


def test_a_large_expression_has_many_functions_and_a_small_one_has_one() -> None:
    small = compile_expression("dyn(1).a == 1 || dyn(2).a == 1", ENVIRONMENT)
    large = compile_expression(" || ".join(f"dyn({number}).a == 1" for number in range(700)), ENVIRONMENT)
    assert small.source.count("def ") == 1 and large.source.count("def ") == 701
