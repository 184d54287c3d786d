"""The page of the standalone file: its examples are valid, and every part has one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gatewright.api.schema import names
from gatewright.api.schema.model import model_in
from gatewright.api.standalone import standalone
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.text import yaml_text
from gatewright.api.text.nulls import without_nulls

PAGE = Path(__file__).resolve().parents[2] / "docs/standalone.md"
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = YAML.findall(PAGE.read_text())

Named = tuple[str, str]
"""A class, and the name of one of its fields in the file."""


@pytest.mark.parametrize("block", BLOCKS)
def test_examples_are_valid(block: str) -> None:
    assert [str(problem) for problem in standalone.load(block, "page.yaml").problems] == []


def test_every_part_has_an_example() -> None:
    wanted = set(fields_of(StandaloneFile, set()))
    assert {("StandaloneFile", "binds"), ("_Traffic", "extAuthz"), ("Content", "env")} <= wanted
    shown = {field for block in BLOCKS for field in fields_in(file_of(block))}
    assert sorted(wanted - shown) == []


def file_of(block: str) -> StandaloneFile:
    return StandaloneFile.model_validate(without_nulls(names.canonical(yaml_text.load(block), [])))


def fields_of(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[Named]:
    """All fields below a model that the file has and the CRDs have not."""
    if model in seen:
        return
    seen.add(model)
    for attribute, field in model.model_fields.items():
        if owner := owner_in_the_file(model, attribute):
            yield owner, field.alias or attribute
        inner = model_in(field.annotation)
        if inner is not None:
            yield from fields_of(inner, seen)


def fields_in(part: Any) -> Iterator[Named]:
    """Those of them that are set in a part."""
    if isinstance(part, tuple):
        for item in part:
            yield from fields_in(item)
    elif isinstance(part, dict):
        for item in part.values():
            yield from fields_in(item)
    elif isinstance(part, BaseModel):
        for attribute in part.model_fields_set:
            if owner := owner_in_the_file(type(part), attribute):
                yield owner, type(part).model_fields[attribute].alias or attribute
            yield from fields_in(getattr(part, attribute))


def owner_in_the_file(model: type[BaseModel], attribute: str) -> str:
    """The class that declares a field, if it is one of the file's own; "" for those of the CRDs."""
    owner = next(
        each
        for each in model.__mro__
        if each.__module__ != "gatewright.api.standalone.form" and attribute in inspect.get_annotations(each)
    )
    is_ours = owner.__module__.startswith("gatewright.api.standalone.")
    return owner.__name__ if is_ours else ""
