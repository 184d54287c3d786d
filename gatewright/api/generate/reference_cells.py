"""Cells of the tables of the reference: what a field may be, as people read it.

Called by `reference`. Pure: a shape in, words out.
"""

from __future__ import annotations

import re
from typing import Final

from gatewright.api.generate import schema_nodes, spellings
from gatewright.api.generate.shapes import (
    Choice,
    Flag,
    Free,
    Items,
    Money,
    Part,
    Quantity,
    Shape,
    Size,
    Table,
    Text,
    Whole,
    is_duration,
)
from gatewright.api.schema import status
from gatewright.api.schema.fields import PATTERN_WORDS
from gatewright.api.schema.metadata import ObjectMeta


def cell(text: str) -> str:
    """Text as a cell of a table: `|` would end it, `<` outside of code would begin HTML."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def type_of(shape: Shape, within: str, name: str) -> str:
    match shape:
        case Part(model):
            if model is ObjectMeta:
                return "ObjectMeta"
            title = model.__name__.strip("_")
            return f"[{title}](#{title.lower()})"
        case Items(item):
            return f"list of {type_of(item, within, name)}"
        case Table(Free()):
            return "map of any JSON"
        case Table(Choice(values)):
            return f"map of {_either(spellings.all_map_values(name, values))}"
        case Table(value):
            return f"map of {type_of(value, '', '')}"
        case Choice(values):
            return _either(spellings.all_values(within, name, values))
        case Text(moment=moment) if moment is not None:
            return f"expression, {schema_nodes.MOMENTS[moment]}"
    return "duration" if is_duration(shape) else _SCALARS[type(shape)]


_SCALARS: Final[dict[type, str]] = {
    Text: "string",
    Whole: "integer",
    Flag: "boolean",
    Size: "size",
    Money: "price",
    Quantity: "quantity",
    Free: "any JSON",
}


def _either(values: tuple[str | int, ...]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def bounds_of(shape: Shape) -> str:
    match shape:
        case Items(item, least, most, unique):
            different = {None: "", "": "no two alike"}.get(unique, f"no two of the same {unique}")
            parts = [_range(least, most, "items"), different, _each(bounds_of(item))]
        case Table(value, least, most):
            parts = [_range(least, most, "entries"), _each(bounds_of(value))]
        case Text() if is_duration(shape):
            parts = ["at least 1ms"] if shape.positive else []
        case Text():
            parts = [_range(shape.min_length, shape.max_length, "characters"), _pattern(shape.pattern)]
        case Whole():
            parts = [_range(shape.minimum, shape.maximum, "")]
        case _:
            parts = []
    return "; ".join(part for part in parts if part)


def _each(bounds: str) -> str:
    return f"each {bounds}" if bounds else ""


def _range(least: int | None, most: int | None, unit: str) -> str:
    if least is None and most is None:
        return ""
    if least is None:
        words = f"at most {most} {unit}"
    else:
        words = f"at least {least} {unit}" if most is None else f"{least} to {most} {unit}"
    return re.sub(r"(at \w+ 1 \w+?)(ie)?s$", lambda match: match[1] + ("y" if match[2] else ""), words.rstrip())


# What people do not write, in words; the rest of patterns without words is shown.
_WORDS: Final = PATTERN_WORDS | {
    status.CONDITION_TYPE_PATTERN: "one word, perhaps after DOMAIN/",
    status.REASON_PATTERN: "one word: letters, digits, `_`, `,` and `:`",
    status.CONTROLLER_PATTERN: "DOMAIN/PATH",
}


def _pattern(pattern: str | None) -> str:
    if pattern is None:
        return ""
    return _WORDS.get(pattern, f"matches `{pattern}`")
