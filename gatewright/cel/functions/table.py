"""How the rows of a function table are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatewright.cel.overloads import Overload
from gatewright.cel.types import Param, Type, list_of, map_of

A = Param("A")
B = Param("B")
LIST_A = list_of(A)
MAP_AB = map_of(A, B)

Implementation = Callable[..., Any]


def function(
    name: str, params: tuple[Type, ...], result: Type, implementation: Implementation, **more: bool
) -> Overload:
    """`name(params)`."""
    return Overload(name, params, result, implementation, **more)


def method(name: str, params: tuple[Type, ...], result: Type, implementation: Implementation, **more: bool) -> Overload:
    """`receiver.name(params)`; the receiver's type is the first of `params`."""
    return Overload(name, params, result, implementation, receiver=True, **more)


def both(
    name: str, params: tuple[Type, ...], result: Type, implementation: Implementation, **more: bool
) -> tuple[Overload, ...]:
    """Written either way, as `size(x)` and `x.size()`."""
    return (
        Overload(name, params, result, implementation, **more),
        Overload(name, params, result, implementation, receiver=True, **more),
    )
