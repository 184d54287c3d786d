"""The table as environments of the language, one for each moment.

Called by the control plane to check an expression, by workers to plan it, by `gatewright cel` for both.
"""

from __future__ import annotations

from functools import cache

from gatewright.cel.environment import Environment, Field
from gatewright.cel.types import DYN, ObjectType, Type
from gatewright.variables.moments import Moment, exists
from gatewright.variables.table import CHILDREN
from gatewright.variables.variable import OPEN, Variable


@cache
def environment(moment: Moment) -> Environment:
    """What an expression of that moment may read, with all functions of the language. Always the same object."""
    return Environment(_fields("", moment))


def _fields(path: str, moment: Moment) -> list[Field]:
    return [_field(row, moment) for row in CHILDREN[path] if exists(row.since, moment)]


def _field(row: Variable, moment: Moment) -> Field:
    return Field(
        row.name,
        _type(row, moment),
        attribute=row.attribute,
        doc=row.doc,
        lookup=row.lookup,
        fold=bool(row.lookup),
        parsed=row.parsed,
        parameters=row.parameters,
        optional=row.maybe,
    )


def _type(row: Variable, moment: Moment) -> Type:
    if not row.is_object:
        return row.type
    return ObjectType(row.path, _fields(row.path, moment), DYN if row.type is OPEN else None)
