"""A model as a wire message: by field name, and a table of the exceptions.

The engine of `to_wire`, which says what a message is for. It resolves no reference: the fields that hold keys of other
resources stay empty here. One plan is made for each message type, when it is first asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from gatewright.api.frontend.http import FrontendHTTP
from gatewright.api.routes.grpc_route import GRPCHeaderMatch, GRPCMethodMatch, GRPCRouteMatch
from gatewright.api.routes.http_filters import HTTPRequestMirrorFilter
from gatewright.api.routes.http_route import HTTPHeaderMatch, HTTPPathMatch, HTTPRouteMatch
from gatewright.api.schema import duration
from gatewright.api.schema.byte_size import byte_size
from gatewright.api.traffic.jwt_authentication import JWKS, JWTAuthentication, JWTMCPConfig, JWTProvider
from gatewright.wire.v1 import ai_pb2, mcp_pb2

_MessageT = TypeVar("_MessageT", bound=Message)
_Read = Callable[[Any], Any]  # of a model's value
_Assign = Callable[[Any, str, Any], None]  # to a message's field


def lower(model: object, message: _MessageT) -> _MessageT:
    """Fill `message` from the attributes of `model` that have its fields' names, or as EXCEPTIONS says.

    None leaves a field unset; everything else sets it, also "" and 0 where the field has presence. The text of an enum
    is the end of its constant's name: "FailClosed" of FailureMode is FAILURE_MODE_FAIL_CLOSED.
    """
    for name, read, assign in _plan(message.DESCRIPTOR):
        value = read(model)
        if value is not None:
            assign(message, name, value)
    return message


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, _Read, _Assign], ...]:
    """Of each field: its name, how its value is found, and how it is set. Asking descriptors each time costs more than
    the lowering itself."""
    return tuple((field.name, _reader(descriptor, field), _assignment(field)) for field in descriptor.fields)


def _reader(descriptor: Descriptor, field: FieldDescriptor) -> _Read:
    exception = EXCEPTIONS.get((descriptor.name, field.name))
    if exception is not None:
        return exception
    # The message of a conditional policy is also that of its items, whose models have no list of their own.
    return optional(field.name) if field.name == CONDITIONAL else attrgetter(field.name)


def _assignment(field: FieldDescriptor) -> _Assign:
    if field.enum_type is not None:
        constants = _constants(field.enum_type)
        return _assign_enums(constants) if field.is_repeated else _assign_enum(constants)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _assign_map
    return _ASSIGN[field.is_repeated, field.message_type is not None]


def _constants(enum: EnumDescriptor) -> dict[str, int]:
    """Numbers by the constants' names without the enum's own name: FAIL_CLOSED."""
    prefix = _snake(enum.name)
    return {value.name.removeprefix(f"{prefix}_"): value.number for value in enum.values}


def _snake(camel: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[.-]", "_", camel).upper()


def _assign_enum(constants: dict[str, int]) -> _Assign:
    return lambda message, name, value: setattr(message, name, constants[_snake(value)])


def _assign_enums(constants: dict[str, int]) -> _Assign:
    return lambda message, name, values: getattr(message, name).extend(constants[_snake(each)] for each in values)


def _assign_map(message: Any, name: str, value: Any) -> None:
    getattr(message, name).update(value)


def _assign_part(message: Any, name: str, value: Any) -> None:
    part = getattr(message, name)
    part.SetInParent()
    lower(value, part)


def _assign_parts(message: Any, name: str, value: Any) -> None:
    target = getattr(message, name)
    for item in value:
        lower(item, target.add())


def _assign_values(message: Any, name: str, value: Any) -> None:
    getattr(message, name).extend(value)


# (is repeated, is a message) to how such a field is set.
_ASSIGN: Final[dict[tuple[bool, bool], _Assign]] = {
    (False, False): setattr,
    (False, True): _assign_part,
    (True, False): _assign_values,
    (True, True): _assign_parts,
}

CONDITIONAL: Final = "conditional"
"""Name of the list in every message of a policy that may be conditional."""


def optional(attribute: str) -> _Read:
    """The attribute, or None where the model has none: a message may serve several models of one policy."""
    return lambda model: getattr(model, attribute, None)


def _nothing(_: Any) -> None:
    """The caller resolves it."""


def _milliseconds(attribute: str, *, zero_is_off: bool = False) -> Callable[[Any], int | None]:
    """A duration in milliseconds; with `zero_is_off` "0s" is no limit, which the wire says by absence."""

    def convert(model: Any) -> int | None:
        text = getattr(model, attribute, None)
        value = duration.milliseconds(text) if text is not None else None
        return None if zero_is_off and value == 0 else value

    return convert


def _bytes(attribute: str) -> Callable[[Any], int | None]:
    """A ByteSize in whole bytes."""

    def convert(model: Any) -> int | None:
        size = getattr(model, attribute)
        return byte_size(size) if size is not None else None

    return convert


def _json(attribute: str) -> Callable[[Any], str | None]:
    """A value of the user's own as JSON text."""

    def convert(model: Any) -> str | None:
        value = getattr(model, attribute)
        return None if value is None else json.dumps(value)

    return convert


def _but(default: int, read: Callable[[Any], int | None]) -> Callable[[Any], int | None]:
    """The value unless it is the default, which the wire says by absence: then older proxies take the message."""

    def convert(model: Any) -> int | None:
        value = read(model)
        return None if value == default else value

    return convert


def _value_of(kind: str) -> Callable[[Any], str | None]:
    """The value of a match whose `type` is `kind`; a method of gRPC has names instead."""
    return lambda match: match.value if not isinstance(match, GRPCMethodMatch) and match.type == kind else None


def _prefix(match: HTTPPathMatch | GRPCMethodMatch) -> str | None:
    if isinstance(match, GRPCMethodMatch) or match.type != "PathPrefix":
        return None
    return match.value.rstrip("/") or "/"


def _headers(match: HTTPRouteMatch | GRPCRouteMatch) -> Iterable[HTTPHeaderMatch | GRPCHeaderMatch]:
    first: dict[str, HTTPHeaderMatch | GRPCHeaderMatch] = {}
    for header in match.headers:
        first.setdefault(header.name.lower(), header)
    return first.values()


def _path(match: HTTPRouteMatch | GRPCRouteMatch) -> HTTPPathMatch | GRPCMethodMatch | None:
    """Of a GRPCRoute the method; one whose names are empty is any (Gateway API GRPCMethodMatch)."""
    if isinstance(match, HTTPRouteMatch):
        return match.path
    method = match.method
    return method if method is not None and (method.service or method.method) else None


def _http_method(match: HTTPRouteMatch | GRPCRouteMatch) -> str | None:
    """All calls of gRPC are POST, so a GRPCRoute asks for none."""
    return match.method if isinstance(match, HTTPRouteMatch) else None


def _match_name(match: Any) -> str:
    name: str = match.name
    return name.lower() if isinstance(match, (HTTPHeaderMatch, GRPCHeaderMatch)) else name


def _count(attribute: str) -> Callable[[Any], int | None]:
    """A number without an upper bound: what is more than the wire can say means as many as there are."""

    def convert(model: Any) -> int | None:
        count: int | None = getattr(model, attribute)
        return None if count is None else min(count, 2**_WIDTH - 1)

    return convert


_WIDTH: Final = 32
"""Bits of a number on the wire."""


def _share(part: str) -> Callable[[HTTPRequestMirrorFilter], int]:
    """A part of the share of requests that a mirror gets; no share given: all. Of very large numbers the same share."""

    def convert(mirror: HTTPRequestMirrorFilter) -> int:
        if mirror.fraction is not None:
            share: int = getattr(mirror.fraction, part)
            return share >> max(mirror.fraction.denominator.bit_length() - _WIDTH, 0)
        return 100 if part == "denominator" or mirror.percent is None else mirror.percent

    return convert


# (message, field) to how its value is found, where the model has no attribute of that name and type.
class _Names(NamedTuple):
    names: tuple[str, ...]


def _owned_headers(http: FrontendHTTP) -> _Names | None:
    """In lower case; unset stays unset, for what that means is the proxy's to know."""
    names = http.owned_headers
    return None if names is None else _Names(tuple(name.lower() for name in names))


def _mcp_authentication(policy: Any) -> JWTAuthentication | None:
    """The deprecated form, as that in whose favour it is deprecated. Not validated: its parts are."""
    found = policy.authentication
    if found is None:
        return None
    keys = JWKS.model_construct(remote=found.jwks)
    provider = JWTProvider.model_construct(issuer=found.issuer or "", audiences=found.audiences, jwks=keys)
    mcp = JWTMCPConfig.model_construct(
        resource_metadata=found.resource_metadata, provider=found.provider, client_id=found.client_id
    )
    return JWTAuthentication.model_construct(mode=found.mode, providers=(provider,), mcp=mcp)


def _phases(processor: Any) -> dict[str, int]:
    """Phases by method, which are an enum in a map."""
    return {method: mcp_pb2.McpPhase.Value(f"MCP_PHASE_{phase.upper()}") for method, phase in processor.methods.items()}


def _route_types(policy: Any) -> dict[str, int] | None:
    """What requests are by the end of their path, which is an enum in a map."""
    if policy.routes is None:
        return None
    numbers = _constants(ai_pb2.AiRouteType.DESCRIPTOR)
    return {end: numbers[_snake(found)] for end, found in policy.routes.items()}


EXCEPTIONS: Final[dict[tuple[str, str], _Read]] = {
    ("RouteMatch", "path"): _path,
    ("RouteMatch", "method"): _http_method,
    ("RouteMatch", "query"): optional("query_params"),
    ("RouteMatch", "headers"): _headers,
    ("PathMatch", "exact"): _value_of("Exact"),
    ("PathMatch", "prefix"): _prefix,
    ("PathMatch", "regex"): _value_of("RegularExpression"),
    ("PathMatch", "grpc"): lambda path: path if isinstance(path, GRPCMethodMatch) else None,
    ("GrpcMethodMatch", "regex"): lambda method: method.type == "RegularExpression",
    ("ValueMatch", "name"): _match_name,
    ("ValueMatch", "exact"): _value_of("Exact"),
    ("ValueMatch", "regex"): _value_of("RegularExpression"),
    ("RequestRedirect", "status"): lambda redirect: redirect.status_code,
    ("RequestMirror", "backend"): _nothing,
    ("RequestMirror", "numerator"): _share("numerator"),
    ("RequestMirror", "denominator"): _share("denominator"),
    ("Timeouts", "request_ms"): _milliseconds("request", zero_is_off=True),
    ("Timeouts", "backend_request_ms"): _milliseconds("backend_request", zero_is_off=True),
    ("Retry", "attempts"): _count("attempts"),
    ("Retry", "backoff_ms"): _milliseconds("backoff"),
    ("Retry", "precondition"): optional("precondition"),  # a GatewayPolicy's retry has the two,
    ("Retry", "condition"): optional("condition"),  # an HTTPRoute's has not
    ("FaultDelay", "duration_ms"): _milliseconds("duration"),
    ("Compression", "min_size"): _bytes("min_size"),
    ("SessionPersistence", "absolute_timeout_ms"): _milliseconds("absolute_timeout"),
    ("SessionCookie", "permanent"): lambda cookie: cookie.lifetime_type == "Permanent",
    ("BufferedBody", "max_bytes"): _bytes("max_bytes"),
    ("FrontendHttp", "owned_headers"): _owned_headers,
    ("FrontendHttp", "max_buffer_size"): _but(2_097_152, _bytes("max_buffer_size")),
    ("FrontendHttp", "http1_max_headers"): _but(100, attrgetter("http1_max_headers")),
    ("FrontendHttp", "http1_idle_timeout_ms"): _but(600_000, _milliseconds("http1_idle_timeout")),
    ("FrontendHttp", "http2_window_size"): _bytes("http2_window_size"),
    ("FrontendHttp", "http2_connection_window_size"): _bytes("http2_connection_window_size"),
    ("FrontendHttp", "http2_frame_size"): _but(16_384, _bytes("http2_frame_size")),
    ("FrontendHttp", "http2_max_header_size"): _but(16_384, _bytes("http2_max_header_size")),
    ("FrontendHttp", "http2_keepalive_interval_ms"): _milliseconds("http2_keepalive_interval"),
    ("FrontendHttp", "http2_keepalive_timeout_ms"): _milliseconds("http2_keepalive_timeout"),
    ("FrontendHttp", "max_connection_duration_ms"): _milliseconds("max_connection_duration"),
    ("Limits", "max_held_bytes"): _bytes("max_held_bytes"),
    ("Limits", "max_request_bytes"): _bytes("max_request_bytes"),
    ("Otlp", "interval_ms"): _milliseconds("interval"),
    ("Metrics", "labels"): lambda metrics: None if metrics.attributes is None else metrics.attributes.add,
    ("Limits", "stream_idle_timeout_ms"): _milliseconds("stream_idle_timeout"),
    ("FrontendTls", "handshake_timeout_ms"): _milliseconds("handshake_timeout"),
    ("FrontendTls", "min_protocol_version"): attrgetter("oldest"),
    ("FrontendTls", "max_protocol_version"): attrgetter("newest"),
    ("Keepalive", "time_ms"): _milliseconds("time"),
    ("Keepalive", "interval_ms"): _milliseconds("interval"),
    ("ExtAuth", "backend"): _nothing,
    # Of a route's own filter alone, which `to_wire` lowers.
    ("ExtAuthHttp", "all_response_headers"): _nothing,
    ("ExtAuthGrpc", "allowed_headers"): _nothing,
    ("ExtProc", "backend"): _nothing,
    ("GlobalRateLimit", "backend"): _nothing,
    ("RateLimit", "remote"): attrgetter("global_"),
    ("Otlp", "backend"): _nothing,
    ("Tracing", "backend"): _nothing,
    # A default of the model, which says nothing beside a list of items.
    ("ExtAuth", "failure_mode"): lambda auth: None if getattr(auth, CONDITIONAL, None) else auth.failure_mode,
    ("ExtAuthBody", "max_size"): _bytes("max_size"),
    ("ExtAuthCache", "max_entries"): _count("max_entries"),
    ("BackendAi", "first_event_timeout_ms"): _milliseconds("first_event_timeout"),
    ("RemoteJwks", "backend"): _nothing,
    ("RemoteJwks", "cache_duration_ms"): _milliseconds("cache_duration"),
    ("BackendTcp", "connect_timeout_ms"): _milliseconds("connect_timeout"),
    ("BackendTcp", "proxy_protocol"): optional("proxy_protocol"),
    ("BackendLimits", "idle_timeout_ms"): _milliseconds("idle_timeout"),
    ("BackendLimits", "max_connection_duration_ms"): _milliseconds("max_connection_duration"),
    ("BackendTunnel", "backend"): _nothing,
    ("BackendTunnel", "absolute_form"): lambda tunnel: tunnel.plaintext == "AbsoluteForm" or None,
    ("BackendTls", "certificate"): _nothing,
    ("BackendTls", "authorities"): _nothing,
    ("BackendTls", "authorities_secret"): _nothing,
    ("DiscoveredJwks", "backend"): _nothing,
    ("DiscoveredJwks", "cache_duration_ms"): _milliseconds("cache_duration"),
    ("JwtProvider", "secret"): _nothing,
    ("JwtMcp", "resource_metadata"): _json("resource_metadata"),
    ("BasicAuthentication", "secret"): _nothing,
    ("ApiKeyAuthentication", "secrets"): _nothing,
    ("BackendAuth", "secret"): _nothing,
    ("AwsAuth", "secret"): _nothing,
    ("AzureAuth", "secret"): _nothing,
    ("GcpAuth", "secret"): _nothing,
    ("CredentialLocation", "expression"): optional("expression"),  # where one is found, not where one is written
    ("BackendHttp", "request_timeout_ms"): _milliseconds("request_timeout"),
    ("Eviction", "duration_ms"): _milliseconds("duration"),
    ("BackendAi", "routes"): _route_types,
    ("AiPromptGuard", "hold_back"): _bytes("hold_back"),
    ("Guard", "openai_moderation"): optional("openai_moderation"),  # of requests alone
    ("GuardHeaderMatch", "exact"): _value_of("Exact"),
    ("GuardHeaderMatch", "regex"): _value_of("RegularExpression"),
    ("GuardHeaderMatch", "name"): _match_name,
    **{
        (guard, "backend"): _nothing for guard in ("WebhookGuard", "ModerationGuard", "BedrockGuard", "ModelArmorGuard")
    },
    ("AiField", "value"): _json("value"),
    ("BackendMcp", "authentication"): _mcp_authentication,
    ("BackendMcp", "keep_alive_ms"): _milliseconds("keep_alive"),
    ("McpProcessor", "backend"): _nothing,
    ("McpProcessor", "failure_mode"): attrgetter("remote.failure_mode"),
    ("McpProcessor", "metadata"): attrgetter("remote.metadata"),
    ("McpProcessor", "allowed_request_headers"): attrgetter("remote.allowed_request_headers"),
    ("McpProcessor", "disallowed_request_headers"): attrgetter("remote.disallowed_request_headers"),
    ("McpProcessor", "methods"): _phases,
}
