"""Settings that are valid but cannot be honoured yet: all that two tables do not name, found from the models.

Called by decoding (a lint error, verdict `unsupported`) and by translation (a condition that names the setting). Such
a setting is never accepted and ignored. A release that makes a policy work changes its row in
`gatewright/attach/policies.py`; other settings are in the tables of `honoured`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from gatewright.api.checks.errors import MISSING, Finding
from gatewright.api.checks.field_paths import Path
from gatewright.api.checks.honoured import HONOURED, REFUSED, STANDALONE, VALUES, reason
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model, model_in
from gatewright.api.text.problem import UNSUPPORTED
from gatewright.attach.policies import BY_ATTRIBUTE, BY_FILE, Policy

ENVELOPE: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
"""Fields of an object that are no settings."""


class Unsupported(NamedTuple):
    """A set field that cannot be honoured: its path in API names, and the message."""

    path: tuple[str | int, ...]
    message: str


class _Row(NamedTuple):
    """The table's rows by their first name: whether one ends here and how, and those that go deeper."""

    honoured: bool | None
    below: dict[str, _Row]


class Step(NamedTuple):
    """A field on the way to unsupported ones: attribute and API name, whether it is one, what lies below, for those who
    list them what the field holds, and which of its values are unsupported."""

    attribute: str
    name: str
    refused: bool
    below: tuple[Step, ...]
    annotation: Any
    values: tuple[str, ...] = ()


def unsupported(item: KubeObject) -> tuple[Unsupported, ...]:
    """Every set field of `item` that cannot be honoured yet; of nested ones the topmost."""
    return unsupported_fields(item.kind, type(item), item)


def unsupported_fields(kind: str, model: type[Model], value: Model) -> tuple[Unsupported, ...]:
    """As `unsupported`, for a value that is no Kubernetes object: the row `kind` of HONOURED counts."""
    steps = tree(kind, model)
    return tuple(_found(value, steps, ())) if steps else ()


def without_what_lacks(kind: str, model: type[Model], found: Iterable[Finding]) -> list[Finding]:
    """Findings of an invalid object of `model`: a setting that cannot be honoured anyway is not worth completing, so
    that in place of the fields that it lacks it is reported itself, once."""
    steps = tree(kind, model)
    reported: dict[Finding, None] = {}
    for each in found:
        setting = _beneath(steps, each.path[:-1]) if each.message == MISSING else None
        reported[setting or each] = None
    return [*reported]


def _beneath(steps: tuple[Step, ...], path: Path) -> Finding | None:
    """The unsupported setting that stands at `path` or above it."""
    for depth, part in enumerate(path, 1):
        if isinstance(part, int):
            continue
        step = next((each for each in steps if each.name == part), None)
        if step is None or step.refused:
            return Finding(path[:depth], _removed(path[:depth])) if step is not None else None
        steps = step.below
    return None


def _removed(path: Path) -> str:
    why = reason(path)
    return f"{f'{REFUSED}{why}; ' if why else UNSUPPORTED}remove {path[-1]} to have the rest accepted"


def _found(value: Any, steps: tuple[Step, ...], path: tuple[str | int, ...]) -> Iterator[Unsupported]:
    model: type[Model] = type(value)
    for attribute, name, refused, below, _, values in steps:
        field = getattr(value, attribute)
        if field is None or field == ():
            continue
        if refused:
            if attribute in value.model_fields_set and field != _default(model, attribute):
                yield Unsupported((*path, name), _removed((*path, name)))
        elif values:
            found = field if isinstance(field, tuple) else (field,)
            yield from (Unsupported((*path, name), f"{UNSUPPORTED}{each}") for each in values if each in found)
        elif isinstance(field, tuple):
            for index, item in enumerate(field):
                yield from _found(item, below, (*path, name, index))
        else:
            yield from _found(field, below, (*path, name))


@cache
def _default(model: type[Model], attribute: str) -> Any:
    """What an API server writes into an object where its user wrote nothing: it asks for what happens anyway."""
    field = model.model_fields.get(attribute)
    return field.get_default(call_default_factory=True) if field is not None else None


@cache
def tree(kind: str, model: type[Model]) -> tuple[Step, ...]:
    """The unsupported fields of a kind (its row of HONOURED) as one walk over an object of `model`, the kind's own,
    finds them; made once, when first asked for."""
    if kind not in HONOURED:
        return ()
    rows = _rows(HONOURED[kind])
    if kind != STANDALONE:  # reported are fields of a spec that do not work, never the whole spec
        rows.setdefault("spec", _Row(False, {"": _Row(None, {})}))
    return tuple(step for step in _steps(model, rows, False) if step.name not in ENVELOPE)


def _rows(paths: Iterable[str]) -> dict[str, _Row]:
    first: dict[str, _Row] = {}
    for path in paths:
        rows, honoured = first, not path.startswith("-")
        *names, last = path.removeprefix("-").replace("[]", "").split(".")
        for name in names:
            rows = rows.setdefault(name, _Row(None, {})).below
        rows[last] = _Row(honoured, rows[last].below if last in rows else {})
    return first


def _steps(model: type[Model], rows: dict[str, _Row], honoured: bool) -> Iterator[Step]:
    """`honoured`: what is true of fields without a row."""
    for attribute, field in model.model_fields.items():
        name = field.alias or attribute
        row = rows.get(name) or _Row(None, {})
        here = honoured if row.honoured is None else row.honoured
        policy = policy_of(model, attribute)
        below = row.below
        if policy is not None and here:
            here = not policy.waits_as_a_whole
            below = _rows(waiting_below(policy, attribute)) if here else {}
        inside: Any = model_in(field.annotation)
        values = VALUES.get((model.__name__, attribute), ()) if here else ()
        if values:
            yield Step(attribute, name, False, (), field.annotation, values)
        elif inside is not None and (here or below):
            steps = tuple(_steps(inside, below, here))
            if steps:
                yield Step(attribute, name, False, steps, field.annotation)
        elif not here:
            yield Step(attribute, name, True, (), field.annotation)


def policy_of(model: type[Model], attribute: str) -> Policy | None:
    """The policy that a field is, if its model is a part of the table of policies."""
    for part in getattr(model, "parts", ()):
        row = BY_FILE.get((part, attribute)) or BY_ATTRIBUTE.get((part, attribute))
        if row is not None:
            return row
    return None


def waiting_below(policy: Policy, attribute: str) -> Iterator[str]:
    """Rows of what does not work of a policy that works. `attribute`: its name here, in the file or elsewhere."""
    in_file = attribute == policy.in_file
    for each in policy.waits:
        path = (each.in_file if in_file else "") or each.path
        yield f"-{path}"
        if policy.conditional:
            yield f"-conditional[].policy.{path}"
