"""`format`: each verb with each type of value, and what it refuses."""

from __future__ import annotations

import pytest

from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelError
from gatewright.cel.program import compile_expression


def value(text: str) -> object:
    return compile_expression(text, Environment([])).evaluate(Values({}))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("'%s and %d%%'.format(['a', 2])", "a and 2%"),
        ("'%s'.format([{'b': 1, 'a': [true, null, 1.5, 2u]}])", "{a: [true, null, 1.5, 2], b: 1}"),
        ("'%s'.format([b'x\\xff'])", "x\ufffd"),
        ("'%s'.format([duration('90s')])", "90s"),
        ("'%s'.format([timestamp('2024-01-02T03:04:05Z')])", "2024-01-02T03:04:05Z"),
        ("'%s %s'.format([int, false])", "int false"),
        ("'%s %s %s'.format([2.0, 0.0 / 0.0, 1.0 / 0.0])", "2 NaN Infinity"),
        ("'%d %d %d'.format([-1, 2u, -1.0 / 0.0])", "-1 2 -Infinity"),
        ("'%f %.2f %.0f'.format([1.5, 2, 3u])", "1.500000 2.00 3"),
        ("'%e %.1e'.format([1500.0, 0.0 / 0.0])", "1.500000e+03 NaN"),
        ("'%b %b %b'.format([5, 6u, true])", "101 110 1"),
        ("'%o %o'.format([8, 9u])", "10 11"),
        ("'%x %X %x'.format([255, 255u, -1])", "ff FF -1"),
        ("'%x %X'.format(['hi', b'\\xab'])", "6869 AB"),
        ("'nothing'.format([])", "nothing"),
    ],
)
def test_what_a_clause_becomes(text: str, wanted: str) -> None:
    assert value(text) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("'%q'.format([1])", 'unknown clause "%q"'),
        ("'%.2d'.format([1])", 'unknown clause "%.2d"'),
        ("'a %'.format([1])", 'unknown clause "%"'),
        ("'%s %s'.format([1])", "no argument for clause 2"),
        ("'%.1001f'.format([1.0])", "a precision of more than 1000"),
        ("'%d'.format([1.5])", "%d takes integers, found double"),
        ("'%d'.format(['1'])", "%d takes integers, found string"),
        ("'%f'.format([true])", "%f takes numbers, found bool"),
        ("'%e'.format(['1'])", "%e takes numbers, found string"),
        ("'%b'.format([1.0])", "%b takes integers and bools, found double"),
        ("'%o'.format([true])", "%o takes integers, found bool"),
        ("'%x'.format([1.0])", "%x takes integers, bytes and strings, found double"),
        ("'%s'.format([optional.of(1)])", "no text for"),
    ],
)
def test_what_a_clause_refuses(text: str, why: str) -> None:
    with pytest.raises(CelError) as refused:
        value(text)
    assert why in str(refused.value)
