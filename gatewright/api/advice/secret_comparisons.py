"""Expressions that compare a secret as it shows itself, which is never the secret: `apiKey.key == "k-1"` is false.

Called by the warnings about one object. Texts are searched, not read: it knows the names of the secrets and no syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel

from gatewright.api.checks.expressions import expression_fields
from gatewright.api.checks.parts import Path


def comparisons(part: BaseModel) -> Iterator[tuple[Path, str]]:
    """Path within `part` and name of each secret that an expression of its own fields compares."""
    for attribute, name in _with_expressions(type(part)):
        for path, text in _texts(getattr(part, attribute), (name,)):
            found = _compared().search(text)
            if found is not None:
                yield path, found[1] or found[2]


@cache
def _with_expressions(model: type[BaseModel]) -> tuple[tuple[str, str], ...]:
    """Attributes with expressions, and their names in the API."""
    marked = {field.name for field in expression_fields(model) if field.mark is not None}
    named = ((attribute, field.alias or attribute) for attribute, field in model.model_fields.items())
    return tuple((attribute, name) for attribute, name in named if name in marked)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, tuple):
        yield from (((*path, index), item) for index, item in enumerate(value) if isinstance(item, str))
    elif isinstance(value, dict):
        yield from (((*path, key), item) for key, item in value.items() if isinstance(item, str))


@cache
def _compared() -> re.Pattern[str]:
    from gatewright.variables.table import VARIABLES

    name = "|".join(re.escape(each.path) for each in VARIABLES if each.secret)
    return re.compile(rf"\b({name})\s*(?:[=!]=|in\b)|[=!]=\s*({name})\b(?!\s*\.)")
