"""`policies` of a route in the standalone file: the settings of a GatewayPolicy and of an HTTPRoute's rule in one list.

Part of standalone_file. Listeners and backends take the CRD's own sets (Traffic, BackendFull) in the file's form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatewright.api.backend.ai import BackendAI
from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.health import Health
from gatewright.api.backend.http import BackendHTTP
from gatewright.api.backend.limits import BackendLimits
from gatewright.api.backend.mcp import BackendMCP
from gatewright.api.backend.tcp import BackendTCP
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.backend.tunnel import BackendTunnel
from gatewright.api.routes.http_filters import Fraction, HTTPCORSFilter, HTTPRequestRedirectFilter, HTTPURLRewriteFilter
from gatewright.api.routes.http_route import HTTPRouteTimeouts
from gatewright.api.schema.fields import Integer
from gatewright.api.schema.model import Broken, RuledModel
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.references import Reference
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.api.traffic.buffer import Buffer
from gatewright.api.traffic.csrf import CSRF
from gatewright.api.traffic.direct_response import DirectResponseOrConditional
from gatewright.api.traffic.ext_auth import ExtAuthOrConditional
from gatewright.api.traffic.ext_proc import ExtProcOrConditional
from gatewright.api.traffic.header_modifiers import HeaderModifiers
from gatewright.api.traffic.host_rewrite import HostnameRewrite
from gatewright.api.traffic.jwt_authentication import JWTAuthentication
from gatewright.api.traffic.rate_limit import RateLimitsOrConditional
from gatewright.api.traffic.retry import Retry
from gatewright.api.traffic.transformation import TransformationOrConditional
from gatewright.api.traffic.upgrades import Upgrades


@file_form
class FileMirror(Reference):
    """`requestMirror`: Gateway API HTTPRequestMirrorFilter with the file's form of a reference."""

    percent: Annotated[Integer, Field(ge=0, le=100)] | None = None
    """Share of the requests that are copied; all of them when neither this nor fraction is set."""
    fraction: Fraction | None = None
    """The share as a fraction."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from super().broken_rules()
        if self.percent is not None and self.fraction is not None:
            yield Broken(("fraction",), "only one of percent and fraction may be set")


@file_form
class RoutePolicies(RuledModel):
    """What happens with the requests of a route: filters of an HTTPRoute's rule, then `traffic` and `backend` of a
    GatewayPolicy."""

    header_modifiers: HeaderModifiers | None = None
    """Headers set, added and removed."""
    url_rewrite: HTTPURLRewriteFilter | None = None
    """Another path or host for the backend."""
    request_redirect: HTTPRequestRedirectFilter | None = None
    """Answer with a redirect; the route has no backends then."""
    request_mirror: FileMirror | None = None
    """Send copies of requests to another backend."""
    timeouts: HTTPRouteTimeouts | None = None
    """How long a request may take."""
    retry: Retry | None = None
    """When a request is sent again."""

    transformation: TransformationOrConditional | None = None
    """Headers, body and metadata computed by expressions."""
    ext_proc: ExtProcOrConditional | None = None
    """A server that sees and changes requests and responses."""
    ext_authz: ExtAuthOrConditional | None = None
    """A server that decides about requests."""
    rate_limit: RateLimitsOrConditional | None = None
    """How many requests or tokens are allowed."""
    cors: HTTPCORSFilter | None = None
    """Which other sites' scripts may use this one."""
    csrf: CSRF | None = None
    """Refuse what another site made a browser send."""
    host_rewrite: HostnameRewrite | None = None
    """Which Host header the backend sees."""
    upgrades: Upgrades | None = None
    """Which protocols a client may switch to."""
    authorization: Authorization | None = None
    """A rule that requests must keep to."""
    jwt_authentication: JWTAuthentication | None = None
    """JSON Web Tokens of clients."""
    basic_authentication: BasicAuthentication | None = None
    """Names and passwords of clients."""
    api_key_authentication: APIKeyAuthentication | None = None
    """API keys of clients."""
    direct_response: DirectResponseOrConditional | None = None
    """The gateway answers itself."""
    buffer: Buffer | None = None
    """Bodies are held in memory until they are complete."""

    tcp: BackendTCP | None = None
    """TCP settings of connections to backends."""
    tls: BackendTLS | None = None
    """When set, even to {}, TLS is spoken with backends."""
    http: BackendHTTP | None = None
    """HTTP settings of requests to backends."""
    tunnel: BackendTunnel | None = None
    """A proxy between the gateway and backends."""
    auth: BackendAuth | None = None
    """Credentials toward backends."""
    ai: BackendAI | None = None
    """What happens with requests to LLM providers."""
    mcp: BackendMCP | None = None
    """What happens with MCP calls."""
    health: Health | None = None
    """Which endpoints get no requests for a while."""
    limits: BackendLimits | None = None
    """How much backends are asked at a time. Gatewright extension."""
