"""The conditional pattern: a policy's own fields, or a list of items of which the first that matches runs.

Used by the five policies that may be conditional. The rules are here, the fields with each policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, Field

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.cel_field import RequestCondition
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.part_values import Path
from gatewright.api.schema.rules import Present, Rule, not_both, unless

ITEMS = Field(min_length=1, max_length=16)
"""Bounds of every `conditional` list."""


class ConditionalItem(RuledModel):
    """An item of `conditional`; its class adds `policy`."""

    condition: RequestCondition | None = None
    """When this item applies; only the last item may leave it out, and is the fallback then."""


class OrConditional(RuledModel):
    """A policy that may be conditional: a class puts this before the policy's own, adds `conditional`, and has the
    rules that `rules_of_conditional` makes."""

    fills_in_defaults = False  # a field that is filled in would count as set beside `conditional`


class _OnlyTheLast(Rule):
    """Items before the last one have conditions."""

    __slots__ = ()

    def _broken(self, part: BaseModel) -> Iterator[tuple[Path, str]]:
        for index, item in enumerate((getattr(part, "conditional", None) or ())[:-1]):
            if item.condition is None:
                yield ("conditional", index, "condition"), self.message.removeprefix("condition ")


def _required(name: str) -> Rule:
    return Present(f"has(self.{name})", f"{name} is required, or conditional", path=(name,))


def rules_of_conditional(policy: type[RuledModel], *required: str) -> tuple[Rule, ...]:
    """Of a policy that may be conditional: `conditional` excludes its fields; without it these are required, and the
    policy's own rules hold."""
    names = [field.alias or to_camel(attribute) for attribute, field in policy.model_fields.items()]
    last = "self.conditional[self.conditional.size() - 1]"
    return (
        *(not_both("conditional", name) for name in names),
        _OnlyTheLast(
            "!has(self.conditional) || self.conditional.filter(item, !has(item.condition)).size() <= "
            f"(has({last}.condition) ? 0 : 1)",
            "condition is required: only the last item may leave it out",
        ),
        *unless("conditional", (_required(name) for name in required)),
        *unless("conditional", policy.cel_rules),
    )
