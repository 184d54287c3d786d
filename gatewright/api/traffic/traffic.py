"""`GatewayPolicy.spec.traffic` (Traffic): all policies about requests."""

from __future__ import annotations

from typing import ClassVar, Literal

from gatewright.api.routes.http_filters import HTTPCORSFilter
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.rules import absent_where
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.api.traffic.buffer import Buffer
from gatewright.api.traffic.compression import Compression
from gatewright.api.traffic.csrf import CSRF
from gatewright.api.traffic.delay import Delay
from gatewright.api.traffic.direct_response import DirectResponseOrConditional
from gatewright.api.traffic.ext_auth import ExtAuthOrConditional
from gatewright.api.traffic.ext_proc import ExtProcOrConditional
from gatewright.api.traffic.fault import Fault
from gatewright.api.traffic.header_modifiers import HeaderModifiers
from gatewright.api.traffic.host_rewrite import HostnameRewrite
from gatewright.api.traffic.jwt_authentication import JWTAuthentication
from gatewright.api.traffic.rate_limit import RateLimitsOrConditional
from gatewright.api.traffic.retry import Retry
from gatewright.api.traffic.timeouts import Timeouts
from gatewright.api.traffic.transformation import TransformationOrConditional
from gatewright.api.traffic.upgrades import Upgrades
from gatewright.attach.policies import LATE, TRAFFIC


class RequestPolicies(RuledModel):
    """All policies about requests, of the table in `gatewright/attach/policies.py`: those of GatewayPolicies, and of
    routes and listeners in the standalone file."""

    parts: ClassVar[tuple[str, ...]] = (TRAFFIC,)
    """Of that table: whose policies the fields are."""

    transformation: TransformationOrConditional | None = None
    """Headers, body and metadata computed by expressions."""
    ext_proc: ExtProcOrConditional | None = None
    """A server that sees and changes requests and responses."""
    ext_auth: ExtAuthOrConditional | None = None
    """A server that decides about requests."""
    rate_limit: RateLimitsOrConditional | None = None
    """How many requests or tokens are allowed."""
    cors: HTTPCORSFilter | None = None
    """Which other sites' scripts may use this one."""
    csrf: CSRF | None = None
    """Refuse what another site made a browser send."""
    header_modifiers: HeaderModifiers | None = None
    """Headers set, added and removed."""
    host_rewrite: HostnameRewrite | None = None
    """Which Host header the backend sees."""
    upgrades: Upgrades | None = None
    """Which protocols a client may switch to."""
    timeouts: Timeouts | None = None
    """How long a request may take."""
    retry: Retry | None = None
    """When a request is sent again."""
    authorization: Authorization | None = None
    """A rule that requests must keep to."""
    jwt_authentication: JWTAuthentication | None = None
    """JSON Web Tokens of clients."""
    basic_authentication: BasicAuthentication | None = None
    """Names and passwords of clients."""
    api_key_authentication: APIKeyAuthentication | None = None
    """API keys of clients."""
    delay: Delay | None = None
    """Requests wait before they go on. Gatewright extension."""
    fault: Fault | None = None
    """Some requests wait or fail, for tests of clients. Gatewright extension."""
    compression: Compression | None = None
    """Responses are compressed for clients that accept it. Gatewright extension."""
    direct_response: DirectResponseOrConditional | None = None
    """The gateway answers itself."""
    buffer: Buffer | None = None
    """Bodies are held in memory until they are complete."""


class Traffic(RequestPolicies):
    """What happens with requests."""

    phase: Literal["PreRouting", "PostRouting"] = "PostRouting"
    """When these policies run. `PreRouting` needs a Gateway or listener as target and is meant to influence routing.
    Policies of the two phases never merge."""

    cel_rules = tuple(absent_where(to_camel(name), "phase", "PreRouting") for name in LATE)
