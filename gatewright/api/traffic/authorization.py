"""`authorization`: rules by expressions, for requests, for connections and for MCP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import ConnectionCondition, RequestCondition
from gatewright.api.schema.model import Model

_MATCHES = Field(min_length=1, max_length=256)
Action = Literal["Allow", "Deny", "Require"]


class AuthorizationRule(Model):
    """What a rule asks of a request."""

    match_expressions: Annotated[tuple[RequestCondition, ...], _MATCHES]
    """The rule matches when all of these are true. One that fails does not match."""


class Authorization(Model):
    """A rule. Those of several policies add up: a matching Deny denies, every Require must match, and if there is an
    Allow one of them must match."""

    policy: AuthorizationRule
    """What the rule asks."""
    action: Action = "Allow"
    """What a match means."""


class NetworkAuthorizationRule(Model):
    """What a rule asks of a connection."""

    match_expressions: Annotated[tuple[ConnectionCondition, ...], _MATCHES]
    """The rule matches when all of these are true. One that fails does not match."""


class NetworkAuthorization(Model):
    """A rule about connections, asked before anything of the protocol is read."""

    policy: NetworkAuthorizationRule
    """What the rule asks."""
    action: Action = "Allow"
    """What a match means."""
