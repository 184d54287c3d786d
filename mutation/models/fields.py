"""Changes of single bounds of a model's fields: each dropped, each moved by one, each value of an enum taken away.

Called by `mutation.models`. A changed model is a subclass with one field declared anew; nothing else is touched.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import annotated_types
from pydantic import AfterValidator, BaseModel, PlainValidator, Strict
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from gatewright.api.schema.cel_field import Expression

Model = type[BaseModel]


class Mutant(NamedTuple):
    """A changed class, and what was changed."""

    what: str
    model: Model


def mutants(model: Model) -> Iterator[Mutant]:
    """Every change of one bound of one field of the class, and the class without the bound of its fields."""
    open_to_others: Any = type(model)
    yield Mutant(
        f"{model.__name__}: unknown fields",
        open_to_others(model.__name__, (model,), {"__module__": model.__module__}, extra="ignore", defer_build=False),
    )
    for name, info in model.model_fields.items():
        annotation = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        for what, changed in _annotations(annotation):
            yield Mutant(f"{model.__name__}.{name}: {what}", _with(model, name, changed, info))
        if info.is_required():
            yield Mutant(f"{model.__name__}.{name}: not required", _with(model, name, annotation, info, default=None))
        else:
            yield Mutant(f"{model.__name__}.{name}: required", _with(model, name, annotation, info, default=...))


_KEPT: Any = object()


def _with(model: Model, name: str, annotation: Any, info: FieldInfo, default: Any = _KEPT) -> Model:
    """A subclass in which the field is declared with another annotation or default."""
    value = info.get_default(call_default_factory=True, validated_data={}) if default is _KEPT else default
    if default is _KEPT and info.is_required():
        value = ...
    declared = FieldInfo(annotation=annotation, default=value, alias=info.alias)
    declared._attributes_set.pop("annotation", None)
    namespace = {"__annotations__": {name: annotation}, name: declared, "__module__": model.__module__}
    make: Any = type(model)
    changed: Model = make(model.__name__, (model,), namespace, defer_build=False)
    return changed


def _annotations(annotation: Any) -> Iterator[tuple[str, Any]]:
    """Every annotation that differs in one bound."""
    origin = get_origin(annotation)
    if hasattr(annotation, "__metadata__"):
        yield from _annotated(annotation)
    elif origin is Literal:
        yield from _literal(get_args(annotation))
    elif origin in (Union, types.UnionType):
        yield from _one_argument(get_args(annotation), lambda changed: Union[changed])  # noqa: UP007
    elif origin is tuple:
        (item, _) = get_args(annotation)
        yield "any items", tuple[Any, ...]
        yield "any type", Any
        yield from ((f"items: {what}", tuple.__class_getitem__((changed, ...))) for what, changed in _annotations(item))
    elif origin is dict:
        (key, value) = get_args(annotation)
        yield "any type", Any
        yield from (
            (f"values: {what}", dict.__class_getitem__((key, changed))) for what, changed in _annotations(value)
        )
    elif annotation not in (Any, types.NoneType):
        yield "any type", Any


def _one_argument(arguments: tuple[Any, ...], make: Any) -> Iterator[tuple[str, Any]]:
    for index, argument in enumerate(arguments):
        for what, changed in _annotations(argument):
            yield what, make((*arguments[:index], changed, *arguments[index + 1 :]))


def _literal(values: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    yield "any value", type(values[0])
    yield "any type", Any
    if len(values) > 1:
        for value in values:
            yield f"without {value}", Literal[tuple(each for each in values if each != value)]


def _annotated(annotation: Any) -> Iterator[tuple[str, Any]]:
    inner = get_args(annotation)[0]
    bounds = [bound for each in annotation.__metadata__ for bound in _flat(each)]
    for index, bound in enumerate(bounds):
        others = [*bounds[:index], *bounds[index + 1 :]]
        for what, replacement in _changes(bound, others):
            yield what, Annotated[(inner, *replacement)] if replacement else inner
    for what, changed in _annotations(inner):
        # What no longer is of its type has no length or size that could be compared.
        yield what, changed if "any type" in what else Annotated[(changed, *bounds)]


def _flat(metadata: Any) -> Iterator[Any]:
    """The bounds in one item of metadata; a Field() holds several."""
    if isinstance(metadata, FieldInfo):
        yield from metadata.metadata
    else:
        yield metadata


_NUMBERS: dict[type, str] = {
    annotated_types.MinLen: "min_length",
    annotated_types.MaxLen: "max_length",
    annotated_types.Ge: "ge",
    annotated_types.Le: "le",
}


def _changes(bound: Any, others: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """What can be done with one bound beside others."""
    name = _NUMBERS.get(type(bound))
    if name is not None:
        value = getattr(bound, name)
        pattern = next((each for each in others if _pattern(each) is not None), None)
        implied = name == "min_length" and pattern is not None and not re.search(_pattern(pattern) or "", "")
        # A pattern that refuses empty text says the same as a least length of 1: both must go before "" is accepted.
        yield f"without {name}", [each for each in others if not (implied and each is pattern)]
        # Not every place has an expression of one character that is of the right type.
        steps = (
            (value - 1,)
            if any(isinstance(each, Expression) for each in others) and value == 1
            else (value - 1, value + 1)
        )
        for moved in steps:
            loosened = moved < value if name in ("min_length", "ge") else moved > value
            if not (loosened and implied) and moved >= (0 if "length" in name else moved):
                yield f"{name} {moved}", [*others, type(bound)(moved)]
    elif _pattern(bound) is not None:
        yield f"without pattern {_pattern(bound)}", [_tolerant(each) for each in others]
    elif isinstance(bound, AfterValidator | PlainValidator | Strict):
        yield f"without {type(bound).__name__}", others


def _tolerant(bound: Any) -> Any:
    """A validator that passes text that it cannot read, which is what the pattern beside it refuses as well."""
    if not isinstance(bound, AfterValidator):
        return bound
    check: Any = bound.func

    def tolerant(value: Any) -> Any:
        try:
            return check(value)
        except PydanticCustomError:
            raise
        except ValueError:
            return value

    return AfterValidator(tolerant)


def _pattern(bound: Any) -> str | None:
    return getattr(bound, "pattern", None)
