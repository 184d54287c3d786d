"""The conditional pattern of spec 2: a policy's own fields, or a list of items of which the first that matches runs.

Used by the five policies that may be conditional. The rules are here, the fields with each policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from gatewright.api.schema.cel_field import RequestCondition
from gatewright.api.schema.model import Broken, RuledModel, to_camel

ITEMS = Field(min_length=1, max_length=16)
"""Bounds of every `conditional` list."""


class ConditionalItem(RuledModel):
    """An item of `conditional`; its class adds `policy`."""

    condition: RequestCondition | None = None
    """When this item applies; only the last item may leave it out, and is the fallback then."""


class OrConditional(RuledModel):
    """A policy that may be conditional: a class puts this before the policy's own and adds `conditional`."""

    required: ClassVar[tuple[str, ...]] = ()
    """Attributes that must be set unless the policy is conditional."""

    def broken_rules(self) -> Iterator[Broken]:
        items: tuple[ConditionalItem, ...] | None = vars(self)["conditional"]
        if items is None:
            for name in self.required:
                if getattr(self, name) is None:
                    yield Broken((to_camel(name),), "is required, or conditional")
            yield from super().broken_rules()
            return
        for name in sorted(self.model_fields_set - {"conditional"}):
            yield Broken((to_camel(name),), "must be absent when conditional is set")
        for index, item in enumerate(items[:-1]):
            if item.condition is None:
                yield Broken(("conditional", index, "condition"), "is required: only the last item may leave it out")
