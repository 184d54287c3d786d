"""`traffic.csrf`: requests that another site made a browser send are refused."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.checks import Matching
from gatewright.api.schema.fields import ShortString
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import each

_ORIGIN: Final = r"[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?"


class CSRF(RuledModel):
    """What another site made a browser send is refused. GET, HEAD and OPTIONS pass, as does what has neither
    Sec-Fetch-Site nor Origin; of the rest only what comes from the destination's own origin or one of these."""

    additional_origins: Annotated[tuple[ShortString, ...], Field(min_length=1, max_length=16)] | None = None
    """Origins that are allowed beside the destination's own, as SCHEME://HOST or SCHEME://HOST:PORT."""

    cel_rules = (
        each(
            "additionalOrigins",
            Matching(_ORIGIN),
            "must be an origin such as https://shop.example.com:8443",
        ),
    )
