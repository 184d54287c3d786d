"""Which parts of which rows reach a model class: what decides whether a change of the class would be noticed.

Called by `mutation.models`. A part of a valid row must be accepted by the class. A part of an invalid row counts only
if nothing else of the row is wrong and the class refuses the part: were the part accepted, the row would be valid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from gatewright.api.checks.errors import findings
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema import names
from gatewright.api.schema.model import model_in
from tests.rules.verdicts.table import Document, Row, parts

Model = type[BaseModel]
Path = tuple[str | int, ...]


@dataclass
class Hits:
    """The parts of rows that a class is asked about."""

    accepted: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, Any] = field(default_factory=dict)

    def notice(self, changed: Model) -> bool:
        """Whether a part fares otherwise with a changed class; one on which its rules stumble fares otherwise."""
        try:
            return any(accepts(changed, part) for part in self.refused.values()) or not all(
                accepts(changed, part) for part in self.accepted.values()
            )
        except (AttributeError, TypeError, ValueError):
            return True


def hits(rows: Sequence[Row]) -> dict[Model, Hits]:
    """Class to the parts of rows that reach it; equal parts are one."""
    found: dict[Model, Hits] = defaultdict(Hits)
    for row in rows:
        document = _canonical(row)
        if document is None:
            continue
        model = KINDS[row.kind].model
        blamed = _only_error(model, document) if row.verdict == "invalid" else ()
        if blamed is None:
            continue
        for reached, at, part in _reached(model, document, parts(row.path)):
            if row.verdict == "valid":
                found[reached].accepted.setdefault(repr(part), part)
            elif blamed[: len(at)] == at and not accepts(reached, part):
                found[reached].refused.setdefault(repr(part), part)
    return found


def accepts(model: Model, part: Any) -> bool:
    """Whether the class takes it."""
    try:
        model.model_validate(part)
    except ValidationError:
        return False
    return True


def _canonical(row: Row) -> Document | None:
    """The object as the models see it; None where both spellings are written, which they never see."""
    conflicts: list[names.BothSpellings] = []
    document: Document = names.canonical(row.document(), conflicts)
    return None if conflicts else document


def _only_error(model: Model, document: Document) -> Path | None:
    """Where the errors of an object are; None if it has none, or some in several places."""
    try:
        model.model_validate(document)
    except ValidationError as failure:
        found = findings(failure, model, document)
        return found[0].path if len({each.path for each in found}) == 1 else None
    return None


def _reached(model: Model, document: Any, path: Sequence[str | int]) -> Iterator[tuple[Model, Path, Any]]:
    """The classes on the way to the value at `path`, and all below the value."""
    current: Model | None = model
    part = document
    at: Path = ()
    for step in path:
        if current is not None and not isinstance(step, int):
            yield current, at, part
        known = (isinstance(part, dict) and step in part) or (isinstance(part, list) and isinstance(step, int))
        if not known:
            return
        if not isinstance(step, int):
            current = _below(current, step)
        part = part[step]
        at = (*at, step)
    if current is not None:
        yield from _inside(current, part, at)


def _inside(model: Model, part: Any, at: Path) -> Iterator[tuple[Model, Path, Any]]:
    if isinstance(part, list):
        for index, item in enumerate(part):
            yield from _inside(model, item, (*at, index))
        return
    yield model, at, part
    if isinstance(part, dict):
        for name, value in part.items():
            below = _below(model, name)
            if below is not None:
                yield from _inside(below, value, (*at, name))


def _below(model: Model | None, name: str | int) -> Model | None:
    """The class of a field's value or of its items."""
    if model is None:
        return None
    for attribute, each in model.model_fields.items():
        if name in (each.alias, attribute):
            return model_in(each.annotation)
    return None
