"""Every field that the SDKs publish for requests is carried, left out or refused by a row, for each provider's API: a
field that a new SDK has, and that no table knows, fails here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataplane.llm import losses
from dataplane.llm.features import Feature
from dataplane.llm.formats import completions, messages, responses
from dataplane.llm.formats.contract import Shapes
from dataplane.llm.routes import Format
from tests.conftest import need_tool

FIELDS = Path(__file__).parents[1] / "fakes" / "llm_sdk_fields.py"
pytestmark = pytest.mark.needs("llm-python")
TABLES = {
    Format.COMPLETIONS: completions.SHAPES,
    Format.MESSAGES: messages.SHAPES,
    Format.RESPONSES: responses.SHAPES,
}
READ_AS = {"output[": "content[", "system[": "content[", "tools[custom]": "tools"}
"""Fields with objects of the same shapes as another field has."""
ANY = "[*]"
"""All other types of a field."""


def known_as(api: Format, shape: str) -> str:
    if shape == "tools[custom]" and api is not Format.MESSAGES:
        return shape
    return next((new + shape[len(old) :] for old, new in READ_AS.items() if shape.startswith(old)), shape)


def feature_of(tables: Shapes, shape: str) -> Feature | None:
    """Of an object that is carried as a whole, or not at all."""
    return tables.whole.get(shape) or tables.whole.get(shape.partition("[")[0] + ANY)


def said(api: Format, every: dict[str, dict[str, list[str]]]) -> Iterator[tuple[str, Feature | None]]:
    """Each field that the SDK has, and what it says; None: no table has it."""
    tables, waiting, seen = TABLES[api], [""], {""}
    while waiting:
        published = waiting.pop()
        shape = known_as(api, published)
        for field, shapes in every[published].items():
            feature = tables.fields[shape].get(field)
            yield f"{shape}.{field}", feature
            for each in shapes if feature is Feature.CORE else ():
                if known_as(api, each) not in tables.fields:
                    yield each, feature_of(tables, known_as(api, each))
                elif each not in seen:
                    seen.add(each)
                    waiting.append(each)


@pytest.fixture(scope="module")
def published() -> Any:
    done = subprocess.run([need_tool("llm-python"), str(FIELDS)], check=True, capture_output=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.parametrize("api", TABLES)
def test_every_field_of_the_sdks_has_a_row(api: Format, published: Any) -> None:
    found = dict(said(api, published[api.value]))
    assert len(found) > 60, "the types were walked"
    assert [field for field, feature in found.items() if feature is None] == []
    for target, carried in losses.CARRIED.items():
        fates = {field: feature in carried or losses.ROWS.get(feature) for field, feature in found.items() if feature}
        assert [field for field, fate in fates.items() if fate is None] == [], target


def test_every_feature_has_a_row() -> None:
    assert set(losses.ROWS) == set(Feature) - {Feature.CORE}
    assert {feature for (target, feature) in losses.BESIDE if feature not in losses.CARRIED[target]} == set()
