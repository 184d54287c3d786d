"""`traffic.delay`, a Gatewright extension: a request waits before it goes on."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema import duration
from gatewright.api.schema.cel_field import MAX_LENGTH, Expression, Result
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import Rule

_LENGTH: Final = Result(
    "a duration, or milliseconds as a number",
    frozenset({"int", "uint", "double", "string", "google.protobuf.Duration"}),
)


class Delay(RuledModel):
    """How long a request waits. Gatewright extension."""

    cel_rules = (
        Rule(
            f"!self.duration.matches('{duration.PATTERN}') || "
            "(duration(self.duration) >= duration('1ms') && duration(self.duration) <= duration('5m'))",
            "must be from 1ms to 5m, or an expression",  # requests that wait hold memory and a connection
            path=("duration",),
        ),
    )

    duration: Annotated[
        str,
        Field(min_length=1, max_length=MAX_LENGTH),
        Expression("request", _LENGTH, literal=duration.PATTERN),
    ]
    """A duration such as 200ms, or an expression that gives a duration, its text, or a number of milliseconds. 5m at
    most. Where the expression fails or gives nothing above zero the request does not wait."""
