"""Rows of the conditional pattern (2-policies, Conditional execution pattern), which five traffic policies have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.verdicts.common import P
from tests.rules.verdicts.table import Case, Nested, Rows, Shape, shape
from tests.rules.verdicts.words import (
    expression,
    given,
    invalid,
    items,
    nested,
    required,
    unknown,
    valid,
)

_PATTERN = P + "or a `conditional` array (1 to 16 items), never both. Each item: `condition` (CELExpression, optional)"
_LIMIT = P + "| Conditional policy items | 1 to 16 |"


def conditional(policy: Shape, siblings: dict[str, Any]) -> Iterator[Case | Nested]:
    """Rows of `conditional` and of its items; `policy` is what an item holds, `siblings` is a value for each field
    that must be absent beside `conditional`."""
    item = {"condition": "true", "policy": policy.least}
    fallback = {"policy": policy.least}
    yield from given({}, valid("conditional", [item, item], _PATTERN), items("conditional", 1, 16, _LIMIT, item))
    yield from _fallbacks(item, fallback)
    for name, value in siblings.items():
        yield invalid("", {"conditional": [item], name: value}, _PATTERN)
    below = shape(
        item,
        expression("condition", _PATTERN, "true"),
        valid("", fallback, _PATTERN),
        required("policy", _PATTERN),
        nested("policy", policy, _PATTERN),
        unknown("name", "a", _PATTERN),
    )
    yield Nested("conditional[0]", below, _PATTERN, {"conditional": [item]})


def _fallbacks(item: dict[str, Any], fallback: dict[str, Any]) -> Rows:
    """One item may leave its condition out, the last one."""
    one = P + "One item without `condition` may exist and must be last; it is the fallback."
    yield valid("", {"conditional": [item, item, fallback]}, one)
    yield valid("", {"conditional": [fallback]}, one)
    yield invalid("", {"conditional": [fallback, item]}, one)
    yield invalid("", {"conditional": [item, fallback, fallback]}, one)
    yield invalid("", {"conditional": [item, fallback, item]}, one)
