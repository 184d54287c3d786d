"""`traffic.transformation`: headers, body and metadata computed by expressions. Also a backend policy."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.routes.http_filters import NO_CONNECTION_HEADERS
from gatewright.api.schema.cel_field import RequestExpression, RequestScalar, ResponseExpression, ResponseScalar
from gatewright.api.schema.fields import PseudoHeaderName
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional, rules_of_conditional

_LIST = Field(min_length=1, max_length=16)
_Removed = Annotated[tuple[PseudoHeaderName, ...], _LIST]


class _HeaderValue(Model):
    name: PseudoHeaderName
    """Name of the header; one leading colon names a pseudo-header."""


class RequestHeaderValue(_HeaderValue):
    """A header of the request and the expression that gives its value."""

    value: RequestScalar
    """The value."""


class ResponseHeaderValue(_HeaderValue):
    """A header of the response and the expression that gives its value."""

    value: ResponseScalar
    """The value."""


class RequestTransform(RuledModel):
    """Changes of the request. The order is metadata, add, set, remove, body."""

    set: Annotated[tuple[RequestHeaderValue, ...], _LIST] | None = None
    """Headers to write, in place of those of the same name. An expression that fails removes the header."""
    add: Annotated[tuple[RequestHeaderValue, ...], _LIST] | None = None
    """Headers to write beside those of the same name. An expression that fails removes the header."""
    remove: _Removed | None = None
    """Headers to take away."""
    body: RequestExpression | None = None
    """The new body. An expression that fails answers 500."""
    metadata: Annotated[dict[str, RequestExpression], _LIST] | None = None
    """Values for later expressions, which read them as `metadata.NAME`. One that fails is absent."""

    cel_rules = NO_CONNECTION_HEADERS


class ResponseTransform(RuledModel):
    """Changes of the response. The order is metadata, add, set, remove, body."""

    set: Annotated[tuple[ResponseHeaderValue, ...], _LIST] | None = None
    """Headers to write, in place of those of the same name. An expression that fails removes the header."""
    add: Annotated[tuple[ResponseHeaderValue, ...], _LIST] | None = None
    """Headers to write beside those of the same name. An expression that fails removes the header."""
    remove: _Removed | None = None
    """Headers to take away."""
    body: ResponseExpression | None = None
    """The new body. An expression that fails answers 502."""
    metadata: Annotated[dict[str, ResponseExpression], _LIST] | None = None
    """Values for later expressions, which read them as `metadata.NAME`. One that fails is absent."""

    cel_rules = NO_CONNECTION_HEADERS


class Transformation(RuledModel):
    """Changes of requests and responses."""

    request: RequestTransform | None = None
    """Changes before the request is forwarded."""
    response: ResponseTransform | None = None
    """Changes before the response is returned."""


class ConditionalTransformation(ConditionalItem):
    """An item of `transformation.conditional`."""

    policy: Transformation
    """What to do then."""


class TransformationOrConditional(OrConditional, Transformation):
    """`traffic.transformation`."""

    conditional: Annotated[tuple[ConditionalTransformation, ...], ITEMS] | None = None
    """Transformations of which the first whose condition is true runs. Excludes all other fields."""

    cel_rules = rules_of_conditional(Transformation)
