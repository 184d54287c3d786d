"""What belongs to a policy, each by the file in which it is written: whatever is forgotten is named here.

What the tables say of each other is in test_policies, what pages and filters must be in test_registry. `traffic.delay`
is the example: it has these files and no other one by hand (docs/architecture.md, Adding a policy).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from dataplane.filters.registry import ROWS
from gatewright.api.backend.backend import BackendFull
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.model import model_in
from gatewright.api.traffic.traffic import RequestPolicies
from gatewright.attach.policies import BACKEND, FRONTEND, POLICIES, TRAFFIC, Policy, of
from gatewright.wire.v1 import policy_pb2
from tests.rules.verdicts.rows import ROWS as VERDICTS

ROOT: Final = Path(__file__).resolve().parents[2]
NAME: Final = "delay"

MODELS: Final[Mapping[str, tuple[str, type[BaseModel]]]] = {
    TRAFFIC: ("gatewright/api/traffic/traffic.py", RequestPolicies),
    BACKEND: ("gatewright/api/backend/backend.py", BackendFull),
    FRONTEND: ("gatewright/api/frontend/frontend.py", Frontend),
}
"""The model of each part, and where its fields are."""


@dataclass(frozen=True)
class Tables:
    """Where a policy has to be."""

    rows: Mapping[str, Policy]
    wire: Collection[str]
    """Fields of the wire's Policy."""
    fields: Mapping[str, Collection[str]]
    """Attributes of each part's model."""
    filters: Mapping[str, str]
    """The file of each filter that has a row."""
    files: Collection[str]
    verdicts: Collection[str]
    """Part and field of the paths of all verdicts."""


def _files() -> Collection[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {file for file in listed.stdout.splitlines() if (ROOT / file).exists()}


def _module(build: Any) -> str:  # Any: a builder of a filter
    return f"{build.__module__.replace('.', '/')}"


TABLES: Final = Tables(
    {row.name: row for row in POLICIES},
    [field.name for field in policy_pb2.Policy.DESCRIPTOR.oneofs_by_name["field"].fields],
    {part: [*model.model_fields] for part, (_, model) in MODELS.items()},
    {row.name: _module(row.build) for row in ROWS},
    _files(),
    {".".join(re.sub(r"\[\d*\]", "", row.path).split(".")[1:3]) for row in VERDICTS},
)


def lacking(tables: Tables) -> list[str]:
    """What is forgotten, by the file in which it belongs."""
    return [
        *(f"gatewright/attach/policies.py: no row for {name}" for name in sorted({*tables.wire} - {*tables.rows})),
        *(text for row in tables.rows.values() if row.part in MODELS for text in _of(row, tables)),
    ]


def _of(row: Policy, tables: Tables) -> Iterator[str]:
    file, model = MODELS[row.part]
    if row.attribute not in tables.fields[row.part]:
        yield f"{file}: no {row.attribute}"
    elif (written := _model_file(row, model)) not in tables.files:
        yield f"{written}: no model of {row.name}"
    if f"{row.part}.{to_camel(row.attribute)}" not in tables.verdicts:
        yield f"tests/rules/verdicts: none about {row.part}.{to_camel(row.attribute)}"
    if row.waits_as_a_whole:
        return
    if row.name not in tables.wire:
        yield f"proto/gatewright/wire/v1/policy.proto: no {row.name}"
    if row.name not in tables.filters:
        yield f"dataplane/filters/registry.py: no {row.name}"
    elif not any(f"{tables.filters[row.name]}{end}" in tables.files for end in (".py", "/__init__.py")):
        yield f"{tables.filters[row.name]}.py: no filter"
    for needed in (f"tests/policies/test_{row.name}.py", f"docs/{row.page}"):
        if needed not in tables.files:
            yield f"{needed}: no such file"


def _model_file(row: Policy, model: type[BaseModel]) -> str:
    found = model_in(model.model_fields[row.attribute].annotation)
    return MODELS[row.part][0] if found is None else f"{found.__module__.replace('.', '/')}.py"


def test_nothing_is_forgotten() -> None:
    found = lacking(TABLES)
    assert not found, "\n".join(("write it, and `git add` what is new:", *found))


WITH_PAGES: Final = [row for row in of(*MODELS) if not row.waits_as_a_whole]


@pytest.mark.parametrize("row", WITH_PAGES, ids=lambda row: row.name)
def test_a_page_has_an_example_and_every_field(row: Policy) -> None:
    """Its own fields in prose, not those of what is in them; or a link to the page of the policy that has them, too."""
    page = ROOT / "docs" / row.page
    text = page.read_text()
    assert "```yaml\n" in text, f"docs/{row.page} has no example: a block of ```yaml"
    text += "".join((page.parent / file).read_text() for file in re.findall(r"\]\((\w+\.md)", text))
    model = model_in(MODELS[row.part][1].model_fields[row.attribute].annotation)
    fields = {} if model is None else model.model_fields
    said = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}
    unnamed = [name for name in map(to_camel, fields) if name not in said]
    assert not unnamed, f"docs/{row.page} does not say what these fields do: {', '.join(unnamed)}"


def without(names: Collection[str], *gone: str) -> Collection[str]:
    return [each for each in names if each not in gone]


LESS: Final[dict[str, Tables]] = {
    "gatewright/attach/policies.py": replace(
        TABLES, rows={name: row for name, row in TABLES.rows.items() if name != NAME}
    ),
    "proto/gatewright/wire/v1/policy.proto": replace(TABLES, wire=without(TABLES.wire, NAME)),
    "gatewright/api/traffic/traffic.py": replace(
        TABLES, fields={**TABLES.fields, TRAFFIC: without(TABLES.fields[TRAFFIC], NAME)}
    ),
    "dataplane/filters/registry.py": replace(
        TABLES, filters={name: file for name, file in TABLES.filters.items() if name != NAME}
    ),
    "tests/rules/verdicts": replace(TABLES, verdicts=without(TABLES.verdicts, f"traffic.{NAME}")),
    **{
        file: replace(TABLES, files=without(TABLES.files, file))
        for file in (
            f"gatewright/api/traffic/{NAME}.py",
            f"dataplane/filters/steps/{NAME}.py",
            f"tests/policies/test_{NAME}.py",
            f"docs/policies/{NAME}.md",
        )
    },
}
"""The tables with one file forgotten."""


@pytest.mark.parametrize("file", LESS)
def test_each_that_is_forgotten_is_named(file: str) -> None:
    assert file in {text.partition(":")[0] for text in lacking(LESS[file])}


MESSAGE: Final = "proto/gatewright/wire/v1/traffic.proto"
"""Without the message there is no field of `policy.proto`: the compiler names it."""
GENERATED: Final = ("docs/reference/", "docs/specification/", "docs/policies.md", "docs/bounds.md", "gatewright/wire/")


def test_the_example_is_written_in_these_files_alone() -> None:
    said = re.compile(rf'\bDelay\b|"{NAME}"|traffic\.{NAME}\b|\bimport {NAME}\b')
    found = {
        file
        for file in TABLES.files
        if file.endswith((".py", ".proto", ".md")) and not file.startswith(GENERATED)
        if said.search((ROOT / file).read_text())
    }
    verdicts = {file for file in found if file.startswith("tests/rules/verdicts/")}
    of_tests = {file for file in found if file.startswith("tests/rules/") and file not in verdicts}
    assert len(verdicts) == 1
    assert found - verdicts - of_tests - ABOUT.keys() == {*LESS, MESSAGE} - {"tests/rules/verdicts"}
    assert len({*LESS, MESSAGE}) <= 10


ABOUT: Final = {
    "docs/architecture.md": "names it as the example",
    "CHANGELOG.md": "says what is new",
    "dataplane/filters/steps/fault.py": "has a delay of its own",
    "tests/policies/test_fault.py": "the same",
    "dataplane/upstream/race.py": "has the Connection Attempt Delay of RFC 8305",
}
"""Files that name the policy without a part of it."""


def test_the_architecture_lists_these_files() -> None:
    """`<policy>` and `<part>` stand for names. Other files in a step are for other policies."""
    _, _, text = (ROOT / "docs/architecture.md").read_text().partition("\n## Adding a policy\n")
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^$)", text.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    listed = " ".join(" ".join(steps).split())
    named = {file.replace("<policy>", NAME).replace("<part>", TRAFFIC) for file in re.findall(r"`([\w/<>.]+)`", listed)}
    assert {file for file in {*LESS, MESSAGE} if file not in named and f"{file}/" not in named} == set()
    assert len(steps) == len({*LESS, MESSAGE})


def test_every_part_with_policies_has_a_model_here() -> None:
    assert {row.part for row in of(TRAFFIC, BACKEND, FRONTEND)} == MODELS.keys()
