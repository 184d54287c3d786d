"""The standalone file's form of a model: the CRD's own model, with other types for what refers to cluster objects.

`file` decorates its models with `file_form`. The form of a model is a subclass of it, derived once: fields,
bounds and rules stay those of the CRD, except for what the table in `parts` says. Nothing is decided here.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from gatewright.api.standalone.parts import FORMS

_ModelT = TypeVar("_ModelT", bound=BaseModel)


def file_form(model: type[_ModelT]) -> type[_ModelT]:
    """The form that `model` has in the file: a subclass of it, or the model itself where nothing differs."""
    return cast(type[_ModelT], _form(model))


@cache
def _form(model: type[BaseModel]) -> type[BaseModel]:
    if model.__module__ == __name__:
        return model  # made here
    mixin = next((FORMS[parent] for parent in model.__mro__ if parent in FORMS), None)
    bases = (model,) if mixin is None else (mixin, model)
    fields = dict(_changed(bases))
    if not fields and mixin is None:
        return model
    made: type[BaseModel] = create_model(
        model.__name__ if model.__name__.startswith("File") else f"File{model.__name__}",
        __base__=bases,
        __module__=__name__,
        __doc__=model.__doc__,
        **fields,
    )
    return made


def _changed(bases: tuple[type[BaseModel], ...]) -> Iterator[tuple[str, Any]]:
    """Fields whose type has a form of its own in the file, as `create_model` wants them. The first base wins."""
    fields = {name: field for base in reversed(bases) for name, field in base.model_fields.items()}
    for name, field in fields.items():
        before = field.rebuild_annotation()
        after = _substituted(before)
        if after is not before and not any(name in base.__class_vars__ for base in bases):
            yield name, (after, _as_declared(field))


def _as_declared(field: FieldInfo) -> Any:  # Any: what `create_model` takes beside the annotation
    """Default, alias and repr of a field whose type changes; its bounds stand in the annotation."""
    if field.default_factory is not None:
        return Field(default_factory=field.default_factory, alias=field.alias, repr=field.repr)
    return Field(... if field.is_required() else field.default, alias=field.alias, repr=field.repr)


def _substituted(annotation: Any) -> Any:
    """An annotation with the file's form of every model in it; the same object if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _form(annotation)
    if hasattr(annotation, "__metadata__"):
        inner = _substituted(annotation.__origin__)
        return annotation if inner is annotation.__origin__ else Annotated[inner, *annotation.__metadata__]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin not in (Union, types.UnionType, tuple, dict):
        return annotation
    changed = tuple(_substituted(argument) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    return origin[changed] if origin in (tuple, dict) else reduce(or_, changed)
