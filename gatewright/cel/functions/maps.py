"""Maps: merge, flatten, flattenRecursive. (`mapValues` and `filterKeys` are macros.)"""

from __future__ import annotations

from typing import Any

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
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        path, item, level = waiting.pop()
        inner = _children(item)
        if inner is None or level > MAX_LEVELS:
            result[path] = item
        else:
            prefix = f"{path}." if path else ""
            waiting.extend((f"{prefix}{name}", child, level + 1) for name, child in reversed(inner))
        built(budget, 64 + len(path))
    return result


def _children(item: Any) -> list[tuple[str, Any]] | None:
    if isinstance(item, dict):
        return [(_name(key), child) for key, child in item.items()]
    if type(item) in LISTS:
        return [(str(position), child) for position, child in enumerate(item)]
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
