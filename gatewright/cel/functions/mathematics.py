"""The math extension: `math.greatest`, rounding, signs, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gatewright.cel.budget import LARGE, Budget, pieces
from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import LIST_A, function
from gatewright.cel.operators import compare, int64
from gatewright.cel.types import BOOL, DOUBLE, DYN, INT, UINT
from gatewright.cel.values import MAX_INT, MAX_UINT, MIN_INT, NUMBERS, Uint, type_name

GREATER = compare(">")
LESS = compare("<")


def _number(value: Any) -> Any:
    if type(value) in NUMBERS:
        return value
    raise Fault(f"no such overload: expected a number, found {type_name(value)}")


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def of_all(*values: Any) -> Any:
        best = _number(values[0])
        for value in values[1:]:
            if better(_number(value), best):
                best = value
        return best

    return of_all


def _of_list(of_all: Callable[..., Any]) -> Callable[[Budget, list[Any]], Any]:
    def of(budget: Budget, values: list[Any]) -> Any:
        if not values:
            raise Fault("no such overload: an empty list")
        best = values[0]
        for piece in pieces(budget, values, 1 / 8 if len(values) > LARGE else 0):
            best = of_all(best, *piece)
        return best

    return of


greatest = _extreme(GREATER)
least = _extreme(LESS)


def _finite(apply: Callable[[float], float]) -> Callable[[float], float]:
    """A rounding that leaves NaN and the infinities as they are."""

    def of(value: float) -> float:
        return math.copysign(apply(value), value) if math.isfinite(value) else value

    return of


def _round(value: float) -> float:
    """Halves away from zero."""
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else whole


def absolute(value: int) -> int:
    return int64(abs(value))


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


def sign_uint(value: Uint) -> Uint:
    return Uint(1 if value else 0)


def sign_double(value: float) -> float:
    return value if math.isnan(value) else float((value > 0) - (value < 0))


def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _bits(apply: Callable[[int, int], int]) -> tuple[Callable[[int, int], int], Callable[[Uint, Uint], Uint]]:
    return apply, lambda a, b: Uint(apply(int(a), int(b)))


def bit_not(value: int) -> int:
    return ~value


def bit_not_uint(value: Uint) -> Uint:
    return Uint(MAX_UINT ^ int(value))


def _shift(count: int) -> int:
    if count < 0:
        raise Fault("a shift by a negative number")
    return count


def shift_left(value: int, count: int) -> int:
    if _shift(count) > 63:
        return 0
    shifted = (value << count) & MAX_UINT
    return shifted - (1 << 64) if shifted > MAX_INT else shifted


def shift_left_uint(value: Uint, count: int) -> Uint:
    return Uint((int(value) << count) & MAX_UINT if _shift(count) < 64 else 0)


def shift_right(value: int, count: int) -> int:
    """Zeros come in from the left, for negative numbers too."""
    shifted = (value & MAX_UINT) >> _shift(count)
    return shifted if shifted <= MAX_INT else shifted + 2 * MIN_INT


def shift_right_uint(value: Uint, count: int) -> Uint:
    return Uint(int(value) >> _shift(count))


AND_INT, AND_UINT = _bits(lambda a, b: a & b)
OR_INT, OR_UINT = _bits(lambda a, b: a | b)
XOR_INT, XOR_UINT = _bits(lambda a, b: a ^ b)

TABLE = (
    *(
        row
        for name, of_all in (("math.greatest", greatest), ("math.least", least))
        for row in (
            *(function(name, (kind,), kind, of_all) for kind in (INT, UINT, DOUBLE)),
            *(function(name, (kind, kind), kind, of_all) for kind in (INT, UINT, DOUBLE)),
            *(
                function(name, (one, two), DYN, of_all)
                for one in (INT, UINT, DOUBLE)
                for two in (INT, UINT, DOUBLE)
                if one != two
            ),
            function(name, (LIST_A,), DYN, _of_list(of_all), charges=True),
            function(name, (DYN, DYN, DYN), DYN, of_all, variadic=True),
        )
    ),
    function("math.ceil", (DOUBLE,), DOUBLE, _finite(math.ceil)),
    function("math.floor", (DOUBLE,), DOUBLE, _finite(math.floor)),
    function("math.round", (DOUBLE,), DOUBLE, _finite(_round)),
    function("math.trunc", (DOUBLE,), DOUBLE, _finite(math.trunc)),
    function("math.isNaN", (DOUBLE,), BOOL, math.isnan),
    function("math.isInf", (DOUBLE,), BOOL, math.isinf),
    function("math.isFinite", (DOUBLE,), BOOL, math.isfinite),
    function("math.abs", (INT,), INT, absolute),
    function("math.abs", (UINT,), UINT, lambda value: value),
    function("math.abs", (DOUBLE,), DOUBLE, math.fabs),
    function("math.sign", (INT,), INT, sign),
    function("math.sign", (UINT,), UINT, sign_uint),
    function("math.sign", (DOUBLE,), DOUBLE, sign_double),
    function("math.sqrt", (DOUBLE,), DOUBLE, square_root),
    function("math.sqrt", (INT,), DOUBLE, square_root),
    function("math.sqrt", (UINT,), DOUBLE, square_root),
    function("math.bitAnd", (INT, INT), INT, AND_INT),
    function("math.bitAnd", (UINT, UINT), UINT, AND_UINT),
    function("math.bitOr", (INT, INT), INT, OR_INT),
    function("math.bitOr", (UINT, UINT), UINT, OR_UINT),
    function("math.bitXor", (INT, INT), INT, XOR_INT),
    function("math.bitXor", (UINT, UINT), UINT, XOR_UINT),
    function("math.bitNot", (INT,), INT, bit_not),
    function("math.bitNot", (UINT,), UINT, bit_not_uint),
    function("math.bitShiftLeft", (INT, INT), INT, shift_left),
    function("math.bitShiftLeft", (UINT, INT), UINT, shift_left_uint),
    function("math.bitShiftRight", (INT, INT), INT, shift_right),
    function("math.bitShiftRight", (UINT, INT), UINT, shift_right_uint),
)
