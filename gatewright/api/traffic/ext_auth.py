"""`traffic.extAuth` and `backend.extAuth`: an HTTP or gRPC server that decides about requests."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from gatewright.api.schema.cel_field import (
    RequestExpression,
    RequestScalar,
    RequestText,
    ResponseExpression,
    TimeToLive,
)
from gatewright.api.schema.fields import ByteSize, FailureMode, Integer, ShortString
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.schema.rules import Rule, exactly_one
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional, rules_of_conditional

_HeaderList = Annotated[tuple[ShortString, ...], Field(max_length=64)]
_Expressions = Annotated[dict[str, RequestExpression], Field(max_length=64)]


class AgentExtAuthGRPC(Model):
    """The gRPC external authorization protocol."""

    context_extensions: Annotated[dict[str, str], Field(max_length=64)] | None = None
    """Sent as context extensions with every call."""
    request_metadata: _Expressions | None = None
    """Sent as request metadata. When unset and a JWT policy is in use, a default JWT key is sent for compatibility."""


class AgentExtAuthHTTP(Model):
    """Authorization over HTTP: the answer 200 allows, any other denies."""

    path: RequestText | None = None
    """Path of the call; default is the path of the request."""
    redirect: RequestText | None = None
    """Where to redirect to when the request is denied, a sign-in page for example."""
    allowed_request_headers: _HeaderList | None = None
    """Headers of the client that are sent beside `Authorization`, which is the default."""
    add_request_headers: Annotated[dict[str, RequestScalar], Field(max_length=64)] | None = None
    """Further headers of the call, by expressions."""
    allowed_response_headers: _HeaderList | None = None
    """Headers of the answer that are copied to the request before it is forwarded."""
    response_metadata: Annotated[dict[str, ResponseExpression], Field(max_length=64)] | None = None
    """Values from the answer that later expressions read as `extauthz.NAME`."""


class ExtAuthBody(Model):
    """Whether the call carries the request's body."""

    max_size: ByteSize
    """The largest body that is sent; a request with a larger one is rejected."""


class ExtAuthCache(Model):
    """How long an answer counts for requests that are alike."""

    key: Annotated[tuple[RequestExpression, ...], Field(min_length=1, max_length=16)]
    """The parts of the key. They must cover everything of a request that the decision depends on. When one fails, the
    server is asked and its answer not kept."""
    ttl: TimeToLive
    """How long: a duration such as 5m, or an expression that gives a duration or the time of expiry. Evaluated after
    the answer was applied."""
    max_entries: Annotated[Integer, Field(ge=1)] = 10000
    """How many answers are kept."""


class _ExtAuthFields(RuledModel):
    backend_ref: PolicyBackendReference | None = None
    """The authorization server: a Service or GatewayBackend."""
    failure_mode: FailureMode = "FailClosed"
    """What happens when the server is unavailable or fails: deny (FailClosed) or continue (FailOpen)."""
    grpc: AgentExtAuthGRPC | None = None
    """Use the gRPC protocol."""
    http: AgentExtAuthHTTP | None = None
    """Use HTTP."""
    forward_body: ExtAuthBody | None = None
    """Send the body of the request as well; it is held in memory for that."""
    cache: ExtAuthCache | None = None
    """Keep answers."""

    cel_rules: ClassVar[tuple[Rule, ...]] = (exactly_one("grpc", "http"),)


class ExtAuth(_ExtAuthFields):
    """External authorization."""

    backend_ref: PolicyBackendReference


class ConditionalExtAuth(ConditionalItem):
    """An item of `extAuth.conditional`."""

    policy: ExtAuth
    """What to do then."""


class ExtAuthOrConditional(OrConditional, _ExtAuthFields):
    """`traffic.extAuth`."""

    conditional: Annotated[tuple[ConditionalExtAuth, ...], ITEMS] | None = None
    """Servers of which the first whose condition is true is asked. Excludes all other fields."""

    cel_rules = rules_of_conditional(_ExtAuthFields, "backendRef")
