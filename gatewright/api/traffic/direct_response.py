"""`traffic.directResponse` (spec 2): the gateway answers itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from gatewright.api.routes.http_filters import CONNECTION_HEADERS
from gatewright.api.schema.cel_field import RequestExpression, RequestScalar
from gatewright.api.schema.fields import HeaderName, Integer
from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional

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

    def broken_rules(self) -> Iterator[Broken]:
        if self.body is not None and self.body_expression is not None:
            yield Broken(("bodyExpression",), "must be absent when body is set")
        for index, header in enumerate(self.headers or ()):
            if header.name.lower() in CONNECTION_HEADERS:
                yield Broken(("headers", index, "name"), "belongs to the connection and cannot be edited")


class DirectResponse(_DirectResponseFields):
    """An answer of the gateway's own."""

    status: _Status


class ConditionalDirectResponse(ConditionalItem):
    """An item of `directResponse.conditional`."""

    policy: DirectResponse
    """What to answer then."""


class DirectResponseOrConditional(OrConditional, _DirectResponseFields):
    """`traffic.directResponse`."""

    required: ClassVar = ("status",)

    conditional: Annotated[tuple[ConditionalDirectResponse, ...], ITEMS] | None = None
    """Answers of which the first whose condition is true is given. Excludes all other fields."""
