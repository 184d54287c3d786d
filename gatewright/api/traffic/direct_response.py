"""`traffic.directResponse`: the gateway answers itself."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from gatewright.api.routes.http_filters import no_connection_headers
from gatewright.api.schema.cel_field import RequestExpression, RequestScalar
from gatewright.api.schema.fields import HeaderName, Integer
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.rules import Rule, not_both
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional, rules_of_conditional

_Status = Annotated[Integer, Field(ge=200, le=599)]


class DirectResponseHeader(Model):
    """A header of the answer."""

    name: HeaderName
    """Name of the header."""
    value: RequestScalar
    """The value."""


class _DirectResponseFields(RuledModel):
    status: _Status | None = None
    """Status of the answer."""
    body: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Body of the answer; none if neither this nor bodyExpression is set."""
    body_expression: RequestExpression | None = None
    """Body of the answer by an expression: text and bytes as they are, other values as JSON."""
    headers: Annotated[tuple[DirectResponseHeader, ...], Field(min_length=1, max_length=16)] | None = None
    """Headers of the answer."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (
        not_both("body", "bodyExpression"),
        no_connection_headers("headers", "name"),
    )


class DirectResponse(_DirectResponseFields):
    """An answer of the gateway's own."""

    status: _Status


class ConditionalDirectResponse(ConditionalItem):
    """An item of `directResponse.conditional`."""

    policy: DirectResponse
    """What to answer then."""


class DirectResponseOrConditional(OrConditional, _DirectResponseFields):
    """`traffic.directResponse`."""

    conditional: Annotated[tuple[ConditionalDirectResponse, ...], ITEMS] | None = None
    """Answers of which the first whose condition is true is given. Excludes all other fields."""

    cel_rules = rules_of_conditional(_DirectResponseFields, "status")
