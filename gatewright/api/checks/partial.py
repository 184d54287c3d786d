"""Rules between the fields of an object that has other errors, so that all of them are reported at once.

Called when decoding failed. pydantic checks the rules of a part only when everything in it is valid; here a part is
built from what is valid in it, and its rules are asked if none of its own fields is wrong, whatever is wrong deeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined

from gatewright.api.schema.model import Broken, RuledModel, model_in

Path = tuple[str | int, ...]


class _Wrong:
    """In place of a wrong value: equal to nothing, and a rule that works with it gets no answer."""


def broken_rules(model: type[BaseModel], document: Any) -> list[Broken]:
    """Every rule that does not hold in `document`, which is not valid for `model`; paths begin at the document."""
    broken: list[Broken] = []
    _part(model, document, (), broken)
    return broken


def _part(model: type[BaseModel], value: Any, path: Path, broken: list[Broken]) -> Any:
    """An instance with what is valid in `value`; rules that do not hold in it are added to `broken`."""
    try:
        return model.model_validate(value)
    except ValidationError:
        pass
    if not isinstance(value, dict):
        return _Wrong()
    attributes, written, is_sound = _absent(model).copy(), set(), True
    for name, alias in _names(model):
        raw = value.get(alias, PydanticUndefined)
        if raw is not PydanticUndefined:
            written.add(name)
            attributes[name], field_is_sound = _field(model, name, raw, (*path, alias), broken)
            is_sound = is_sound and field_is_sound
    for name in _required(model) - written:
        attributes[name], is_sound = _Wrong(), False
    instance = model.__new__(model)
    object.__setattr__(instance, "__dict__", attributes)
    object.__setattr__(instance, "__pydantic_fields_set__", written)
    if is_sound and isinstance(instance, RuledModel):
        broken += (rule._replace(path=(*path, *rule.path)) for rule in _asked(instance))
    return instance


def _field(model: type[BaseModel], name: str, raw: Any, path: Path, broken: list[Broken]) -> tuple[Any, bool]:
    """The value of a field that is there, and whether it is sound: valid, or a part whose errors are its own."""
    try:
        return _adapter(model, name).validate_python(raw), True
    except ValidationError:
        pass
    inner = model_in(model.model_fields[name].annotation)
    if inner is not None and isinstance(raw, dict):
        return _part(inner, raw, path, broken), True
    if inner is not None and isinstance(raw, list):
        return tuple(_part(inner, item, (*path, index), broken) for index, item in enumerate(raw)), True
    return _Wrong() if name in _required(model) else _absent(model)[name], False


# What a model says of its fields, made once: asking it for each of many parts was most of what they cost.


@cache
def _names(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """Each field, and how users write it."""
    return tuple((name, field.alias or name) for name, field in model.model_fields.items())


@cache
def _required(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, field in model.model_fields.items() if field.is_required())


@cache
def _absent(model: type[BaseModel]) -> dict[str, Any]:
    """The values of fields that may be omitted. Rules only read them."""
    optional = ((name, field) for name, field in model.model_fields.items() if not field.is_required())
    return {name: field.get_default(call_default_factory=True, validated_data={}) for name, field in optional}


@cache
def _adapter(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    return TypeAdapter(model.model_fields[name].rebuild_annotation())


def _asked(instance: RuledModel) -> Iterator[Broken]:
    """Broken rules, until one stumbles over a wrong value."""
    try:
        yield from instance.broken_rules()
    except (AttributeError, TypeError, ValueError):
        return  # what made it stumble has an error of its own
