"""JSON of tokens and Secrets: numbers, names that stand twice, and what reading costs."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.credentials import json_object
from tests.harness import counting


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-999999999999999999", -999999999999999999),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775809", -(2.0**63)),
        ("-18446744073709551616", -(2.0**64)),
        ("9" * 30, 1e30),
        ("1" + "0" * 400, float("inf")),
        ("1.0", 1.0),
        ('"9223372036854775808"', "9223372036854775808"),
    ],
)
def test_integers_of_64_bits_stay_integers_and_larger_ones_are_doubles(text: str, value: Any) -> None:
    for document in (f'{{"a": {text}}}', f'{{"b": "{"1" * 19}", "a": {text}}}'):
        found = json_object.read(document.encode())["a"]
        assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 1}}', "[1]", '{"a": NaN}', "{", '{"a": "\\ud800"}']
)
def test_what_two_readers_could_take_differently_is_no_object(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a JSON object$"):
        json_object.read(text.encode())


def test_more_numbers_take_no_more_calls() -> None:
    """Anybody can send a token with thousands of them, before its signature is looked at."""

    def cost(count: int) -> int:
        document = f'{{"a": [{"1," * count}1]}}'.encode()
        return counting.calls(lambda: json_object.read(document))

    assert cost(5000) == cost(1)
