"""Rules between the fields of a part, as data, which both an API server and the models evaluate.

A rule stands in its model (`RuledModel.cel_rules`) and nowhere else. The generator writes its CEL into the CRD. Here
the product's own engine evaluates it, so both say the same of an object; the two plainest kinds, that one field of
several is set and that two are not set together, are asked of the attributes, because many objects have them and they
name the field to blame. Fields are named as in the API.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelError
from gatewright.cel.types import DYN

if TYPE_CHECKING:
    from gatewright.cel.program import Program


Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule over `self`, the part, and what must hold. `one_of`: it says that exactly one of these fields is set,
    `apart`: that no two of these are. `path`: the field to blame, below the part."""

    cel: str
    message: str
    one_of: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    path: Path = ()

    def broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        """Where it does not hold and what must hold; nothing when it holds."""
        if not holds(self, part):
            blamed = f"{self.path[-1]} " if self.path else ""
            yield self.path, self.message.removeprefix(blamed)


class OneOf(Rule):
    """Exactly one of the fields is set; `{}` counts as set."""

    __slots__ = ()

    def broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        chosen = [name for name in self.one_of if _is_set(part, name)]
        if not chosen:
            yield (), self.message
        for name in chosen[1:]:
            yield (name,), f"{self.message}; {chosen[0]} is set already"


class Apart(Rule):
    """Two fields are not set together; the second is to blame."""

    __slots__ = ()

    def broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        one, other = self.apart
        if _is_set(part, one) and _is_set(part, other):
            yield (other,), self.message.removeprefix(f"{other} ")


def exactly_one(*names: str) -> Rule:
    """Exactly one of the fields is set."""
    is_set = ", ".join(f"has(self.{name})" for name in names)
    message = f"exactly one of {', '.join(names)} must be set"
    return OneOf(f"[{is_set}].filter(x, x).size() == 1", message, names)


def not_both(one: str, other: str, message: str = "") -> Rule:
    """At most one of two fields is set."""
    cel = f"!(has(self.{one}) && has(self.{other}))"
    return Apart(cel, message or f"{other} must be absent when {one} is set", apart=(one, other))


def only_with(name: str, condition: str, message: str) -> Rule:
    """The field is set only where `condition` holds."""
    return Rule(f"!has(self.{name}) || {condition}", f"{name} {message}", path=(name,))


def fields_read(rule: Rule) -> set[str]:
    """The fields of the part that a rule asks for."""
    return set(re.findall(r"\bself\.(\w+)\b(?!\()", rule.cel))


def holds(rule: Rule, part: BaseModel) -> bool:
    """Whether a rule holds of a part. Raises TypeError where it has no answer, as of a value that is not valid itself.

    As for an API server a field is there when it is set or has a default; an absent list is not there.
    """
    try:
        return _program(rule.cel).evaluate(Values({"self": _fields(part, fields_read(rule))})) is True
    except CelError as error:
        raise TypeError(f"{rule.cel}: {error}") from error


def _is_set(part: BaseModel, name: str) -> bool:
    return getattr(part, _attribute(type(part), name)) is not None


@cache
def _attribute(model: type[BaseModel], name: str) -> str:
    """The attribute that has a name in the API; of the file's forms it may be a property."""
    by_alias = (attribute for attribute, field in model.model_fields.items() if field.alias == name)
    return next(by_alias, re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name))


_PART: Final = {"self": DYN}


@cache
def _program(text: str) -> Program:
    from gatewright.cel.program import compile_expression  # the language is loaded with the first rule that is asked

    return compile_expression(text, Environment(_PART))


def _fields(part: BaseModel, names: set[str] | None = None) -> dict[str, Any]:
    """A part as the object that an API server sees; `names`: of these fields."""
    found = {}
    for attribute, field in type(part).model_fields.items():
        name = field.alias or attribute
        value = getattr(part, attribute)
        if value is None or (value == () and attribute not in part.model_fields_set):
            continue
        if names is None or name in names:
            found[name] = _value(value)
    return found


def _value(value: Any) -> Any:  # Any: what a model holds
    if isinstance(value, BaseModel):
        return _fields(value)
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    return value
