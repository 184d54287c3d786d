"""Reading from the context once for several terms: where it is certain, and only there."""

from __future__ import annotations

import pytest

from gatewright.cel.environment import Environment, Field
from gatewright.cel.errors import CelError
from gatewright.cel.program import compile_expression
from gatewright.cel.types import DYN, STRING, map_of

ENVIRONMENT = Environment(
    [
        Field("jwt", DYN, "jwt"),
        Field("maybe", DYN, "maybe", optional=True),
        Field("headers", map_of(STRING, STRING), "headers", lookup="header"),
    ]
)


class Context:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def jwt(self) -> dict[str, object]:
        self.asked.append("jwt")
        return {"sub": "alice", "groups": ["a", "b"], "n": 1}

    @property
    def maybe(self) -> None:
        self.asked.append("maybe")

    def header(self, name: str) -> str | None:
        self.asked.append(name)
        return {"x": "1"}.get(name)


@pytest.mark.parametrize(
    ("text", "value", "asked"),
    [
        ("jwt.sub == 'alice' && 'a' in jwt.groups && jwt.n == 1", True, ["jwt"]),
        ("has(jwt.sub) && jwt.sub == 'bob' || jwt.n == 1", True, ["jwt"]),
        ("headers.x == '2' || headers.x == '1' || headers.y == '1'", True, ["x"]),
        ("(headers.x == '1' || headers.y == '1') && headers.y != ''", None, ["x", "y", "x", "y"]),
        ("(headers.x == '2' || headers.y == '1') || headers.y == '2' || headers.x == '1'", True, None),
        ("(headers.x == '1' ? jwt.n : jwt.m) == 1 && jwt.n == 1 && headers.x == '1'", True, ["x", "jwt", "jwt"]),
        ("has(maybe.a) || maybe.b == 1 || true", True, None),
        ("jwt.nope == 1 || jwt.n == 1", True, None),
    ],
)
def test_what_is_certain_is_read_once(text: str, value: object, asked: list[str] | None) -> None:
    context = Context()
    program = compile_expression(text, ENVIRONMENT)
    if value is None:
        with pytest.raises(CelError, match="no such key: y"):
            program.evaluate(context)
    else:
        assert program.evaluate(context) is value
    assert asked is None or context.asked == asked
