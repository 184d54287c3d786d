"""Operators at the edges of their types: where Python's own would give something else.

Each expression is evaluated with the types known and with unknown ones (`dyn`), and as literals, which are folded.
"""

from __future__ import annotations

import math
import re

import pytest

from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.errors import CelError
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DOUBLE, DYN, INT, UINT, Type
from gatewright.cel.values import Uint

LOWEST = "-9223372036854775808"
HIGHEST = "9223372036854775807"
BIG = "9007199254740993"  # 2**53 + 1: the nearest double is 2**53

VALUES: list[tuple[str, str, str, object]] = [
    ("7", "/", "-2", -3),
    ("-7", "/", "2", -3),
    ("-7", "/", "-2", 3),
    ("7", "%", "-2", 1),
    ("-7", "%", "2", -1),
    (LOWEST, "%", "1", 0),
    (HIGHEST, "%", "-1", 0),
    (LOWEST, "/", "1", -(2**63)),
    ("1.0", "/", "0.0", math.inf),
    ("-1.0", "/", "0.0", -math.inf),
    ("1.0", "/", "-0.0", -math.inf),
    ("-1.0", "/", "-0.0", math.inf),
    ("18446744073709551615u", "-", "18446744073709551614u", 1),
    ("18446744073709551614u", "+", "1u", 2**64 - 1),
    (HIGHEST, "-", "1", 2**63 - 2),
    (f"{LOWEST[:-1]}7", "-", "1", -(2**63)),
]
MIXED: list[tuple[str, str, str, object]] = [
    (BIG, ">", "9007199254740992.0", False),  # an int beside a double is taken as one
    (BIG, "<=", "9007199254740992.0", True),
    ("9007199254740992.0", "<", f"{BIG}u", False),
    ("-1", "<", "0u", True),
    ("18446744073709551615u", ">", HIGHEST, True),
]
ERRORS = [
    (LOWEST, "%", "-1", "overflow"),
    (LOWEST, "/", "-1", "overflow"),
    ("1", "/", "0", "division by zero"),
    ("1", "%", "0", "modulus by zero"),
    ("1u", "/", "0u", "division by zero"),
    ("1u", "%", "0u", "modulus by zero"),
    (HIGHEST, "+", "1", "overflow"),
    (LOWEST, "-", "1", "overflow"),
    (HIGHEST, "*", "2", "overflow"),
    ("18446744073709551615u", "+", "1u", "overflow"),
    ("0u", "-", "1u", "overflow"),
]


def value_of(literal: str) -> tuple[Type, object]:
    if literal.endswith("u"):
        return UINT, Uint(literal[:-1])
    return (DOUBLE, float(literal)) if "." in literal else (INT, int(literal))


def every_way(left: str, operator: str, right: str) -> list[object]:
    """The result as folded literals, of variables whose types are known, of one and of two unknown ones. An error is
    its message."""
    (kind, a), (other_kind, b) = value_of(left), value_of(right)
    fields = [Field("a", kind), Field("b", other_kind), Field("x", DYN), Field("y", DYN)]
    sides = (("x", "y"), (left, right), ("a", "b"), ("x", "b"), ("a", "y"))
    texts = [f"{one} {operator} {other}" for one, other in sides]
    return [outcome(text, Environment(fields), Values({"a": a, "b": b, "x": a, "y": b})) for text in texts]


def outcome(text: str, environment: Environment, context: Values) -> object:
    try:
        return compile_expression(text, environment).evaluate(context)
    except CelError as error:
        return str(error)


@pytest.mark.parametrize(("left", "operator", "right", "wanted"), VALUES)
def test_values(left: str, operator: str, right: str, wanted: object) -> None:
    found = every_way(left, operator, right)
    assert found == [wanted] * 5
    assert {type(each) for each in found} == {type(value_of(left)[1])}


@pytest.mark.parametrize(("left", "operator", "right", "wanted"), MIXED)
def test_numbers_of_two_types_are_ordered(left: str, operator: str, right: str, wanted: object) -> None:
    assert every_way(left, operator, right) == [wanted] * 5


@pytest.mark.parametrize(("left", "operator", "right", "message"), ERRORS)
def test_errors(left: str, operator: str, right: str, message: str) -> None:
    found = every_way(left, operator, right)
    assert all(isinstance(each, str) and re.search(message, each) for each in found), found


@pytest.mark.parametrize("left", ["0.0", "-0.0"])
@pytest.mark.parametrize("right", ["0.0", "-0.0"])
def test_zero_by_zero_is_not_a_number(left: str, right: str) -> None:
    assert all(isinstance(each, float) and math.isnan(each) for each in every_way(left, "/", right))


def test_not_a_number_divided_by_zero_is_none_either() -> None:
    environment = Environment([Field("a", DOUBLE)])
    found = compile_expression("a / 0.0", environment).evaluate(Values({"a": math.nan}))
    assert isinstance(found, float) and math.isnan(found)
