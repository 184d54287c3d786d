"""Deny rules that a client gets past by sending a header twice: `request.headers["x"] == "a"` is false of `x: a` beside
`x: b`, because an expression reads the values of a repeated header joined by ", ".

A row of `advice`. Texts are searched, not read, so a comparison that is made otherwise is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gatewright.api.text.problem import Advice
from gatewright.api.traffic.authorization import Authorization

_HEADER: Final = r"request\.headers(?:\[[^\]]*\]|\.(?!split\b|raw\b|exists\b|all\b)[a-z_]\w*\b(?!\())"
_compares: Final = re.compile(
    rf"{_HEADER}(?:\.(?:lowerAscii|upperAscii|trim)\(\))*\s*(?:==|in\b|\.(?:startsWith|endsWith)\()|==\s*{_HEADER}(?!\s*\.)"
).search

CURE: Final = (
    "a client that sends the header twice, or with a comma, is not denied: values are joined by a comma;"
    ' look at each, as in "guest" in request.headers.values("x-role")'
)


def evadable(rule: Authorization) -> Iterator[Advice]:
    """Expressions of a Deny that compare a header as a whole."""
    if rule.action == "Deny":
        for index, text in enumerate(rule.policy.match_expressions):
            if _compares(text):
                yield Advice(("policy", "matchExpressions", index), CURE)
