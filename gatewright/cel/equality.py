"""`==`, `!=` and `in` for values whose types were not known before, with what they cost charged. Called by plans.

Lists and maps may share their parts: `[v, v]` twenty times over is a million elements. Each container that is looked
into is a step, so that no comparison outlasts the budget.
"""

from __future__ import annotations

from typing import Any

from gatewright.cel.budget import Budget, steps
from gatewright.cel.errors import OverBudget
from gatewright.cel.operators import no_overload
from gatewright.cel.values import LISTS, NONE, Optional, as_key, equals

CONTAINERS = (list, tuple, dict, Optional)


def equal(budget: Budget, left: Any, right: Any) -> bool:
    """Whether two values are equal: numbers by value across their types, lists and maps deeply, other types never."""
    if not isinstance(left, CONTAINERS):
        return equals(left, right)
    try:
        return _equal_containers(budget, left, right)
    except RecursionError:
        raise OverBudget("values nested too deeply to compare") from None


def unequal(budget: Budget, left: Any, right: Any) -> bool:
    return not equal(budget, left, right)


def _equal_containers(budget: Budget, left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple):
        if not isinstance(right, list | tuple) or len(left) != len(right):
            return False
        pairs = zip(left, right, strict=True)
    elif isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right) or not all(key in right for key in left):
            return False
        pairs = zip(left.values(), map(right.__getitem__, left), strict=True)
    else:
        if type(right) is not Optional or left is NONE or right is NONE:
            return left is right
        pairs = zip((left.value,), (right.value,), strict=True)
    steps(budget, 1 if isinstance(left, Optional) else 1 + len(left) / 16)
    for one, two in pairs:
        if isinstance(one, CONTAINERS):
            if not _equal_containers(budget, one, two):
                return False
        elif not equals(one, two):
            return False
    return True


def is_in(budget: Budget, value: Any, container: Any) -> bool:
    """`value in container`: an element of a list, a key of a map."""
    if isinstance(container, dict):
        return as_key(value) in container
    if type(container) not in LISTS and not isinstance(container, list):
        no_overload("in", value, container)
    steps(budget, len(container) / 64)
    if type(value) is str:
        return value in container  # a str is equal to nothing but a str in Python too
    if isinstance(value, CONTAINERS):
        return any(equal(budget, value, element) for element in container)
    steps(budget, len(container) / 16)
    return any(equals(value, element) for element in container)
