"""`backend.mcp` (BackendMCP): what happens with MCP calls."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import RequestExpression
from gatewright.api.schema.checks import Matching
from gatewright.api.schema.fields import FailureMode, Json, PositiveDuration, PseudoHeaderName, ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.schema.rules import each, exactly_one
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.jwt_authentication import Audiences, IdentityProvider, Mode, RemoteJWKS

_Headers = Annotated[tuple[PseudoHeaderName, ...], Field(max_length=64)]


class MCPAuthentication(Model):
    """Tokens of MCP clients, the deprecated way."""

    resource_metadata: dict[str, Json] | None = None
    """Fields of the OAuth protected resource metadata."""
    provider: IdentityProvider | None = None
    """The kind of identity provider, where it needs adapting."""
    issuer: ShortString | None = None
    """The token's `iss` claim."""
    audiences: Audiences | None = None
    """Audiences of which the token's `aud` claim must name one; any, when unset."""
    jwks: RemoteJWKS
    """The issuer's keys."""
    mode: Mode = "Strict"
    """`Strict` asks for a valid token; `Optional` lets requests without one pass; `Permissive` rejects nothing."""
    client_id: str | None = None
    """The client id that is returned instead of passing registrations of clients on to the identity provider."""


class RemoteProcessor(Model):
    """A gRPC server that sees and changes MCP messages."""

    backend_ref: PolicyBackendReference
    """The server: a Service or GatewayBackend."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when the server is unavailable or fails: reject (FailClosed) or continue (FailOpen)."""
    metadata: Annotated[dict[str, RequestExpression], Field(max_length=64)] | None = None
    """Values sent with every call."""
    allowed_request_headers: _Headers | None = None
    """Headers of the request that are sent; all of them when empty. Letter case does not matter."""
    disallowed_request_headers: _Headers | None = None
    """Headers that are never sent, even if allowed. Letter case does not matter."""


class MCPGuardrailsProcessor(RuledModel):
    """A processor and the messages that it gets."""

    remote: RemoteProcessor | None = None
    """A gRPC server."""
    methods: Annotated[dict[str, Literal["Off", "Request", "Response", "Full"]], Field(min_length=1, max_length=64)]
    """JSON-RPC methods and which of their messages the processor gets. A key is a method, `tools/*`, `*/list` or `*`;
    the most specific one that fits counts, and a method that none fits passes by."""

    cel_rules = (
        exactly_one("remote"),
        each(
            "methods",
            Matching("([*]|[*]?[^*]+|[^*]+[*])"),
            "must be a method, or have one * at its start or end",
        ),
    )


class MCPGuardrails(Model):
    """Processors of MCP messages."""

    processors: Annotated[tuple[MCPGuardrailsProcessor, ...], Field(min_length=1, max_length=16)]
    """They run in order; the first that rejects ends the call."""


class MCPAuthorization(Authorization):
    """A rule, asked for one tool, prompt or resource at a time. `mcp.*` has values there."""


class BackendMCP(Model):
    """Policies for backends of type `mcp`."""

    authorization: MCPAuthorization | None = None
    """A rule about each tool, prompt or resource: lists leave out what it refuses, calls of it are rejected."""
    authentication: MCPAuthentication | None = None
    """Deprecated in favour of traffic.jwtAuthentication.mcp, which runs before transformations and rate limits."""
    guardrails: MCPGuardrails | None = None
    """Processors of MCP messages."""
    keep_alive: PositiveDuration | None = None
    """Silence on a stream to a client after which a comment says that it is alive, for balancers in front that end what
    is silent: at most one each 100ms. Unset: the gateway adds none, and comments of servers pass. Gatewright
    extension."""
