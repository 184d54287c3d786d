"""Which Deny rules a client gets past by sending a header twice: lint warns of them, and of no others."""

from __future__ import annotations

import pytest

from gatewright.api.advice.header_denies import evadable
from gatewright.api.traffic.authorization import Authorization


def warned(action: str, *expressions: str) -> list[int | str]:
    rule = Authorization.model_validate({"action": action, "policy": {"matchExpressions": expressions}})
    return [each.path[-1] for each in evadable(rule)]


@pytest.mark.parametrize(
    "expression",
    [
        'request.headers["x-role"] == "guest"',
        "request.headers.role == 'guest'",
        'request.headers["x-role"] in ["guest", "bot"]',
        'request.headers["x-role"].startsWith("g")',
        'request.headers["x-role"].lowerAscii() == "guest"',
        'request.path == "/a" && request.headers["x-role"].endsWith("t")',
        '"guest" == request.headers["x-role"]',
    ],
)
def test_a_comparison_of_the_whole_header(expression: str) -> None:
    assert warned("Deny", "true", expression) == [1]
    assert warned("Allow", expression) == warned("Require", expression) == []


@pytest.mark.parametrize(
    "expression",
    [
        'request.headers.split()["x-role"].exists(v, v == "guest")',
        'request.headers.raw()["x-role"].exists(v, v == "guest")',
        '"guest" in request.headers.values("x-role")',
        'request.headers.values("x-role").exists(v, v == "guest")',
        'request.headers["x-role"] != "staff"',
        'request.headers["user-agent"].contains("bot")',
        'request.path == "/a" && "x-role" in request.headers',
        'request.path == request.headers["x-path"].split(",")[0]',
    ],
)
def test_what_cannot_be_got_past(expression: str) -> None:
    assert warned("Deny", expression) == []
