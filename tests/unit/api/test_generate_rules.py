"""Rules between fields in CEL: they stand there alone, they name fields that exist, none is for nothing.

The CRDs are asked for their verdict on every row of the verdict table (`admission`); each rule is broken by a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gatewright.api.generate import crds, schema_nodes, shapes, spellings
from gatewright.api.generate.form_rules import known_rules
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import Broken, RuledModel
from gatewright.api.schema.names import OUR_KINDS
from gatewright.api.schema.rules import Rule, fields_read
from gatewright.api.traffic.jwt_authentication import JWKS
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import Row
from tests.unit.api.admission import refusals

BELOW = {kind: list(shapes.models_below(KINDS[kind].model)) for kind in OUR_KINDS}
MODELS = {model for models in BELOW.values() for model in models}


def test_rules_of_our_kinds_stand_in_cel_alone() -> None:
    """A rule in Python beside them would be one that API servers do not know, or a second copy."""
    for model in MODELS:
        in_python = issubclass(model, RuledModel) and model.broken_rules is not RuledModel.broken_rules
        reason = getattr(model, "gateway_only", "")
        assert in_python == bool(reason), model
        assert not (in_python and vars(model).get("cel_rules")), model


def test_a_form_with_rules_of_its_own_has_none_of_the_crd() -> None:
    class Strict(RuledModel):
        def broken_rules(self) -> Iterator[Broken]:
            yield Broken((), "never holds")

    class Form(Strict, JWKS):
        pass

    assert known_rules(Form, ["remote", "inline", "discovery"]) == ()
    assert known_rules(JWKS, ["remote", "inline", "discovery"]) == JWKS.cel_rules
    assert known_rules(JWKS, ["remote"]) == ()


AS_DATA = [model for model in MODELS if issubclass(model, RuledModel) and model.cel_rules]


@pytest.mark.parametrize("model", sorted(AS_DATA, key=lambda model: model.__name__), ids=lambda model: model.__name__)
def test_rules_ask_for_fields_that_exist(model: type[RuledModel]) -> None:
    names = {field.name for field in shapes.fields_of(model)}
    for rule in model.cel_rules:
        assert fields_read(rule) <= names, rule
        assert {*rule.one_of, *rule.apart} <= names, rule


def test_every_added_bound_is_needed() -> None:
    for model, attribute in schema_nodes.BOUNDS:
        (field,) = (each for each in shapes.fields_of(model) if each.attribute == attribute)
        assert issubclass(model, RuledModel)
        assert any(field.name in fields_read(rule) for rule in model.cel_rules)


def test_a_rule_may_not_read_what_has_two_spellings() -> None:
    with pytest.raises(ValueError, match="two spellings"):
        spellings.spelled(Rule("self.openai.model != ''", ""), "provider", ["openai"])


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
