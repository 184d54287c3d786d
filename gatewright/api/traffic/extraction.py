"""Where a credential stands in a request (AuthorizationExtractionLocation), and where one is written.

Used by the three client-facing authentication policies, and by the credentials toward backends.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.schema.cel_field import RequestText
from gatewright.api.schema.fields import HeaderName, ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.rules import exactly_one


class HeaderLocation(Model):
    """A header."""

    name: HeaderName
    """Name of the header."""
    prefix: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """What stands before the credential, without the space between."""


class QueryParameterLocation(Model):
    """A parameter of the query."""

    name: ShortString
    """Name of the parameter."""


class CookieLocation(Model):
    """A cookie."""

    name: ShortString
    """Name of the cookie."""


class AuthorizationLocation(RuledModel):
    """Where a credential stands: one of these."""

    header: HeaderLocation | None = None
    """A header."""
    query_parameter: QueryParameterLocation | None = None
    """A parameter of the query."""
    cookie: CookieLocation | None = None
    """A cookie."""

    cel_rules = (exactly_one("header", "queryParameter", "cookie"),)


class AuthorizationExtractionLocation(AuthorizationLocation):
    """Where a client's credential is found: one of these."""

    expression: RequestText | None = None
    """An expression that gives the credential."""

    cel_rules = (exactly_one("header", "queryParameter", "cookie", "expression"),)
