"""What a field may hold, read once from a model's annotations: the one form that all generators start from.

Called by the generators. Annotations, not pydantic's JSON schema, are read: that schema does not say what a list's
items must differ in, when an expression runs, or that a text is a size. An annotation or validator that is not known
here is an error, so that no bound of a model is lost on the way to a CRD.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, Strict, StringConstraints
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gatewright.api.generate import descriptions
from gatewright.api.schema import byte_size, duration, fields, targets
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.cel_field import Expression
from gatewright.api.schema.model import Unique
from gatewright.variables.moments import Moment

Default: TypeAlias = str | int | bool | list[str] | None


@dataclass(frozen=True, slots=True)
class Text:
    """A string. `positive`: a duration of at least 1 ms. `moment`: it is an expression, evaluated then."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    positive: bool = False
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words or numbers."""

    values: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """A ByteSize."""


@dataclass(frozen=True, slots=True)
class Money:
    """A price."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A Kubernetes quantity, as in a Pod's resources."""


@dataclass(frozen=True, slots=True)
class Free:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list. `unique`: the field that its items must differ in, "" for the items themselves, None for nothing."""

    item: Shape
    min_items: int | None = None
    max_items: int | None = None
    unique: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A map from names of the user's to values."""

    value: Shape
    min_items: int | None = None
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part with fields of its own."""

    model: type[BaseModel]


Shape: TypeAlias = Text | Whole | Flag | Choice | Size | Money | Quantity | Free | Items | Table | Part


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a part. `default` is None where there is none that a user could write."""

    name: str
    attribute: str
    shape: Shape
    required: bool
    default: Default
    description: str


@cache
def fields_of(model: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a model in their order; worked out once, since a model stands in dozens of places."""
    return tuple(
        Field(
            name=info.alias or to_camel(attribute),
            attribute=attribute,
            shape=_bounded(_shape(info.annotation), info.metadata),
            required=info.is_required(),
            default=_default(info),
            description=descriptions.of_field(model, attribute),
        )
        for attribute, info in model.model_fields.items()
    )


def parts_of(shape: Shape) -> Iterator[type[BaseModel]]:
    """The models directly inside a shape."""
    match shape:
        case Part(model):
            yield model
        case Items(item=inner) | Table(value=inner):
            yield from parts_of(inner)


def models_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """`model` and every model inside it, each once, in the order of fields."""
    seen: set[type[BaseModel]] = set()
    waiting = [model]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        waiting += reversed([part for field in fields_of(current) for part in parts_of(field.shape)])


def _default(info: FieldInfo) -> Default:
    value = None if info.default is PydanticUndefined else info.default
    if isinstance(value, tuple):
        return list(value) if value and all(isinstance(item, str) for item in value) else None
    return value if isinstance(value, str | int) else None


_SCALARS: Final[dict[Any, Shape]] = {str: Text(), int: Whole(), bool: Flag(), Any: Free()}


def _shape(annotation: Any) -> Shape:  # Any: annotations have no type of their own
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Part(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bounded(_shape(arguments[0]), arguments[1:])
    if origin is Literal:
        return Choice(arguments)
    if origin is tuple:
        return Items(_shape(arguments[0]))
    if origin is dict:
        return Table(_shape(arguments[1]))
    if origin in (Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not types.NoneType])
    raise TypeError(f"no generator knows the annotation {annotation!r}")


def _union(options: list[Any]) -> Shape:
    if len(options) == 1:
        return _shape(options[0])
    if sorted(type(_shape(option)).__name__ for option in options) == ["Text", "Whole"]:
        return Quantity()
    raise TypeError(f"no generator knows the union of {options!r}")


# Validators of single values, and what they make of a shape.
_VALIDATORS: Final[dict[Callable[..., Any], Callable[[Any], Shape]]] = {
    fields._at_least_a_millisecond: lambda shape: _with(shape, positive=True),
    fields._is_byte_size: lambda _: Size(),
    fields._is_price: lambda _: Money(),
}


def _validated(shape: Shape, check: Callable[..., Any]) -> Shape:
    if getattr(check, "__module__", "") == targets.__name__:
        return shape  # texts of the standalone file that no schema can check; lint does
    return _VALIDATORS[check](shape)


def _bounded(shape: Shape, metadata: Any) -> Shape:
    for mark in metadata:
        shape = _marked(shape, mark)
    return shape


def _marked(shape: Shape, mark: Any) -> Shape:
    match mark:
        case FieldInfo():
            return _bounded(shape, mark.metadata)
        case AfterValidator() | PlainValidator() | BeforeValidator() if not isinstance(mark, Unique):
            return _validated(shape, mark.func)
        case Strict():
            return shape
    return _with(shape, **_bounds(shape, mark))


def _bounds(shape: Shape, mark: Any) -> dict[str, Any]:
    """What a mark says of a shape, by attribute of the shape."""
    unit = "length" if isinstance(shape, Text) else "items"
    match mark:
        case Unique():
            return {"unique": mark.field or ""}
        case Expression():
            return {"moment": mark.moment}
        case StringConstraints():
            return {"pattern": mark.pattern, "min_length": mark.min_length, "max_length": mark.max_length}
        case Ge():
            return {"minimum": mark.ge}
        case Le():
            return {"maximum": mark.le}
        case MinLen():
            return {f"min_{unit}": mark.min_length}
        case MaxLen():
            return {f"max_{unit}": mark.max_length}
    if pattern := getattr(mark, "pattern", None):  # pydantic's own carrier of a pattern has no public name
        return {"pattern": pattern}
    raise TypeError(f"no generator knows the mark {mark!r}")


def _with(shape: Shape, **changes: Any) -> Shape:
    changed: Shape = replace(shape, **changes)  # a TypeError where the shape has no such bound
    return changed


DURATION_LENGTH: Final = 28
"""The longest text that the pattern of durations allows."""


def is_duration(shape: Shape) -> bool:
    """Whether a text is a duration."""
    return isinstance(shape, Text) and shape.pattern == duration.PATTERN


MAX_SIZE: Final = byte_size.MAXIMUM
