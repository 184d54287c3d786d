"""The standard functions on strings, sizes and types (CEL specification, "List of Standard Definitions")."""

from __future__ import annotations

import operator
from typing import Any

from gatewright.cel import patterns
from gatewright.cel.functions.table import LIST_A, MAP_AB, A, both, function, method
from gatewright.cel.types import BOOL, BYTES, DYN, INT, STRING, TYPE
from gatewright.cel.values import TypeValue, type_name


def type_of(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def identity(value: Any) -> Any:
    return value


TABLE = (
    *both("size", (STRING,), INT, len),
    *both("size", (BYTES,), INT, len),
    *both("size", (LIST_A,), INT, len),
    *both("size", (MAP_AB,), INT, len),
    method("contains", (STRING, STRING), BOOL, operator.contains),
    method("startsWith", (STRING, STRING), BOOL, str.startswith),
    method("endsWith", (STRING, STRING), BOOL, str.endswith),
    *both("matches", (STRING, STRING), BOOL, patterns.matches, charges=True),
    function("type", (A,), TYPE, type_of),
    function("dyn", (A,), DYN, identity),
)
