"""Bounds of a ByteSize as rules: Kubernetes' quantities for API servers, our own reading here.

CEL has no sizes: Kubernetes adds quantities to it, which lack the customary spellings. So these rules are asked of the
value; the rows of the verdict table hold both readings together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from gatewright.api.schema.byte_size import byte_size
from gatewright.api.schema.camel import to_snake
from gatewright.api.schema.part_values import Path
from gatewright.api.schema.rules import Rule

_UNITS: Final = ("k", "m", "g", "t")


@dataclass(frozen=True, slots=True)
class SizeRule(Rule):
    """The ByteSize, when set, is within these bounds."""

    least: int | None = None
    most: int | None = None

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        (name,) = self.path
        value = getattr(part, to_snake(str(name)))
        if value is None:
            return
        size = byte_size(value)
        if (self.least is not None and size < self.least) or (self.most is not None and size > self.most):
            yield self.path, self.message.removeprefix(f"{name} ")


def at_least(field: str, minimum: int) -> Rule:
    """The ByteSize, when set, is not smaller."""
    message = f"{field} must be at least {minimum} bytes"
    return SizeRule(_compared(field, ">=", minimum), message, path=(field,), least=minimum)


def at_most(field: str, maximum: int) -> Rule:
    """The ByteSize, when set, is not larger."""
    message = f"{field} must be at most {maximum} bytes"
    return SizeRule(_compared(field, "<=", maximum), message, path=(field,), most=maximum)


def _compared(field: str, sign: str, bound: int) -> str:
    value = f"self.{field}"
    text = f"quantity({_as_quantity(value)}).compareTo(quantity('{bound}')) {sign} 0"
    return f"!has({value}) || (type({value}) == int ? {value} {sign} {bound} : {text})"


def _as_quantity(value: str) -> str:
    """A customary spelling in Kubernetes' terms: 16kb is 16Ki."""
    kubernetes = f"{value}.lowerAscii()"
    for unit in _UNITS:
        kubernetes += f".replace('{unit}b', '{unit.upper()}i')"
    kubernetes += ".replace('b', '')"
    return f"({value}.endsWith('b') || {value}.endsWith('B') ? {kubernetes} : {value})"
