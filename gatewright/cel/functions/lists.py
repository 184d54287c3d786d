"""The lists extension: distinct, first, flatten, last, range, reverse, slice, sort. (`sortBy` is a macro.)"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gatewright.cel.budget import LARGE, Budget, built, pieces, steps
from gatewright.cel.equality import equal
from gatewright.cel.errors import Fault
from gatewright.cel.functions.table import LIST_A, A, function, method
from gatewright.cel.types import DYN, INT, list_of, optional_of
from gatewright.cel.values import COMPARABLE_KINDS, LISTS, NONE, Optional, type_name

MANY = 1 << 16
"""Items of a list that is flat: more are looked at in pieces."""


def distinct(budget: Budget, items: list[Any]) -> list[Any]:
    """The first of equal elements. Strings are looked up; anything else is compared with all before."""
    result: list[Any] = []
    seen: set[str] = set()
    others: list[Any] = []
    for piece in pieces(budget, items, 0):
        known = len(result)
        for item in piece:
            if type(item) is str:
                if item in seen:
                    continue
                seen.add(item)
            else:
                steps(budget, 1 + len(others) / 8)
                if any(equal(budget, item, other) for other in others):
                    continue
                others.append(item)
            result.append(item)
        built(budget, 8 * (len(result) - known))
    return result


def flatten(budget: Budget, items: list[Any]) -> list[Any]:
    return flatten_to(budget, items, 1)


def flatten_to(budget: Budget, items: list[Any], depth: int) -> list[Any]:
    """Lists within the list, `depth` levels of them, replaced by their elements."""
    if depth < 0:
        raise Fault("flatten: the depth must not be negative")
    built(budget, 8 * len(items))
    result = list(items)
    while depth > 0 and _has_lists(budget, result):
        flat: list[Any] = []
        for item in result:
            if type(item) in LISTS:
                built(budget, 8 * len(item))
                flat.extend(item)
            else:
                built(budget, 8)
                flat.append(item)
        result = flat
        depth -= 1
    return result


def _has_lists(budget: Budget, items: list[Any]) -> bool:
    """Counted where there are many."""
    each = 1 / 8 if len(items) > MANY else 0
    return any(not LISTS.isdisjoint(map(type, piece)) for piece in pieces(budget, items, each))


def number_range(budget: Budget, count: int) -> list[int]:
    if count < 0:
        raise Fault("lists.range: the count must not be negative")
    built(budget, 36 * count)
    return list(range(count))


def reverse(budget: Budget, items: list[Any]) -> list[Any]:
    built(budget, 8 * len(items))
    return list(items[::-1])


def part(budget: Budget, items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0 or start > end or end > len(items):
        raise Fault(f"slice: from {start} to {end} of {len(items)}")
    built(budget, 8 * (end - start))
    return list(items[start:end])


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def sort(budget: Budget, items: list[Any]) -> list[Any]:
    return list(sort_by(budget, items, items))


def sort_by(budget: Budget, items: list[Any], order: list[Any]) -> list[Any]:
    """`items` in the order of the values beside them, which must all be of one comparable type."""
    if not items:
        return []
    kinds = set(map(type, order))
    if len(kinds) > 1 or not kinds <= COMPARABLE_KINDS:
        raise Fault(f"sort: values that cannot be ordered: {', '.join(_kinds(order))}")
    built(budget, 16 * len(items))
    steps(budget, len(items) * len(items).bit_length() / (16 if len(items) <= LARGE else 4))
    return [item for _, item in sorted(zip(order, items, strict=True), key=_first)]


def _kinds(order: list[Any]) -> list[str]:
    """The names of the types of the first three, by name."""
    counts, examples = Counter(map(type, order)), dict(zip(map(type, order), order, strict=True))
    names = [type_name(example) for kind, example in examples.items() for _ in range(min(counts[kind], 3))]
    return sorted(names)[:3]


def first(items: list[Any]) -> Optional:
    return Optional(items[0]) if items else NONE


def last(items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else NONE


TABLE = (
    method("distinct", (LIST_A,), LIST_A, distinct, charges=True),
    method("flatten", (LIST_A,), list_of(DYN), flatten, charges=True),
    method("flatten", (LIST_A, INT), list_of(DYN), flatten_to, charges=True),
    function("lists.range", (INT,), list_of(INT), number_range, charges=True),
    method("reverse", (LIST_A,), LIST_A, reverse, charges=True),
    method("slice", (LIST_A, INT, INT), LIST_A, part, charges=True),
    method("sort", (LIST_A,), LIST_A, sort, charges=True),
    method("first", (LIST_A,), optional_of(A), first),
    method("last", (LIST_A,), optional_of(A), last),
)
