"""How messages become the bytes that are sent. Deterministic, because versions are hashes of them."""

from __future__ import annotations

from typing import Any, Final

from gatewright.wire.v1 import frontend_pb2, policy_pb2, resource_pb2

REVISION: Final = 1
"""The wire revision of what uses nothing newer. A field that older proxies must not overlook raises it."""

POLICIES: Final = 2
"""The revision that brought Policy and Secret resources."""

BACKEND_POLICIES: Final = 3
"""The revision that brought policies of backends."""

REFUSED_BACKENDS: Final = 5
"""The revision that brought backends to which nothing may be sent."""

PARENTS: Final = 6
"""The revision in which routes name their parents, and listeners say what they admit."""

CONNECTIONS: Final = 7
"""The revision that brought TLS, and the policies of connections on both sides."""

AGENTS: Final = 8
"""The revision that brought backends of agents' traffic, and policies for them."""

_CONNECTION_POLICIES: Final = frozenset(
    (
        *("frontend_tls", "frontend_tcp", "network_authorization", "proxy_protocol", "connect"),
        *("backend_tcp", "backend_tls", "health", "backend_limits"),
    )
)


_AGENT_POLICIES: Final = frozenset(("backend_mcp",))

BACKEND_CONNECTIONS: Final = 9
"""The revision that brought limits of connections to backends, and what these learn of clients."""


_CONNECTION_LIMITS: Final = frozenset(
    ("max_connections", "max_pending", "idle_timeout_ms", "max_connection_duration_ms"),
)


def _is_of_backend_connections(policy: policy_pb2.Policy) -> bool:
    limits = {field.name for field, _ in policy.backend_limits.ListFields()}
    has_certificate = policy.HasField("backend_client_certificate")
    return bool(limits & _CONNECTION_LIMITS or policy.backend_tcp.proxy_protocol or has_certificate)


_FIRST_OF_CONNECTIONS: Final = frontend_pb2.FrontendHttp.MAX_BUFFER_SIZE_FIELD_NUMBER
"""Of FrontendHttp: fields from here on came with this revision."""


def _is_of_connections(policy: policy_pb2.Policy) -> bool:
    field = policy.WhichOneof("field")
    if field == "frontend_http":
        return any(each.number >= _FIRST_OF_CONNECTIONS for each, _ in policy.frontend_http.ListFields())
    return field in _CONNECTION_POLICIES


def _is_of_agents(policy: policy_pb2.Policy) -> bool:
    return policy.WhichOneof("field") in _AGENT_POLICIES


def resource(key: str, **kind: Any) -> bytes:  # Any: one message of Resource.kind, under its field name
    """The bytes of a Resource that carries the one message given."""
    ((name, content),) = kind.items()
    revision = POLICIES if name in ("policy", "secret") else REVISION
    if name == "backend" and content.policies:
        revision = BACKEND_POLICIES
    if name == "backend" and content.refused:
        revision = REFUSED_BACKENDS
    if name in ("route", "tcp_route", "udp_route", "listener"):
        revision = PARENTS
    if (name == "listener" and content.HasField("tls")) or (name == "policy" and _is_of_connections(content)):
        revision = CONNECTIONS
    if name == "backend" and any(map(_is_of_connections, content.policies)):
        revision = CONNECTIONS
    if (name == "policy" and _is_of_agents(content)) or (name == "backend" and content.HasField("mcp")):
        revision = AGENTS
    policies = [content] if name == "policy" else content.policies if name == "backend" else ()
    if any(map(_is_of_backend_connections, policies)):
        revision = BACKEND_CONNECTIONS
    message = resource_pb2.Resource(key=key, revision=revision, min_revision=revision, **kind)
    return message.SerializeToString(deterministic=True)
