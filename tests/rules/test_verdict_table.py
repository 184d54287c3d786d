"""The verdict table: what the models say of each row, and that table, models and specification know the same fields.

The rows are in `verdicts`, by area. `scripts/mutate models` shows that no bound of a model can be dropped unnoticed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from gatewright.api.decode.documents import decode_object
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import model_in
from gatewright.api.schema.names import OUR_KINDS
from tests.rules.verdicts.defaults import DEFAULTS, Default
from tests.rules.verdicts.judge import verdict
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import OBJECTS, Row, parts

SECTIONS = sorted({(row.kind, ".".join(row.path.split(".")[:2])) for row in ROWS})
FOREIGN = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of the envelope that Kubernetes owns."""


def section(row: Row) -> tuple[str, str]:
    return row.kind, ".".join(row.path.split(".")[:2])


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_smallest_objects_are_valid(kind: str) -> None:
    decoded = decode_object({"kind": kind, **OBJECTS[kind]}, "")
    assert (decoded.verdict, decoded.problems) == ("valid", ())


@pytest.mark.parametrize(("kind", "path"), SECTIONS)
def test_models_agree(kind: str, path: str) -> None:
    wrong = []
    for row in ROWS:
        if section(row) == (kind, path):
            said, errors = verdict(row)
            if said != row.verdict:
                wrong.append(f"{row}; the models say {said} {errors}")
    assert not wrong, "\n".join(wrong)


def test_no_object_has_two_verdicts() -> None:
    said: dict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        said[repr(row.document())].add(row.verdict)
    assert [document for document, verdicts in said.items() if len(verdicts) > 1] == []


@pytest.mark.parametrize("default", DEFAULTS, ids=lambda default: default.path)
def test_defaults(default: Default) -> None:
    model = KINDS[default.kind].model
    written = model.model_validate({"kind": default.kind, **OBJECTS[default.kind], "spec": default.within})
    value: Any = written.model_dump(by_alias=True, mode="json")
    for part in parts(default.path):
        value = value[part]
    assert value == default.value


REFERENCES = "BackendObjectReference LocalSecretObjectRef LocalServiceReference ConfigMapReference ParentReference"
"""Types whose group and kind have defaults of Gateway API's, which the specification does not show."""


def owner(model: type[BaseModel], name: str) -> str:
    """The class that declares a field, with the field."""
    return next(
        f"{each.__name__}.{name}" for each in reversed(model.__mro__) if name in vars(each).get("__annotations__", ())
    )


def defaulted(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """Every field that has a default other than nothing, by the class that declares it."""
    seen.add(model)
    for name, field in model.model_fields.items():
        value = field.get_default(call_default_factory=True, validated_data={})
        if not field.is_required() and value not in (None, (), {}):
            yield owner(model, name)
        below = model_in(field.annotation)
        if below is not None and below not in seen and not (issubclass(model, KubeObject) and name != "spec"):
            yield from defaulted(below, seen)


def test_every_default_has_a_row() -> None:
    written = set()
    for default in DEFAULTS:
        model: type[BaseModel] | None = KINDS[default.kind].model
        for part in parts(default.path):
            assert model is not None
            if isinstance(part, str):
                name = next(n for n, field in model.model_fields.items() if part in (n, field.alias))
                declared = owner(model, name)
                model = model_in(model.model_fields[name].annotation) or model
        written.add(declared)
    found = {each for kind in OUR_KINDS for each in defaulted(KINDS[kind].model, set())}
    lacking = sorted(each for each in found - written if each.split(".")[0] not in REFERENCES.split())
    assert not lacking, f"write their defaults into tests/rules/verdicts/defaults.py: {', '.join(lacking)}"


# Fields.


def fields(model: type[BaseModel], path: str) -> Iterator[str]:
    """Every path of a model; an item of a list as `[]`, a value of a map as `{}`."""
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if path == "" and alias in FOREIGN:
            continue
        here = f"{path}.{alias}".removeprefix(".")
        yield here
        if "dict[" in str(field.annotation):
            yield here + "{}"
        inner = model_in(field.annotation)
        if inner is not None:
            yield from fields(inner, here + ("[]" if "tuple" in str(field.annotation) else ""))


def shown(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)


@pytest.fixture(scope="module")
def rows_of() -> dict[str, dict[str, list[Row]]]:
    """Kind to path, an item of a list as `[]`, to the rows there."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in ROWS:
        found[row.kind][shown(row.path)].append(row)
    return found


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_every_field_has_rows(kind: str, rows_of: dict[str, dict[str, list[Row]]]) -> None:
    lacking = [
        f"{path}: no value that is {wanted}"
        for path in fields(KINDS[kind].model, "")
        for wanted in ("valid", "invalid")
        if not path.endswith("{}") and not any(row.verdict == wanted for row in rows_of[kind][path])
    ]
    assert not lacking, "\n".join(("write rows into tests/rules/verdicts:", *lacking))


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_every_row_has_a_field(kind: str) -> None:
    known = set(fields(KINDS[kind].model, ""))
    strange = []
    for row in ROWS:
        path = shown(row.path).removesuffix("[]")
        is_field = path in known or path.rpartition(".")[0] + "{}" in known
        if row.kind == kind and is_field != row.known:
            strange.append(str(row))
    assert not strange, "\n".join(strange)
