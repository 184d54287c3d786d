"""Every part of a valid object with its path: the walk that lint's advice and references use.

It visits all models below a value, so it is for lint, where no request waits; decoding has walks of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

Path = tuple[str | int, ...]


def parts(value: BaseModel, path: Path = ()) -> Iterator[tuple[Path, BaseModel]]:
    """The value itself and all models below it, with their paths in API names."""
    waiting = [(path, value)]
    while waiting:
        path, value = here = waiting.pop()
        yield here
        below: list[tuple[Path, BaseModel]] = []
        for attribute, name in _holders(type(value)):
            held = getattr(value, attribute)
            if isinstance(held, BaseModel):
                below.append(((*path, name), held))
            elif isinstance(held, tuple):
                items = enumerate(held)
                below += [((*path, name, index), item) for index, item in items if isinstance(item, BaseModel)]
        waiting += reversed(below)


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
