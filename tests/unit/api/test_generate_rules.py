"""Rules between fields in CEL: every class with rules has some, they name fields that exist, none is for nothing.

The CRDs are asked for their verdict on every row of the verdict table (`admission`); each rule is broken by a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gatewright.api.generate import crds, rules, shapes, spellings
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.schema.names import OUR_KINDS
from gatewright.api.schema.rules import fields_read
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import Row
from tests.unit.api.admission import refusals

BELOW = {kind: list(shapes.models_below(KINDS[kind].model)) for kind in OUR_KINDS}
MODELS = {model for models in BELOW.values() for model in models}


def test_every_class_with_rules_has_them_in_cel() -> None:
    for model in MODELS:
        if issubclass(model, RuledModel) and model.broken_rules is not RuledModel.broken_rules:
            assert rules.rules_of(model) or any(base in rules.LEFT_OUT for base in model.__mro__), model


def test_a_class_without_a_row_is_noticed() -> None:
    class Strict(RuledModel):
        def broken_rules(self) -> Iterator[Broken]:
            yield Broken((), "never holds")

    with pytest.raises(LookupError, match="Strict has rules"):
        rules.rules_of(Strict)
    assert rules.known_rules(Strict, ()) == ()


def test_every_row_is_about_a_part_of_our_kinds() -> None:
    bases = {base for model in MODELS for base in model.__mro__}
    assert set(rules.RULES) <= bases
    assert set(rules.LEFT_OUT) <= bases
    assert not set(rules.RULES) & set(rules.LEFT_OUT)


AS_DATA = [model for model in MODELS if issubclass(model, RuledModel) and vars(model).get("cel_rules")]


@pytest.mark.parametrize(
    "model", [*rules.RULES, *sorted(AS_DATA, key=lambda model: model.__name__)], ids=lambda model: model.__name__
)
def test_rules_ask_for_fields_that_exist(model: type[Model]) -> None:
    names = {field.name for field in shapes.fields_of(model)}
    for rule in rules.rules_of(model):
        assert fields_read(rule) <= names, rule
        assert {*rule.one_of, *rule.apart} <= names, rule


def test_every_added_bound_is_needed() -> None:
    for model, attribute in rules.BOUNDS:
        assert attribute in model.model_fields
        assert rules.rules_of(model)


def test_a_rule_may_not_read_what_has_two_spellings() -> None:
    with pytest.raises(ValueError, match="two spellings"):
        spellings.spelled(rules.Rule("self.openai.model != ''", ""), "provider", ["openai"])


# The CRDs' verdict.

SCHEMAS = {kind: crds.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in OUR_KINDS}


@pytest.fixture(scope="module")
def refused() -> list[tuple[Row, list[str]]]:
    """Every row of the verdict table and why the CRD refuses its object."""
    return [(row, refusals(SCHEMAS[row.kind], row.document())) for row in ROWS]


def test_crds_and_verdict_table_agree(refused: list[tuple[Row, list[str]]]) -> None:
    wrong = [(str(row), why) for row, why in refused if bool(why) != (row.verdict == "invalid") and row.cel]
    assert wrong == []
    assert [(str(row), why) for row, why in refused if why and row.verdict == "valid"] == []


def test_every_rule_is_broken_by_something(refused: list[tuple[Row, list[str]]]) -> None:
    """By that alone: what does not fit the schema is not asked."""
    seen = {why for _, every in refused for why in every}
    assert sorted({rule for schema in SCHEMAS.values() for rule in stated(schema)} - seen) == []


def stated(node: dict[str, Any]) -> Iterator[str]:
    yield from (rule["rule"] for rule in node.get("x-kubernetes-validations", ()))
    for part in (*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")):
        if part:
            yield from stated(part)
