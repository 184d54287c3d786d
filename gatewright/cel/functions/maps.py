"""Maps: merge, flatten, flattenRecursive. (`mapValues` and `filterKeys` are macros.)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gatewright.cel.budget import Budget, built
from gatewright.cel.functions.table import MAP_AB, A, method
from gatewright.cel.types import DYN, STRING, map_of
from gatewright.cel.values import LISTS, from_key

MAX_LEVELS = 64
"""Levels of a value that become entries; what is deeper stays as it is."""


def merge(budget: Budget, left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    """Both; where they have the same key, the right one's value."""
    built(budget, 64 * (len(left) + len(right)))
    return {**left, **right}


def flatten(budget: Budget, value: dict[Any, Any]) -> dict[str, Any]:
    """Maps inside become entries "outer.inner", one level of them."""
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = _name(key)
        inner = item.items() if isinstance(item, dict) else None
        for path, leaf in [(name, item)] if inner is None else [(f"{name}.{_name(one)}", two) for one, two in inner]:
            result[path] = leaf
            built(budget, 64 + len(path))
    return result


def flatten_recursive(budget: Budget, value: dict[Any, Any]) -> dict[str, Any]:
    """Maps and lists inside, at every level, become entries "outer.inner" and "list.0"."""
    result: dict[str, Any] = {}
    waiting: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    """The rest of each level."""
    while waiting:
        path, item = next(waiting[-1], _END)
        if item is _END[1]:
            waiting.pop()
            continue
        inner = None if len(waiting) > MAX_LEVELS + 1 else _children(path, item)
        if inner is None:
            result[path] = item
        else:
            waiting.append(inner)
        built(budget, 64 + len(path))
    return result


_END: Final[tuple[str, Any]] = ("", object())


def _children(path: str, item: Any) -> Iterator[tuple[str, Any]] | None:
    """Made when they are asked for: there may be many."""
    prefix = f"{path}." if path else ""
    if isinstance(item, dict):
        return ((f"{prefix}{_name(key)}", child) for key, child in item.items())
    if type(item) in LISTS:
        return ((f"{prefix}{position}", child) for position, child in enumerate(item))
    return None


def _name(key: Any) -> str:
    value = from_key(key)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else str(int(value))


TABLE = (
    method("merge", (MAP_AB, MAP_AB), MAP_AB, merge, charges=True),
    method("flatten", (map_of(A, DYN),), map_of(STRING, DYN), flatten, charges=True),
    method("flattenRecursive", (map_of(A, DYN),), map_of(STRING, DYN), flatten_recursive, charges=True),
)
