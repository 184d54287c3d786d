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
    NONE,
    NUMBERS,
    Duration,
    Optional,
    Redacted,
    Timestamp,
    Uint,
    as_key,
    equals,
    from_key,
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
    return result if (left < 0) == (right < 0) else -result


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise Fault("modulus by zero")
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
        return checked_text(budget, left + right)
    if one in LISTS and two in LISTS:
        return add_lists(budget, left, right)
    if isinstance(left, str) and isinstance(right, str):
        return checked_text(budget, str(left) + str(right))
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
    if type(value) is Duration:
        return duration(-value)
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


def unequal(left: Any, right: Any) -> bool:
    return not equals(left, right)


def is_in(value: Any, container: Any) -> bool:
    """`value in container`: an element of a list, a key of a map."""
    if isinstance(container, dict):
        return as_key(value) in container
    if type(value) is str and type(container) in LISTS:
        return value in container  # a str is equal to nothing but a str in Python too
    if type(container) in LISTS or isinstance(container, list):
        return any(equals(value, element) for element in container)
    no_overload("in", value, container)


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


# Selection


def missing(key: str) -> NoReturn:
    """A declared value, or an entry of one, that this request does not have."""
    raise Fault(f"no such key: {key}")


def select(value: Any, name: str) -> Any:
    """`value.name` of a map; of an optional it is an optional."""
    if isinstance(value, dict):
        return value[name]
    if type(value) is Optional:
        return optional_select(value, name)
    raise Fault(f"{type_name(value)} has no field {name}")


def has_field(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return name in value
    if type(value) is Optional:
        return value is not NONE and has_field(value.value, name)
    raise Fault(f"{type_name(value)} has no field {name}")


def optional_select(value: Any, name: str) -> Optional:
    """`value.?name`: of a map, or of an optional map."""
    if type(value) is Optional:
        return NONE if value is NONE else optional_select(value.value, name)
    if isinstance(value, dict):
        return Optional(value[name]) if name in value else NONE
    raise Fault(f"{type_name(value)} has no field {name}")


def index(value: Any, key: Any) -> Any:
    """`value[key]` of a list, a map or an optional one."""
    if isinstance(value, dict):
        found = as_key(key)
        if found in value:
            return value[found]
        raise Fault(f"no such key: {shown(key)}")
    if type(value) in LISTS or isinstance(value, list):
        return value[position(key, len(value))]
    if type(value) is Optional:
        return optional_index(value, key)
    no_overload("[]", value, key)


def optional_index(value: Any, key: Any) -> Optional:
    """`value[?key]`."""
    if type(value) is Optional:
        return NONE if value is NONE else optional_index(value.value, key)
    if isinstance(value, dict):
        found = as_key(key)
        return Optional(value[found]) if found in value else NONE
    if type(value) in LISTS or isinstance(value, list):
        number = whole_number(key)
        return Optional(value[number]) if 0 <= number < len(value) else NONE
    no_overload("[]", value, key)


def list_index(value: Any, key: int) -> Any:
    """`value[key]` of a list by an int: Python's negative positions are errors here."""
    if key < 0:
        raise Fault(f"index out of range: {key}")
    return value[key]


def position(key: Any, length: int) -> int:
    number = whole_number(key)
    if 0 <= number < length:
        return number
    raise Fault(f"index out of range: {number}")


def whole_number(key: Any) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise Fault(f"a list has no position of type {type_name(key)}" if type(key) is not float else "not a whole number")


def shown(key: Any) -> str:
    """A key for an error message, short."""
    text = str(key) if isinstance(key, str) else repr(from_key(key))
    return text if len(text) <= 64 else text[:61] + "..."


# Literals


KEYS = frozenset((int, Uint, str, Redacted))


def make_key(value: Any) -> Any:
    """A value as a key of a map being built."""
    if type(value) in KEYS:
        return value
    if type(value) is bool:
        return as_key(value)
    raise Fault(f"a map has no key of type {type_name(value)}")


def make_map(pairs: tuple[tuple[Any, Any], ...] | list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map literal; the same key twice is an error."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        found = make_key(key)
        if found in result:
            raise Fault(f"repeated key: {shown(key)}")
        result[found] = value
    return result


def put(result: dict[Any, Any], key: Any, value: Any) -> None:
    """One entry more of a map being built by a macro."""
    found = make_key(key)
    if found in result:
        raise Fault(f"repeated key: {shown(key)}")
    result[found] = value


def optional_pairs(key: Any, value: Any) -> tuple[tuple[Any, Any], ...]:
    """`{?key: value}`: an entry only when the optional has a value."""
    return tuple((key, element) for element in optional_items(value))


def optional_items(value: Any) -> tuple[Any, ...]:
    """`[?value]`: an element only when the optional has a value."""
    if type(value) is not Optional:
        raise Fault(f"expected an optional, found {type_name(value)}")
    return () if value is NONE else (value.value,)
