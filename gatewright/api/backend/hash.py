"""`backend.hash`, a Gatewright extension: requests with the same key go to the same endpoint."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import HashKey
from gatewright.api.schema.fields import HeaderName, Integer
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import exactly_one


class BackendHash(RuledModel):
    """What decides which endpoint a request goes to. Gatewright extension."""

    cel_rules = (exactly_one("header", "cookie", "source", "expression"),)

    header: HeaderName | None = None
    """The value of this header."""
    cookie: HeaderName | None = None
    """The value of this cookie."""
    source: Literal["Address"] | None = None
    """The client's address."""
    expression: HashKey | None = None
    """What this expression gives: text, bytes, a number or a boolean."""
    max_load: Annotated[Integer, Field(ge=101, le=1000)] = 125
    """Percent of the average of requests in flight that an endpoint carries; further ones go to its neighbour."""
