"""Objects for people's eyes: as decoded, without the fields that hold secrets.

Called by the composition root for the admin page. The models say which fields these are: those without a repr (Secret
data, users and keys that a policy writes itself).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from gatewright.api.schema.metadata import KubeObject

Json = dict[str, Any]  # Any: JSON


def shown(item: KubeObject) -> Json:
    """The object in API names, secrets and what is unset left out."""
    content: Json = item.model_dump(mode="json", by_alias=True, exclude_none=True)
    _hide(item, content)
    return content


def _hide(value: BaseModel, content: Json) -> None:
    for attribute, field in type(value).model_fields.items():
        name = field.alias or attribute
        if name not in content:
            continue
        if not field.repr:
            del content[name]
            continue
        for part, part_content in _parts(getattr(value, attribute), content[name]):
            _hide(part, part_content)


def _parts(value: Any, content: Any) -> Iterator[tuple[BaseModel, Json]]:  # Any: a field and its JSON
    """The models in a field, each with its JSON."""
    if isinstance(value, BaseModel):
        yield value, content
    elif isinstance(value, tuple):
        for item, item_content in zip(value, content, strict=True):
            yield from _parts(item, item_content)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _parts(item, content[name])
