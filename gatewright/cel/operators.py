"""What operators, selection and conditions mean for values whose types were not known before.

Called by generated code only. Each function looks at the exact types of its operands; where the checker knew them the
planner emits Python's own operator instead. Every function raises Fault and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from gatewright.cel.budget import Budget, built
from gatewright.cel.errors import Fault
from gatewright.cel.values import (
    COMPARABLE_KINDS,
    LISTS,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NUMBERS,
    Duration,
    Redacted,
    Timestamp,
    Uint,
    type_name,
)

# 0001-01-01T00:00:00Z and the last nanosecond of year 9999.
MIN_TIMESTAMP = -62_135_596_800 * 10**9
MAX_TIMESTAMP = 253_402_300_800 * 10**9 - 1


def no_overload(operator: str, *values: Any) -> NoReturn:
    raise Fault(f"no such overload: {operator} of {', '.join(map(type_name, values))}")


def overflow(value: int) -> NoReturn:
    raise Fault("integer overflow")


def int64(value: int) -> int:
    if MIN_INT <= value <= MAX_INT:
        return value
    raise Fault("integer overflow")


def uint64(value: int) -> Uint:
    if 0 <= value <= MAX_UINT:
        return Uint(value)
    raise Fault("unsigned integer overflow")


def timestamp(value: int) -> Timestamp:
    if MIN_TIMESTAMP <= value <= MAX_TIMESTAMP:
        return Timestamp(value)
    raise Fault("timestamp out of range")


def duration(value: int) -> Duration:
    if MIN_INT <= value <= MAX_INT:
        return Duration(value)
    raise Fault("duration out of range")


# Arithmetic: (operator, left type, right type) -> function


def _quotient(left: int, right: int) -> int:
    """Truncated towards zero, as C does and Python does not."""
    if right == 0:
        raise Fault("division by zero")
    result = abs(left) // abs(right)
    return result if left ^ right >= 0 else -result  # the sign bits are equal


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise Fault("modulus by zero")
    if right == -1:
        int64(-left)  # the quotient would not fit
    result = abs(left) % abs(right)
    return -result if left < 0 else result


def int_divide(left: int, right: int) -> int:
    return int64(_quotient(left, right))


def int_remainder(left: int, right: int) -> int:
    return _remainder(left, right)


def double_divide(left: float, right: float) -> float:
    """IEEE 754: dividing by zero is infinite, zero by zero is not a number."""
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


ARITHMETIC: dict[tuple[str, type, type], Callable[[Any, Any], Any]] = {
    ("+", int, int): lambda a, b: int64(a + b),
    ("-", int, int): lambda a, b: int64(a - b),
    ("*", int, int): lambda a, b: int64(a * b),
    ("/", int, int): int_divide,
    ("%", int, int): int_remainder,
    ("+", Uint, Uint): lambda a, b: uint64(int(a) + b),
    ("-", Uint, Uint): lambda a, b: uint64(int(a) - b),
    ("*", Uint, Uint): lambda a, b: uint64(int(a) * b),
    ("/", Uint, Uint): lambda a, b: Uint(_quotient(int(a), int(b))),
    ("%", Uint, Uint): lambda a, b: Uint(_remainder(int(a), int(b))),
    ("+", float, float): lambda a, b: a + b,
    ("-", float, float): lambda a, b: a - b,
    ("*", float, float): lambda a, b: a * b,
    ("/", float, float): double_divide,
    ("+", Timestamp, Duration): lambda a, b: timestamp(int(a) + b),
    ("+", Duration, Timestamp): lambda a, b: timestamp(int(a) + b),
    ("+", Duration, Duration): lambda a, b: duration(int(a) + b),
    ("-", Timestamp, Duration): lambda a, b: timestamp(int(a) - b),
    ("-", Timestamp, Timestamp): lambda a, b: duration(int(a) - b),
    ("-", Duration, Duration): lambda a, b: duration(int(a) - b),
}
JOINABLE = frozenset((str, Redacted))


def add(budget: Budget, left: Any, right: Any) -> Any:
    """`+` of anything. Strings, bytes and lists are built and therefore charged."""
    one, two = type(left), type(right)
    known = ARITHMETIC.get(("+", one, two))
    if known is not None:
        return known(left, right)
    if (one in JOINABLE and two in JOINABLE) or (one is bytes and two is bytes):
        built(budget, len(left) + len(right))
        return left + right
    if one in LISTS and two in LISTS:
        return add_lists(budget, left, right)
    if isinstance(left, str) and isinstance(right, str):
        built(budget, len(left) + len(right))
        return str(left) + str(right)
    no_overload("+", left, right)


def checked_text(budget: Budget, value: Any) -> Any:
    built(budget, len(value))
    return value


def add_lists(budget: Budget, left: Any, right: Any) -> list[Any]:
    built(budget, 8 * (len(left) + len(right)))
    return [*left, *right]


def join_text(budget: Budget, parts: tuple[Any, ...]) -> str:
    """A long sum of strings at once: adding one by one copies the beginning each time."""
    built(budget, sum(map(len, parts)))
    return "".join(parts)


def arithmetic(operator: str) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        known = ARITHMETIC.get((operator, type(left), type(right)))
        if known is None:
            no_overload(operator, left, right)
        return known(left, right)

    return apply


def negate(value: Any) -> Any:
    if type(value) is int:
        return int64(-value)
    if type(value) is float:
        return -value
    no_overload("-", value)


# Comparison


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compare(operator: str) -> Callable[[Any, Any], bool]:
    """An ordering of two values of one type, or of two numbers; int and uint beside a double are taken as doubles."""
    apply = COMPARE[operator]

    def ordered(left: Any, right: Any) -> bool:
        one, two = type(left), type(right)
        if one is two and one in COMPARABLE_KINDS:
            return apply(left, right)
        if one in NUMBERS and two in NUMBERS:
            if one is float or two is float:
                return apply(float(left), float(right))
            return apply(int(left), int(right))
        if isinstance(left, str) and isinstance(right, str):
            return apply(str(left), str(right))
        no_overload(operator, left, right)

    return ordered


# Conditions


def truth(value: Any) -> bool:
    """A value that must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise Fault(f"expected bool, found {type_name(value)}")


def negation(value: Any) -> bool:
    if value is True or value is False:
        return not value
    no_overload("!", value)
