"""What the standalone file writes in another way than the CRDs: references, secrets, and the names that its page shows.

One table, FORMS, from a CRD's model to what differs; `form` makes models of it. Each part also answers by the
CRD's attributes (`backend_ref`, `http`, `attributes`), so that readers of policies need not know where they are from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from gatewright.api.backend.auth import AwsAuth, AzureAuth, BackendAuth, GcpAuth
from gatewright.api.backend.backend import BackendFull
from gatewright.api.backend.mcp import RemoteProcessor
from gatewright.api.backend.mcp_targets import McpTarget, McpTargetSelector
from gatewright.api.backend.prompt_guard import Webhook
from gatewright.api.backend.providers import CustomProvider, LLMProvider
from gatewright.api.backend.simple import BackendSimple
from gatewright.api.backend.tls import BackendTLS
from gatewright.api.backend.tunnel import BackendTunnel
from gatewright.api.frontend.telemetry import (
    AccessLog,
    AttributeAdd,
    LogTracingAttributes,
    OtlpAccessLog,
    OtlpMetrics,
    Tracing,
)
from gatewright.api.objects.gateway import ListenerTLS
from gatewright.api.schema.cel_field import EndExpression, ResponseExpression
from gatewright.api.schema.fields import Port, SectionName, ShortString, TinyString
from gatewright.api.schema.model import Broken, Model, RuledModel, one_of
from gatewright.api.standalone.references import (
    FileReference,
    NamesBackend,
    OptionalReference,
    ProxyReference,
    Reference,
    StaticReference,
)
from gatewright.api.standalone.secrets import (
    ENV_PATTERN,
    AwsSecret,
    AzureSecret,
    BackendCertificates,
    CredentialSecret,
    GcpSecret,
    KeysSecret,
    ListenerCertificates,
    SharedSecret,
    UsersSecret,
)
from gatewright.api.traffic.api_key_authentication import APIKeyAuthentication
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.api.traffic.ext_auth import (
    AgentExtAuthGRPC,
    AgentExtAuthHTTP,
    ExtAuth,
    ExtAuthOrConditional,
)
from gatewright.api.traffic.ext_proc import ExtProc, ExtProcOrConditional
from gatewright.api.traffic.jwt_authentication import DiscoveredJWKS, JWTProvider, RemoteJWKS
from gatewright.api.traffic.rate_limit import GlobalRateLimit
from gatewright.api.traffic.traffic import RequestPolicies


class _ExtAuthzHttp(RuledModel):
    response_metadata: ClassVar[None] = None  # extAuthz.metadata


class ExtAuthzProtocol(RuledModel):
    """How the server is asked: one of these."""

    http: AgentExtAuthHTTP | None = None
    """Over HTTP."""
    grpc: AgentExtAuthGRPC | None = None
    """By the gRPC external authorization protocol."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "http", "grpc")


def _grpc(part: Any) -> AgentExtAuthGRPC | None:  # Any: an _ExtAuthz
    return part.protocol.grpc if part.protocol is not None else None


def _http(part: Any) -> AgentExtAuthHTTP | None:  # Any: an _ExtAuthz
    if part.protocol is None or part.protocol.http is None:
        return None
    # Not validated again: the parts are.
    return AgentExtAuthHTTP.model_construct(**{**vars(part.protocol.http), "response_metadata": part.metadata})


class _ExtAuthz(Reference):
    in_file_alone = (*Reference.in_file_alone, "protocol", "metadata")

    protocol: ExtAuthzProtocol | None = None
    """How the server is asked."""
    metadata: Annotated[dict[str, ResponseExpression], Field(max_length=64)] | None = None
    """Values from an HTTP server's answer that later expressions read as `extauthz.NAME`."""

    grpc: ClassVar[Any] = property(_grpc)
    """`protocol.grpc`, under the CRD's name."""
    http: ClassVar[Any] = property(_http)
    """`protocol.http` and `metadata`, under the CRD's name."""

    def broken_rules(self) -> Iterator[Broken]:
        for rule in super().broken_rules():
            if rule.path not in ((), ("http",), ("grpc",)):  # they are in protocol
                yield rule
        if self.protocol is None and getattr(self, "conditional", None) is None:
            yield Broken(("protocol",), "is required")
        if self.metadata is not None and self.grpc is not None:
            yield Broken(("metadata",), "is valid only with protocol.http")


def _ext_auth(part: Any) -> Any:  # Any: a part with extAuthz
    return part.ext_authz


class _Traffic(RuledModel):
    ext_authz: ExtAuthOrConditional | None = None
    """A server that decides about requests."""

    ext_auth: ClassVar[Any] = property(_ext_auth)
    """`extAuthz`, under the CRD's name."""


class _BackendFull(RuledModel):
    ext_authz: ExtAuth | None = None
    """A server that decides about requests to this backend."""

    ext_auth: ClassVar[Any] = property(_ext_auth)
    """`extAuthz`, under the CRD's name."""


def _attributes(part: Any) -> LogTracingAttributes | None:  # Any: an _AccessLog
    if part.add is None and part.remove is None:
        return None
    items = None if part.add is None else tuple(AttributeAdd(name=k, expression=e) for k, e in part.add.items())
    return LogTracingAttributes(add=items, remove=part.remove)


class _AccessLog(RuledModel):
    add: dict[ShortString, EndExpression] | None = None
    """Further attributes: name to expression. One whose expression fails is left out."""
    remove: Annotated[tuple[TinyString, ...], Field(min_length=1, max_length=32)] | None = None
    """Default attributes that are left out, for example http.method."""

    attributes: ClassVar[Any] = property(_attributes)
    """Both, under the CRD's name."""


_Variable = Annotated[str, Field(max_length=256, pattern=ENV_PATTERN)]


class Stdio(Model):
    """An MCP server that the proxy starts, and speaks with over its standard input and output."""

    cmd: Annotated[str, Field(min_length=1, max_length=4096)]
    """The command."""
    args: Annotated[tuple[str, ...], Field(max_length=256)] = ()
    """Its arguments."""
    env: Annotated[dict[_Variable, str], Field(max_length=256)] | None = None
    """Variables of its environment, beside the proxy's own."""
    env_from: Annotated[dict[_Variable, _Variable], Field(max_length=256)] | None = None
    """Variables of its environment that have the values of others, of the proxy's: these stand behind the colon."""


class _McpTargetSelector(RuledModel):
    name: SectionName
    """Name of the target."""
    static: McpTarget | None = None
    """One MCP server on the network."""
    stdio: Stdio | None = None
    """An MCP server that the proxy starts."""
    selector: ClassVar[None] = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "static", "stdio")


def _service(part: Any) -> FileReference | None:  # Any: an _McpTarget
    return FileReference(None, part.backend, part.policies) if part.backend is not None else None


class _McpTarget(NamesBackend):
    static_only = True

    host: ShortString | None = None
    """The server's host."""
    port: Port | None = None
    """The server's port; a backend brings its own."""
    policies: BackendSimple | None = None
    """Policies for connecting to it; they win over those of the backend."""

    backend_ref: ClassVar[Any] = property(_service)
    """`backend`, under the CRD's name."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from one_of(self, "host", "backend")
        if self.host is not None and self.port is None:
            yield Broken(("port",), "is required with host")
        if self.backend is not None and self.port is not None:
            yield Broken(("port",), "must be absent when backend is set")


class _CustomProvider(OptionalReference):
    static_only = True

    def broken_rules(self) -> Iterator[Broken]:
        yield from self.reference_rules()  # the CRD's rule is about kinds


_IN_THE_FILE: Final = {
    "is required for a custom provider without backendRef": "is required unless custom has a host or backend",
}


class _Provider(RuledModel):
    def broken_rules(self) -> Iterator[Broken]:
        for rule in super().broken_rules():
            yield rule._replace(message=_IN_THE_FILE.get(rule.message, rule.message))


# In the file the attributes of the mixin take the place of the model's. A row counts for the model and for its
# subclasses that have none of their own.
FORMS: Final[Mapping[type[Model], type[RuledModel]]] = MappingProxyType(
    {
        ExtAuth: _ExtAuthz,
        ExtAuthOrConditional: _ExtAuthz,
        AgentExtAuthHTTP: _ExtAuthzHttp,
        ExtProc: Reference,
        ExtProcOrConditional: Reference,
        GlobalRateLimit: Reference,
        RemoteJWKS: StaticReference,
        DiscoveredJWKS: StaticReference,
        JWTProvider: SharedSecret,
        OtlpAccessLog: Reference,
        OtlpMetrics: Reference,
        Tracing: Reference,
        Webhook: Reference,
        RemoteProcessor: Reference,
        BackendTunnel: ProxyReference,
        CustomProvider: _CustomProvider,
        LLMProvider: _Provider,
        McpTarget: _McpTarget,
        McpTargetSelector: _McpTargetSelector,
        AccessLog: _AccessLog,
        RequestPolicies: _Traffic,
        BackendFull: _BackendFull,
        APIKeyAuthentication: KeysSecret,
        BasicAuthentication: UsersSecret,
        BackendAuth: CredentialSecret,
        GcpAuth: GcpSecret,
        AwsAuth: AwsSecret,
        AzureAuth: AzureSecret,
        BackendTLS: BackendCertificates,
        ListenerTLS: ListenerCertificates,
    }
)
