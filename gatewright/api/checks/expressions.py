"""The expressions of an object: found by the marks of its models, checked against what may be read at their moment.

Called by decoding, for every document of a kind that can hold expressions, on the document's values: so the mistakes of
expressions are reported together with all others. The language is loaded when the first expression is met. What is
known of a text is kept, because thousands of objects share theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from pydantic import BaseModel

from gatewright.api.checks.errors import MOST_SHOWN, Finding
from gatewright.api.checks.field_paths import Path
from gatewright.api.schema.cel_field import MAX_LENGTH, Expression, Result
from gatewright.api.schema.model import model_in
from gatewright.variables.moments import Moment

if TYPE_CHECKING:
    from gatewright.cel.errors import Problem

KNOWN_TEXTS: Final = 16_384
"""How many checked texts are kept."""

MOST_MISTAKES: Final = 8
"""How many mistakes of one expression are shown; a text of 16 KiB can have thousands."""


class _Field(NamedTuple):
    """A field with expressions somewhere below it. `marks`: it is itself one, or a list or map of them."""

    name: str
    mark: Expression | None
    below: type[BaseModel] | None


def broken_expressions(model: type[BaseModel], document: Any) -> list[Finding]:
    """Every mistake in an expression of `document`, which is to be a `model`; values of another shape are left to the
    model. Costs nothing for a model without expressions."""
    fields = expression_fields(model)
    if not fields:
        return []
    found: list[Finding] = []
    for path, text, mark, parent in _found(document, fields, ()):
        if len(found) >= MOST_SHOWN:
            found.append(Finding(path, "is not looked at before the others are mended"))
        else:
            found += (Finding(path, message) for message in _mistakes(text, mark, parent))
    return found


def expression_texts(model: type[BaseModel], document: Any) -> Iterator[str]:  # Any: JSON
    """All expressions of `document` that are looked at, each as often as it is there."""
    return (text for _, text, _, _ in _found(document, expression_fields(model), ()))


@cache
def expression_fields(model: type[BaseModel]) -> tuple[_Field, ...]:
    """The fields of a model that are expressions, or have some below them."""
    fields = []
    for name, field in model.model_fields.items():
        mark = next((item for item in field.metadata if isinstance(item, Expression)), None) or _mark(field.annotation)
        below = model_in(field.annotation) if mark is None else None
        if mark is not None or (below is not None and expression_fields(below)):
            fields.append(_Field(field.alias or name, mark, below))
    return tuple(fields)


def _mark(annotation: Any) -> Expression | None:
    """The mark inside `X | None`, `tuple[X, ...]`, `dict[str, X]`, `Annotated[...]`."""
    own = next((item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, Expression)), None)
    return own or next((mark for argument in get_args(annotation) if (mark := _mark(argument))), None)


_Found = tuple[Path, str, Expression, dict[str, Any]]


def _found(value: Any, fields: tuple[_Field, ...], path: Path) -> Iterator[_Found]:
    """Path, text, mark and surrounding object of every expression."""
    if not isinstance(value, dict):
        return
    for name, mark, below in fields:
        for place, part in _parts(value.get(name), (*path, name), mark is not None):
            if mark is None:
                assert below is not None  # the table says so: one of the two is there
                yield from _found(part, expression_fields(below), place)
            elif isinstance(part, str) and 0 < len(part) <= MAX_LENGTH:
                yield place, part, mark, value


def _parts(value: Any, path: Path, maps: bool) -> Iterator[tuple[Path, Any]]:
    """The value, or the items of a list, or the values of a map."""
    if isinstance(value, list):
        yield from (((*path, index), part) for index, part in enumerate(value))
    elif maps and isinstance(value, dict):
        yield from (((*path, str(key)), part) for key, part in value.items())
    elif value is not None:
        yield path, value


def _mistakes(text: str, mark: Expression, parent: dict[str, Any]) -> tuple[str, ...]:
    if mark.literal and re.fullmatch(mark.literal, text):
        return ()
    earlier = mark.earlier is not None and parent.get(mark.earlier[0], mark.earlier[1]) == mark.earlier[1]
    return mistakes(text, "request" if earlier else mark.moment, mark.result, *mark.unread)


@lru_cache(KNOWN_TEXTS)
def mistakes(text: str, moment: Moment, result: Result, unread: tuple[str, ...] = (), why: str = "") -> tuple[str, ...]:
    """What is wrong with an expression, each with its position; nothing when it can work. `unread`: what it cannot
    read at that moment, and `why`."""
    from gatewright.cel.errors import ExpressionError
    from gatewright.cel.program import compile_expression
    from gatewright.variables.environments import environment
    from gatewright.variables.later import explained

    try:
        program = compile_expression(text, environment(moment))
    except ExpressionError as failure:
        shown = [_shown(text, problem) for problem in explained(text, moment, failure.problems[:MOST_MISTAKES])]
        return (*shown, *([f"{more} more like these"] if (more := len(failure.problems) - len(shown)) else []))
    read = [name for name in unread if program.references.reads(name)]
    if read:
        return (f"cannot read {read[0]}: {why}",)
    given = program.type
    if not result.kinds or given.kind in result.kinds or given.kind == "dyn":
        return ()
    return (f"must give {result.words}, gives {given}",)


def is_constant(text: str, moment: Moment) -> bool:
    """Whether an expression reads nothing; not one that cannot work."""
    from gatewright.cel.errors import ExpressionError
    from gatewright.cel.program import compile_expression
    from gatewright.variables.environments import environment

    try:
        return not compile_expression(text, environment(moment)).references.attributes
    except ExpressionError:
        return False


def _shown(text: str, problem: Problem) -> str:
    line = f"line {problem.line}, " if "\n" in text.rstrip("\n") else ""
    return f"{line}column {problem.column} of the expression: {problem.message}{problem.hint}"
