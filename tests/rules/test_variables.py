"""The table of variables: what is generated from it is current, and it names what a context can have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import command_options
from gatewright.api.text import yaml_text
from gatewright.variables import page, schema
from gatewright.variables.moments import MEANINGS, MOMENTS, WORDS, exists
from gatewright.variables.reading import mistakes
from gatewright.variables.table import BY_PATH, CHILDREN, VARIABLES

# The roots that peer and spec name. A root is added here when it is added there.
ROOTS = {
    "request", "response", "source", "destination", "proxy", "env", "backend", "jwt", "apiKey", "basicAuth",
    "extauthz", "extproc", "mcpGuardrails", "metadata", "llm", "llmRequest", "mcp", "a2a",
}  # fmt: skip


def test_the_page_is_current(root: Path) -> None:
    assert (root / "docs/variables.md").read_text() == page.page(), "run scripts/gen-api"


def test_the_schema_is_current(root: Path) -> None:
    assert (root / "schemas/variables.json").read_text() == schema.text(), "run scripts/gen-api"


def test_roots() -> None:
    assert {row.name for row in CHILDREN[""]} == ROOTS


def test_every_row_has_its_place_and_meaning() -> None:
    assert len(BY_PATH) == len(VARIABLES)
    for row in VARIABLES:
        parent = BY_PATH.get(row.parent)
        assert row.doc.endswith("."), row.path
        if row.parent:
            assert parent is not None, row.path
            assert parent.is_object, row.path
            assert exists(parent.since, row.since), f"{row.path} exists before its parent"
            assert row.maybe or not parent.maybe, f"{row.path} exists where its parent may not"


def test_no_two_rows_share_an_attribute() -> None:
    names = [name for row in VARIABLES for name in (row.attribute, row.lookup, row.parsed) if name]
    assert len(names) == len(set(names))


def test_moments_are_the_same_everywhere() -> None:
    assert command_options.MOMENTS == MOMENTS
    assert set(MEANINGS) == set(WORDS) == set(MOMENTS)


def test_the_sample_has_no_mistakes(root: Path) -> None:
    document = yaml_text.load((root / "examples/request.yaml").read_text())
    assert mistakes(document) == []
    assert fits(schema.schema(), document) == []


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ({"request": {"method": "GET", "headers": {"a": ["b"]}, "body": {}}, "jwt": {"any": 1}}, []),
        ({"request": {"methd": "GET"}}, ["request.methd"]),
        ({"response": {"code": "200"}}, ["response.code"]),
        ({"nobody": 1}, ["nobody"]),
        ({"llm": {"prompt": ["x"]}}, ["llm.prompt.0"]),
    ],
)
def test_the_schema_says_what_the_reader_says(document: Any, wrong: list[str]) -> None:
    assert fits(schema.schema(), document) == wrong
    assert [".".join(map(str, found.path)) for found in mistakes(document)] == wrong


TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
}  # fmt: skip


def fits(given: dict[str, Any], value: Any, path: str = "") -> list[str]:
    """Where a value does not fit: as much of JSON schema as the schema uses."""
    if "oneOf" in given:
        return [] if sum(not fits(one, value) for one in given["oneOf"]) == 1 else [path]
    types = given.get("type", [])
    if types and not any(isinstance(value, TYPES[each]) for each in ([types] if isinstance(types, str) else types)):
        return [path]
    if isinstance(value, list):
        return [
            bad for index, item in enumerate(value) for bad in fits(given.get("items", {}), item, f"{path}.{index}")
        ]
    if not isinstance(value, dict):
        return []
    wrong = []
    rest = given.get("additionalProperties", True)
    for name, item in value.items():
        place = f"{path}.{name}".removeprefix(".")
        below = given.get("properties", {}).get(name, rest)
        wrong += [place] if below is False else fits({} if below is True else below, item, place)
    return wrong


def test_the_schema_is_json(root: Path) -> None:
    content = json.loads((root / "schemas/variables.json").read_text())
    assert set(content["properties"]) == ROOTS
