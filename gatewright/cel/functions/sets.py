"""The sets extension: lists seen as sets."""

from __future__ import annotations

from typing import Any

from gatewright.cel.budget import Budget, pieces, steps
from gatewright.cel.equality import equal
from gatewright.cel.functions.table import LIST_A, function
from gatewright.cel.types import BOOL


def contains(budget: Budget, items: list[Any], wanted: list[Any]) -> bool:
    """Whether every element of `wanted` is in `items`."""
    return all(_has(budget, items, one) for one in wanted)


def _has(budget: Budget, items: list[Any], one: Any) -> bool:
    """Counted before each walk, and each piece of it, so that the clock is looked at in between."""
    steps(budget, 1 / 8)
    return any(equal(budget, item, one) for piece in pieces(budget, items, 1 / 8) for item in piece)


def equivalent(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    return contains(budget, left, right) and contains(budget, right, left)


def intersects(budget: Budget, left: list[Any], right: list[Any]) -> bool:
    return any(_has(budget, right, one) for one in left)


TABLE = (
    function("sets.contains", (LIST_A, LIST_A), BOOL, contains, charges=True),
    function("sets.equivalent", (LIST_A, LIST_A), BOOL, equivalent, charges=True),
    function("sets.intersects", (LIST_A, LIST_A), BOOL, intersects, charges=True),
)
