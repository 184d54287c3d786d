"""Fields that hold CEL expressions, and what an expression in each place may read.

Used by the models of all policies. A model checks the length only; that an expression parses and reads what is there
is checked by the same walk over a valid object that looks for unsupported settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

Moment = Literal["connection", "request", "response", "end"]
"""When an expression is evaluated, which decides what exists by then: on a new connection, with the request, with the
response's head, or when all is over (log, cost)."""

MOMENTS: Final[tuple[Moment, ...]] = ("connection", "request", "response", "end")

MAX_LENGTH: Final = 16384


@dataclass(frozen=True, slots=True)
class Expression:
    """Marks a field as an expression, for generators and checks."""

    moment: Moment


_Text = Field(min_length=1, max_length=MAX_LENGTH)
ConnectionExpression = Annotated[str, _Text, Expression("connection")]
RequestExpression = Annotated[str, _Text, Expression("request")]
ResponseExpression = Annotated[str, _Text, Expression("response")]
EndExpression = Annotated[str, _Text, Expression("end")]
