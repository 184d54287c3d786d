"""Every part of a valid object with its path: the walk that lint's advice and references use.

It visits all models below a value, so it is for lint, where nobody waits; decoding has walks of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

Path = tuple[str | int, ...]


def parts(value: BaseModel, path: Path = ()) -> Iterator[tuple[Path, BaseModel]]:
    """The value itself and all models below it, with their paths in API names."""
    yield path, value
    for attribute, name in _holders(type(value)):
        below = getattr(value, attribute)
        if isinstance(below, BaseModel):
            yield from parts(below, (*path, name))
        elif isinstance(below, tuple):
            for index, item in enumerate(below):
                if isinstance(item, BaseModel):
                    yield from parts(item, (*path, name, index))


@cache
def _holders(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """The fields that may hold models, with their API names; most hold text and numbers alone."""
    return tuple(
        (attribute, field.alias or attribute)
        for attribute, field in model.model_fields.items()
        if _may_hold_models(field.annotation)
    )


def _may_hold_models(annotation: Any) -> bool:
    """Whether a model, or what is not known, is part of a type."""
    below = get_args(annotation)
    if below:
        return any(map(_may_hold_models, below))
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return is_model or annotation in (Any, object) or isinstance(annotation, TypeVar)
