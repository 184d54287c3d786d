"""Optional values: `optional.of`, `orValue`, ... (`optMap` and `optFlatMap` are macros.)"""

from __future__ import annotations

from typing import Any

from gatewright.cel.budget import Budget, built
from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import A, function, method
from gatewright.cel.types import BOOL, list_of, optional_of
from gatewright.cel.values import NONE, Duration, Optional, Timestamp, Uint, type_name

ZEROES = frozenset((bool, int, Uint, float, str, bytes, list, tuple, Duration, Timestamp, type(None)))


def checked(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise Fault(f"expected an optional, found {type_name(value)}")


def of_non_zero(value: Any) -> Optional:
    """Empty for false, 0, "", [], {} and null."""
    if (type(value) in ZEROES or isinstance(value, str | dict)) and not value:
        return NONE
    return Optional(value)


def none() -> Optional:
    return NONE


def has_value(value: Any) -> bool:
    return checked(value) is not NONE


def value_of(value: Any) -> Any:
    if checked(value) is NONE:
        raise Fault("optional.none() has no value")
    return value.value


# Plans evaluate the second argument of these two only where it is needed, unless it is a literal.


def either(value: Any, other: Any) -> Optional:
    return checked(other) if checked(value) is NONE else checked(value)


def or_value(value: Any, other: Any) -> Any:
    return other if checked(value) is NONE else value.value


def unwrap(budget: Budget, items: list[Any]) -> list[Any]:
    built(budget, 8 * len(items))
    return [item.value for item in items if checked(item) is not NONE]


TABLE = (
    function("optional.of", (A,), optional_of(A), Optional),
    function("optional.ofNonZeroValue", (A,), optional_of(A), of_non_zero),
    function("optional.none", (), optional_of(A), none),
    function("optional.unwrap", (list_of(optional_of(A)),), list_of(A), unwrap, charges=True),
    method("unwrapOpt", (list_of(optional_of(A)),), list_of(A), unwrap, charges=True),
    method("hasValue", (optional_of(A),), BOOL, has_value),
    method("value", (optional_of(A),), A, value_of),
    method("or", (optional_of(A), optional_of(A)), optional_of(A), either),
    method("orValue", (optional_of(A), A), A, or_value),
)
