"""From the path of an error to the model and field that it is about.

Called by the words for errors. It reads models and no values.
"""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gatewright.api.schema.model import model_in

Path = tuple[str | int, ...]


def model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model at the end of a path in API names; None where there is none (a scalar, an unknown field)."""
    current: type[BaseModel] | None = model
    of_map: type[BaseModel] | None = None
    for part in path:
        if isinstance(part, int):
            continue
        if of_map is not None:  # `part` is a key of the user's
            current, of_map = of_map, None
            continue
        field = field_of(current, part) if current else None
        current = model_in(field.annotation) if field else None
        of_map = _model_in_map(field.annotation) if field else None
    return current


def _model_in_map(annotation: Any) -> type[BaseModel] | None:
    """The model that the values of a map are, if a field holds one."""
    plain = bare(annotation)[0]
    return model_in(get_args(plain)[1]) if get_origin(plain) is dict else None


def names_of(model: type[BaseModel]) -> list[str]:
    """The fields of a model, as users write them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def field_of(model: type[BaseModel], name: str | int) -> FieldInfo | None:
    """A field of a model, by the name that users write or by that of the attribute."""
    for attribute, field in model.model_fields.items():
        if name in (field.alias, attribute):
            return field
    return None


def bare(annotation: Any, metadata: tuple[Any, ...] = ()) -> tuple[Any, tuple[Any, ...]]:
    """A type without `Annotated` and `| None` around it, and the metadata of those."""
    if hasattr(annotation, "__metadata__"):
        return bare(get_args(annotation)[0], metadata + annotation.__metadata__)
    if get_origin(annotation) in (Union, types.UnionType):
        return bare(get_args(annotation)[0], metadata)
    return annotation, metadata
