"""What rules between fields read of a part: whether a field is set, its value, the part as an API server sees it.

Used by `rules`. Fields are named as in the API. A form of the standalone file answers by the CRD's names too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gatewright.api.schema.camel import to_camel, to_snake
from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelError
from gatewright.cel.types import DYN

if TYPE_CHECKING:
    from gatewright.cel.program import Program

Path = tuple[str | int, ...]
"""Where something is below a part."""


def answer(cel: str, values: dict[str, Any]) -> object:
    try:
        return _program(cel, tuple(values)).evaluate(Values(values))
    except CelError as error:
        raise TypeError(f"{cel}: {error}") from error


def is_set(part: BaseModel, name: str) -> bool:
    """Whether a field is there, of a part or of its form in the file."""
    attribute = attribute_of(type(part), name)
    value = getattr(part, attribute)
    return value is not None and (attribute in part.model_fields_set or _is_there(part, attribute, value))


def _is_there(part: BaseModel, attribute: str, value: Any) -> bool:  # Any: what a model holds
    """Of a field that is not written: whether it counts as set. Its default does, but for an absent list, and for
    models whose defaults are not filled in."""
    return value != () and (getattr(part, "fills_in_defaults", True) or attribute not in type(part).model_fields)


def items_of(holder: BaseModel, names: tuple[str, ...], above: Path) -> Iterator[tuple[Path, Any]]:  # Any: items
    """The items of a list of lists, each with where it is; of a map its keys."""
    name, *below = names
    held = read(holder, name) or ()
    for place, item in [(key, key) for key in held] if isinstance(held, dict) else enumerate(held):
        path = (*above, name, place)
        yield from items_of(item, tuple(below), path) if below else [(path, item)]


def read(part: BaseModel, name: str) -> Any:  # Any: what a model holds
    """A field by its name in the API."""
    return getattr(part, attribute_of(type(part), name))


@cache
def attribute_of(model: type[BaseModel], name: str) -> str:
    """The attribute that has a name in the API; of the file's forms it may be a property."""
    by_alias = (attribute for attribute, field in model.model_fields.items() if field.alias == name)
    return next(by_alias, to_snake(name))


@cache
def _program(text: str, variables: tuple[str, ...]) -> Program:
    from gatewright.cel.program import compile_expression  # the language is loaded with the first rule that is asked

    return compile_expression(text, Environment(dict.fromkeys(variables, DYN)))


def fields_of(part: BaseModel, names: set[str] | None = None) -> dict[str, Any]:
    """A part as the object that an API server sees; `names`: of these fields."""
    return {
        name: json_of(getattr(part, attribute))
        for name, attribute in _readable(type(part)).items()
        if (names is None or name in names) and is_set(part, name)
    }


@cache
def _readable(model: type[BaseModel]) -> dict[str, str]:
    """Names in the API to attributes: of fields, and of what a form of the file has under the CRD's name."""
    names = {field.alias or attribute: attribute for attribute, field in model.model_fields.items()}
    parents = [base for base in model.__mro__ if issubclass(base, BaseModel)]
    fields = {attribute for base in parents for attribute in base.model_fields}
    for base in parents:
        names |= {
            to_camel(each): each for each, value in vars(base).items() if isinstance(value, property) and each in fields
        }
    return names


def json_of(value: Any) -> Any:  # Any: what a model holds
    if isinstance(value, BaseModel):
        return fields_of(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [json_of(item) for item in value]
    if isinstance(value, dict):
        return {key: json_of(item) for key, item in value.items()}
    return value
