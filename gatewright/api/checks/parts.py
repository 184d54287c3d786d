"""Every part of a valid object with its path: the walk that lint's advice and references use.

It visits all models below a value, so it is for lint, where nobody waits; decoding has walks of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

Path = tuple[str | int, ...]


def parts(value: BaseModel, path: Path = ()) -> Iterator[tuple[Path, BaseModel]]:
    """The value itself and all models below it, with their paths in API names."""
    yield path, value
    for attribute, field in type(value).model_fields.items():
        below = getattr(value, attribute)
        place = (*path, field.alias or attribute)
        if isinstance(below, BaseModel):
            yield from parts(below, place)
        elif isinstance(below, tuple):
            for index, item in enumerate(below):
                if isinstance(item, BaseModel):
                    yield from parts(item, (*place, index))
