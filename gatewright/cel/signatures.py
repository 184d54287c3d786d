"""The operators' types, and the names of types as values.

Read by the checker (which operation has which result) and by the planner (which of them Python does itself).
"""

from __future__ import annotations

from gatewright.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    NUMERIC,
    ORDERED,
    PLAIN,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
)
from gatewright.cel.values import TypeValue

_FORMS: tuple[tuple[str, Type, Type, Type], ...] = (
    *((operator, kind, kind, kind) for operator in "+-*/" for kind in (INT, UINT, DOUBLE)),
    ("%", INT, INT, INT),
    ("%", UINT, UINT, UINT),
    ("+", STRING, STRING, STRING),
    ("+", BYTES, BYTES, BYTES),
    ("+", TIMESTAMP, DURATION, TIMESTAMP),
    ("+", DURATION, TIMESTAMP, TIMESTAMP),
    ("+", DURATION, DURATION, DURATION),
    ("-", TIMESTAMP, DURATION, TIMESTAMP),
    ("-", TIMESTAMP, TIMESTAMP, DURATION),
    ("-", DURATION, DURATION, DURATION),
    *((operator, kind, kind, BOOL) for operator in ("<", "<=", ">", ">=") for kind in ORDERED),
    *(
        (operator, one, two, BOOL)
        for operator in ("<", "<=", ">", ">=")
        for one in NUMERIC
        for two in NUMERIC
        if one != two
    ),
    *((operator, kind, kind, BOOL) for operator in ("==", "!=") for kind in PLAIN),
)

# (operator, kind of the left, kind of the right) -> type of the result
OPERATORS: dict[tuple[str, str, str], Type] = {
    (operator, left.kind, right.kind): result for operator, left, right, result in _FORMS
}

# Type names that are values: `type(x) == int`.
TYPE_DENOTATIONS: dict[str, TypeValue] = {
    name: TypeValue(name)
    for name in (
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        "net.IP",
        "net.CIDR",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    )
}
