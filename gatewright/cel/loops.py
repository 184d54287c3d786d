"""What loops run over and what macros ask, for values whose types were not known before. Called by plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gatewright.cel.budget import FREE_PASSES, Budget, look, steps
from gatewright.cel.errors import FAULTS, Fault
from gatewright.cel.selection import shown
from gatewright.cel.values import LISTS, Optional, entries, from_key, keys, type_name

__all__ = ["from_key"]


def items(value: Any) -> Sequence[Any]:
    """The elements of a list or the keys of a map."""
    if type(value) in LISTS or isinstance(value, list):
        elements: Sequence[Any] = value
        return elements
    if isinstance(value, dict):
        return list(keys(value))
    raise Fault(f"cannot run over {type_name(value)}")


def pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """Index and element of a list, key and value of a map."""
    if isinstance(value, dict):
        return entries(value)
    return enumerate(items(value))


def raw_entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of a map with their keys as stored."""
    if isinstance(value, dict):
        return value.items()
    raise Fault(f"expected a map, found {type_name(value)}")


def counted(budget: Budget, run: Iterable[Any], passes: int, weight: int) -> Iterable[Any]:
    """What a loop runs over, its steps charged; a long run looks at the clock now and then."""
    steps(budget, passes * weight)
    return run if passes <= FREE_PASSES else _watched(budget, run)


def _watched(budget: Budget, run: Iterable[Any]) -> Iterable[Any]:
    for number, item in enumerate(run):
        if number % 16 == 0:
            look(budget)
        yield item


def put_all(result: dict[Any, Any], more: Any) -> None:
    """The entries of a map, none of which may be there already (transformMapEntry)."""
    for key, value in raw_entries(more):
        if key in result:
            raise Fault(f"repeated key: {shown(key)}")
        result[key] = value


def checked_optional(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise Fault(f"expected an optional, found {type_name(value)}")


def has_attribute(context: Any, name: str) -> bool:
    """Whether a context has a value for one of its attributes."""
    try:
        getattr(context, name)
    except FAULTS:
        return False
    return True


def has_variable(context: Any, name: str) -> bool:
    try:
        context.variable(name)
    except FAULTS:
        return False
    return True
