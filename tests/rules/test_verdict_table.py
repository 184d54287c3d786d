"""The verdict table: what the models say of each row, and that table, models and specification know the same fields.

The rows are in `verdicts`, by area. That no bound of a model can be dropped unnoticed is shown in test_verdict_bounds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from gatewright.api.documents import decode_object
from gatewright.api.kinds import KINDS
from gatewright.api.model import model_in
from gatewright.api.names import OUR_KINDS
from tests.rules.verdicts.judge import verdict
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import OBJECTS, Row

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
    assert wrong == []


def test_no_object_has_two_verdicts() -> None:
    said: dict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        said[repr(row.document())].add(row.verdict)
    assert [document for document, verdicts in said.items() if len(verdicts) > 1] == []


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
        (path, wanted)
        for path in fields(KINDS[kind].model, "")
        for wanted in ("valid", "invalid")
        if not path.endswith("{}") and not any(row.verdict == wanted for row in rows_of[kind][path])
    ]
    assert lacking == []


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_every_row_has_a_field(kind: str) -> None:
    known = set(fields(KINDS[kind].model, ""))
    strange = []
    for row in ROWS:
        path = shown(row.path).removesuffix("[]")
        is_field = path in known or path.rpartition(".")[0] + "{}" in known
        if row.kind == kind and is_field != row.known:
            strange.append(str(row))
    assert strange == []
