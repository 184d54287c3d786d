"""What every model of the API is: frozen, camelCase outside, closed to unknown fields, with rules between fields.

The base classes of all other models here. A model says what is valid; it reads no file and knows no other object.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.part_values import attribute_of
from gatewright.api.schema.rules import Rule

MOST_REPEATED = 16
"""Items of one list of which it is said that they are there already."""
BROKEN_RULES = "broken_rules"
"""Type of the pydantic error that carries Broken values in its context under the same name."""


class Broken(NamedTuple):
    """A rule that does not hold: where, in field names of the API below the model, and what must hold."""

    path: tuple[str | int, ...]
    message: str


class Model(BaseModel):
    """A part of an object."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True, defer_build=True
    )


class UnreadRule(NamedTuple):
    """Of a route's rule that is not valid, or of a newer version than the models: it is dropped, or it answers 500."""

    drops: bool
    message: str


class RuledModel(Model):
    """A part whose fields must agree with each other."""

    cel_rules: ClassVar[tuple[Rule, ...]] = ()
    """The rules, which API servers check as well."""
    gateway_only: ClassVar[str] = ""
    """Of a part of our kinds that has a rule in `broken_rules`: what the rule says and why CEL cannot."""
    fills_in_defaults: ClassVar[bool] = True
    """Whether API servers fill in defaults of fields, which counts as setting them."""

    def broken_rules(self) -> Iterator[Broken]:
        """Every rule between fields that does not hold; called when each field by itself is valid. Overridden for what
        no API server checks by a CRD of Gatewright: other groups' kinds, the standalone file, and `gateway_only`."""
        for attributes, rule in _asked(type(self)):
            for attribute in attributes:
                if getattr(self, attribute) is None:
                    break
            else:
                yield from (Broken(*broken) for broken in rule.broken(self))

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        refuse(list(self.broken_rules()))
        return self


_Asked = tuple[tuple[tuple[str, ...], Rule], ...]
_known: dict[type[RuledModel], tuple[tuple[Rule, ...], _Asked]] = {}
"""By model: its rules, and what was made of them."""


def _asked(model: type[RuledModel]) -> _Asked:
    """The rules of a part, each with the attributes without which it says nothing. Most are about what is not there."""
    rules, made = _known.get(model, (None, ()))
    if rules is not model.cel_rules:
        made = tuple((tuple(attribute_of(model, name) for name in rule.needs), rule) for rule in model.cel_rules)
        _known[model] = (model.cel_rules, made)
    return made


def refuse(broken: list[Broken]) -> None:
    """Raise all broken rules as one pydantic error, if there are any."""
    if broken:
        raise PydanticCustomError(BROKEN_RULES, "rules between fields", {BROKEN_RULES: broken})


def one_of(model: BaseModel, *names: str) -> Iterator[Broken]:
    """Exactly one of the fields must be set; `names` are attribute names. `{}` counts as set."""
    chosen = [to_camel(name) for name in names if getattr(model, name) is not None]
    every = ", ".join(to_camel(name) for name in names)
    if not chosen:
        yield Broken((), f"exactly one of {every} must be set")
    for name in chosen[1:]:
        yield Broken((name,), f"exactly one of {every} must be set; {chosen[0]} is set already")


_Items = TypeVar("_Items", bound=Sequence[Any])


@dataclass(frozen=True, slots=True)
class Unique(AfterValidator):
    """A validator of lists that says what it checks, for generators: items differ in `field`, None is the item."""

    field: str | None = None


def unique(key: Callable[[Any], Hashable], *, field: str | None) -> AfterValidator:
    """A validator of lists: no two items with the same `key`; `field` is the field of the item that is to blame."""

    def check(items: _Items) -> _Items:
        if len(items) < 2:
            return items
        if len(set(map(key, items))) != len(items):
            refuse(list(islice(_repeated(items, key, field), MOST_REPEATED)))
        return items

    return Unique(check, field)


def _repeated(items: Sequence[Any], key: Callable[[Any], Hashable], field: str | None) -> Iterator[Broken]:
    seen: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(key(item), index)
        if first != index:
            yield Broken((index,) if field is None else (index, field), f"must be unique; item {first} has the same")


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model class inside `X`, `X | None`, `tuple[X, ...]`, `Annotated[...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if hasattr(annotation, "__metadata__"):
        return model_in(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType, tuple, list):
        return next((found for argument in get_args(annotation) if (found := model_in(argument))), None)
    return None
