"""Functions that expressions may call, as rows: the checker resolves them by their types, the planner calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gatewright.cel.types import Type


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function. `params` includes the receiver of a method, first.

    `charges`: the implementation takes the budget before its arguments. `pure`: equal arguments give equal results, so
    a call with literals is made once, when the expression is compiled. `contextual`: takes the context first.
    """

    name: str
    params: tuple[Type, ...]
    result: Type
    implementation: Callable[..., Any]
    receiver: bool = False
    charges: bool = False
    pure: bool = True
    contextual: bool = False
    variadic: bool = field(default=False)  # the last parameter may be repeated

    def signature(self) -> str:
        if self.receiver:
            return f"{self.params[0]}.{self.name}({', '.join(map(str, self.params[1:]))})"
        return f"{self.name}({', '.join(map(str, self.params))})"


Functions = Mapping[str, tuple[Overload, ...]]
