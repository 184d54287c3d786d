"""Every field of our kinds and of the standalone file, and every value of its enums, by the part that declares it.

A part that stands at many places is one, at the place where it is least deep. Called by the page and its test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from pydantic import BaseModel

from gatewright.api.checks.honoured import STANDALONE
from gatewright.api.generate.shapes import Choice, Field, Items, Part, Shape, Table, fields_of
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectMeta
from gatewright.api.schema.names import OUR_KINDS
from gatewright.api.standalone.file import StandaloneFile

MODELS: Final[dict[str, type[BaseModel]]] = {kind: KINDS[kind].model for kind in OUR_KINDS} | {
    STANDALONE: StandaloneFile
}

EXTENSION: Final = "Gatewright extension"
"""What descriptions of fields say that are not in the specification."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field, or a value of its enum (`value`, else "")."""

    kind: str
    path: str
    part: str
    field: str
    value: str
    default: str
    is_extension: bool

    @property
    def key(self) -> str:
        """What names it in fields.tsv."""
        return f"{self.part}.{self.field}" + (f"={self.value}" if self.value else "")


@cache
def rows() -> tuple[Row, ...]:
    """All of them, in the order of the models."""
    known: dict[str, Row] = {}
    for kind, model in MODELS.items():
        for row in sorted(_rows(kind, model), key=lambda row: row.path.count(".")):
            known.setdefault(row.key, row)
    order = {kind: index for index, kind in enumerate(MODELS)}
    return tuple(sorted(known.values(), key=lambda row: order[row.kind]))


def _rows(kind: str, model: type[BaseModel]) -> Iterator[Row]:
    waiting, seen = [("", model)], {model}
    while waiting:
        path, part = waiting.pop(0)
        for field in fields_of(part):
            here = f"{path}.{field.name}".removeprefix(".")
            yield from _of_field(kind, here, declaring(part, field.attribute), field)
            below, inner = innermost(field.shape)
            if isinstance(inner, Part) and inner.model is not ObjectMeta and inner.model not in seen:
                seen.add(inner.model)
                waiting.append((here + below, inner.model))


def _of_field(kind: str, path: str, part: str, field: Field) -> Iterator[Row]:
    default = "" if field.default is None else str(field.default)
    inner = innermost(field.shape)[1]
    for value in ("", *(inner.values if isinstance(inner, Choice) else ())):
        yield Row(kind, path, part, field.name, str(value), default, EXTENSION in field.description)


def innermost(shape: Shape) -> tuple[str, Shape]:
    """What a path needs to reach what lists and maps hold, and that."""
    if isinstance(shape, Items):
        below, inner = innermost(shape.item)
        return f"[]{below}", inner
    if isinstance(shape, Table):
        below, inner = innermost(shape.value)
        return f".NAME{below}", inner
    return "", shape


def declaring(model: type[BaseModel], attribute: str) -> str:
    """The name of the class that has a field first."""
    holders = (each.__name__ for each in reversed(model.__mro__) if attribute in vars(each).get("__annotations__", ()))
    return next(holders, model.__name__).strip("_")
