"""Fields that hold CEL expressions: when each is evaluated, what it may read then, and what it must give.

Used by the models of all policies. A model checks the length only; that an expression parses, reads what is there and
gives what it must is checked by `expressions`, which finds these marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from gatewright.api.schema import duration
from gatewright.variables.moments import Moment

MAX_LENGTH: Final = 16384


class Result(NamedTuple):
    """What an expression must give: in words, and the kinds of the language's types; none of them takes all."""

    words: str
    kinds: frozenset[str]


_NUMBERS: Final = frozenset({"int", "uint", "double"})
_TIMES: Final = frozenset({"google.protobuf.Duration", "google.protobuf.Timestamp"})

ANYTHING: Final = Result("anything", frozenset())
CONDITION: Final = Result("true or false", frozenset({"bool"}))
TEXT: Final = Result("a string", frozenset({"string"}))
SCALAR: Final = Result("a string, a number, true or false, or bytes", _NUMBERS | {"string", "bool", "bytes"})
"""What can be the value of a header, or of one part of a descriptor."""
KEY: Final = Result("a string, a number, true or false, bytes, or an address", SCALAR.kinds | {"net.IP", "net.CIDR"})
"""What distinguishes buckets."""
NUMBER: Final = Result("a number", _NUMBERS)
SHARE: Final = Result("a double from 0.0 to 1.0, or true or false", frozenset({"double", "bool"}))
UNTIL: Final = Result("a duration, a time, or either as a string or number", _NUMBERS | _TIMES | {"string"})
"""How long from now, or the time of expiry."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Marks a field as an expression, for generators and checks.

    `earlier`: (field, value) beside this one with which it is evaluated with the request instead. `literal`: a pattern
    of texts that are values themselves, no expressions. `unread`: variables of the moment that it cannot read, and why.
    """

    moment: Moment
    result: Result = ANYTHING
    earlier: tuple[str, str] | None = None
    literal: str = ""
    unread: tuple[tuple[str, ...], str] = ((), "")


_Text = Field(min_length=1, max_length=MAX_LENGTH)
RequestExpression = Annotated[str, _Text, Expression("request")]
ResponseExpression = Annotated[str, _Text, Expression("response")]
EndExpression = Annotated[str, _Text, Expression("end")]

ConnectionCondition = Annotated[str, _Text, Expression("connection", CONDITION)]
RequestCondition = Annotated[str, _Text, Expression("request", CONDITION)]
ResponseCondition = Annotated[str, _Text, Expression("response", CONDITION)]
_BODIES: Final = ("response.body", "response.bodyPrefix"), "it is asked when the head of the response has come"
HeadCondition = Annotated[str, _Text, Expression("response", CONDITION, unread=_BODIES)]
"""Of a response that is judged before its body is here."""
EndCondition = Annotated[str, _Text, Expression("end", CONDITION)]

RequestText = Annotated[str, _Text, Expression("request", TEXT)]
RequestScalar = Annotated[str, _Text, Expression("request", SCALAR)]
RequestNumber = Annotated[str, _Text, Expression("request", NUMBER)]
RequestKey = Annotated[str, _Text, Expression("request", KEY)]
ResponseScalar = Annotated[str, _Text, Expression("response", SCALAR)]
_HELD: Final = ("request.body",), "it is not held when an endpoint is chosen"
HashKey = Annotated[str, _Text, Expression("request", SCALAR, unread=_HELD)]
"""What endpoints are chosen by."""
RequestShare = Annotated[str, _Text, Expression("request", SHARE)]

Cost = Annotated[str, _Text, Expression("end", NUMBER, earlier=("unit", "Requests"))]
"""`descriptors[].cost`: of Tokens it is known at the end, of Requests at once."""
TimeToLive = Annotated[str, _Text, Expression("request", UNTIL, literal=duration.PATTERN)]
"""`cache.ttl`: a duration such as 5m, or an expression."""
