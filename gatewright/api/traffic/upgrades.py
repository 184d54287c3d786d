"""`traffic.upgrades`, a Gatewright extension: which protocols a client may switch to."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.checks import NoneOf
from gatewright.api.schema.fields import ProtocolName
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import each

HTTP: Final = ("h2c", "h2", "h3")
"""Protocols that would lead past routes and policies, whatever is configured."""


class Upgrades(RuledModel):
    """Which protocols a client may switch to by `upgrade` of HTTP/1.1 or extended CONNECT of HTTP/2. Without this
    setting `websocket` alone. Gatewright extension."""

    protocols: Annotated[tuple[ProtocolName, ...], Field(max_length=16)]
    """Their names, such as websocket; none: requests stay what they are. HTTP itself can never be switched to."""

    cel_rules = (
        each(
            "protocols",
            NoneOf(HTTP),
            f"must not be one of {', '.join(HTTP)}: these pass policies by",
        ),
    )
