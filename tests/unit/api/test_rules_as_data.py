"""Rules between fields as data: what a model says of them is what an API server says, and names the field to blame."""

from __future__ import annotations

from typing import ClassVar

import pytest

from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.schema.rules import Rule, exactly_one, fields_read, holds, not_both, where_set


class Inner(Model):
    name: str
    tags: tuple[str, ...] = ()


class Part(RuledModel):
    cel_rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one("oneWay", "otherWay"),
        not_both("oneWay", "extra"),
        where_set("items", "self.count > 1", "is for counts above 1"),
        Rule("!has(self.items) || self.items.all(i, !has(i.tags) || i.tags.size() < 2)", "one tag is enough"),
    )

    one_way: Inner | None = None
    other_way: Inner | None = None
    extra: str | None = None
    items: tuple[Inner, ...] = ()
    count: int = 1


IN = Inner(name="a")


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({"oneWay": IN}, []),
        ({}, [Broken((), "exactly one of oneWay, otherWay must be set")]),
        (
            {"oneWay": IN, "otherWay": IN},
            [Broken(("otherWay",), "exactly one of oneWay, otherWay must be set; oneWay is set already")],
        ),
        ({"oneWay": IN, "extra": ""}, [Broken(("extra",), "must be absent when oneWay is set")]),
        ({"otherWay": IN, "items": (IN,)}, [Broken(("items",), "is for counts above 1")]),
        ({"otherWay": IN, "items": (), "count": 1}, [Broken(("items",), "is for counts above 1")]),  # written, if empty
        ({"otherWay": IN, "items": (IN,), "count": 2}, []),
        (
            {"otherWay": IN, "items": (Inner(name="b", tags=("x", "y")),), "count": 2},
            [Broken((), "one tag is enough")],
        ),
    ],
)
def test_what_is_broken(fields: dict[str, object], broken: list[Broken]) -> None:
    part = Part.model_construct(**{snake(name): value for name, value in fields.items()})
    assert [*part.broken_rules()] == broken
    for rule in Part.cel_rules:  # the plain kinds say what their CEL says
        assert (not [*rule.broken(part)]) == holds(rule, part), rule


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def test_a_value_that_is_not_valid_itself_has_no_answer() -> None:
    """Whoever asks of a part with such values (`checks/partial`) goes on without."""
    with pytest.raises(TypeError, match=r"self\.count > 1"):
        holds(Rule("self.count > 1", "more"), Part.model_construct(count=object()))


def test_which_fields_a_rule_reads() -> None:
    assert fields_read(Part.cel_rules[2]) == {"items", "count"}
