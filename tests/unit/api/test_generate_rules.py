"""Rules between fields in CEL: every class with rules has some, they name fields that exist, none is for nothing.

Rules are evaluated by our own CEL over the rows of the verdict table: what is valid breaks none, and each is broken by
something that is invalid. That a real API server reads them so is tested with one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from gatewright.api.byte_size import byte_size
from gatewright.api.generate import crds, rules, shapes, spellings
from gatewright.api.kinds import KINDS
from gatewright.api.model import Broken, Model, RuledModel
from gatewright.api.names import OUR_KINDS
from gatewright.cel.environment import Environment, Field, Overload
from gatewright.cel.errors import CelError
from gatewright.cel.functions import STANDARD
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import Row

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


@pytest.mark.parametrize("model", rules.RULES, ids=lambda model: model.__name__)
def test_rules_ask_for_fields_that_exist(model: type[Model]) -> None:
    names = {field.name for field in shapes.fields_of(model)}
    for rule in rules.RULES[model]:
        assert rules.fields_read(rule) <= names, rule
        assert {*rule.one_of, *rule.apart} <= names, rule


def test_every_added_bound_is_needed() -> None:
    for model, attribute in rules.BOUNDS:
        assert attribute in model.model_fields
        assert rules.rules_of(model)


def test_a_rule_may_not_read_what_has_two_spellings() -> None:
    with pytest.raises(ValueError, match="two spellings"):
        spellings.spelled(rules.Rule("self.openai.model != ''", ""), "provider", ["openai"])


# Evaluation.


def overload(name: str, function: Callable[..., Any], count: int, receiver: bool) -> dict[str, tuple[Overload, ...]]:
    return {name: (Overload(name, (DYN,) * count, DYN, function, receiver=receiver),)}


def quantity(text: Any) -> Fraction:
    """Kubernetes' quantities: without the customary spellings."""
    if not isinstance(text, str) or text.lower().endswith("b"):
        raise ValueError(f"{text} is no quantity")
    return Fraction(byte_size(text))


# What Kubernetes adds to CEL, as far as the rules use it.
FUNCTIONS = {
    **STANDARD,
    **overload("quantity", quantity, 1, False),
    **overload("compareTo", lambda one, other: (one > other) - (one < other), 2, True),
    **overload("sum", sum, 1, True),
}
ENVIRONMENT = Environment([Field("self", DYN, attribute="value")], FUNCTIONS)


class Context:
    """What an expression reads: the part."""

    def __init__(self, value: Any) -> None:
        self.value = value


@cache
def evaluated(rule: str) -> Callable[[Context], Any]:
    return compile_expression(rule, ENVIRONMENT, checked=False).evaluate


def broken(node: dict[str, Any], value: Any) -> Iterator[str]:
    """Rules that do not hold in a value, after defaults were filled in as an API server does."""
    if isinstance(value, dict):
        for name, part in node.get("properties", {}).items():
            if name not in value and "default" in part:
                value[name] = part["default"]
            if name in value:
                yield from broken(part, value[name])
        for part in value.values() if "additionalProperties" in node else ():
            yield from broken(node["additionalProperties"], part)
    if isinstance(value, list) and "items" in node:
        for item in value:
            yield from broken(node["items"], item)
    for rule in node.get("x-kubernetes-validations", ()):
        try:
            holds = evaluated(rule["rule"])(Context(value))
        except (CelError, ValueError):
            holds = False
        if holds is not True:
            yield rule["rule"]


@pytest.fixture(scope="module")
def broken_by_rows() -> dict[str, list[tuple[Row, list[str]]]]:
    """Verdict to its rows with the rules that do not hold in them."""
    schemas = {kind: crds.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in OUR_KINDS}
    found: dict[str, list[tuple[Row, list[str]]]] = defaultdict(list)
    for row in ROWS:
        found[row.verdict].append((row, list(broken(schemas[row.kind], row.document()))))
    return found


def test_what_is_valid_breaks_no_rule(broken_by_rows: dict[str, list[tuple[Row, list[str]]]]) -> None:
    assert [(str(row), every) for row, every in broken_by_rows["valid"] if every] == []


def test_every_rule_is_broken_by_something(broken_by_rows: dict[str, list[tuple[Row, list[str]]]]) -> None:
    seen = {rule for _, every in broken_by_rows["invalid"] for rule in every}
    schemas = [crds.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind in OUR_KINDS]
    assert sorted({rule for schema in schemas for rule in stated(schema)} - seen) == []


def stated(node: dict[str, Any]) -> Iterator[str]:
    yield from (rule["rule"] for rule in node.get("x-kubernetes-validations", ()))
    for part in (*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")):
        if part:
            yield from stated(part)
