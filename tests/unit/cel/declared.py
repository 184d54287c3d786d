"""Values that tests of functions declare beside those of `generate`, and an expression's value with them."""

from __future__ import annotations

import math

from gatewright.cel.environment import Environment, Field, Values
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, STRING, map_of
from gatewright.cel.values import HeaderMap, Redacted
from tests.unit.cel.generate import VARIABLES

LONG = "a" * 5000
NESTED: list[object] = []
for _ in range(100):
    NESTED = [NESTED]
OWN: dict[str, tuple[object, object]] = {
    "long": (STRING, LONG),
    "h": (map_of(STRING, STRING), HeaderMap([("Cookie", 'a=1; b = 2;c=";d="x";e=""'), ("X", " p , q,, r")])),
    "plain": (map_of(STRING, STRING), {"Cookie": "a=2; a=3", "API-Key": "k", "x": "y"}),
    "secret": (STRING, Redacted("s3cret")),
    "nested": (DYN, NESTED),
    "deeper": (DYN, [NESTED]),
    "subclass": (DYN, type("Text", (str,), {})("sub")),
    "inf": (DYN, math.inf),
}
ALL = {**VARIABLES, **OWN}
ENVIRONMENT = Environment([Field(name, kind) for name, (kind, _) in ALL.items()])  # type: ignore[arg-type]
CONTEXT = Values({name: value for name, (_, value) in ALL.items()})


def value(text: str, *, checked: bool = True) -> object:
    return compile_expression(text, ENVIRONMENT, checked=checked).evaluate(CONTEXT)
