"""Rules between the fields of a part, as data: CEL that both an API server and the models evaluate.

A rule stands in its model (`RuledModel.cel_rules`) and nowhere else. The generator writes it into the CRD; here the
product's own engine evaluates it, so both say the same of an object. Fields are named as in the API.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from gatewright.cel.environment import Environment, Values
from gatewright.cel.errors import CelError
from gatewright.cel.types import DYN

if TYPE_CHECKING:
    from gatewright.cel.program import Program


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule over `self`, the part, and what must hold. `one_of`: it says that exactly one of these fields is set,
    `apart`: that no two of these are. `path`: the field to blame, below the part."""

    cel: str
    message: str
    one_of: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    path: tuple[str | int, ...] = ()


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
