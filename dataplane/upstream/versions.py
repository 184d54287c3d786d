"""Which version of HTTP a request is sent with: the rule of the specification as a table (BackendHTTP). Pure.

What is configured is known when a plan is built (`table/compile`); the rest depends on the request.
"""

from __future__ import annotations

from typing import Final, Protocol

from dataplane.http.grpc import GRPC, kind

BY_REQUEST, HTTP1, HTTP2 = 0, 1, 2
"""Of a backend's plan: not configured; or this one."""

HTTP_2: Final = b"HTTP/2"
"""The version of a request, as expressions read it."""

EITHER: Final = 3
"""Of a request to a server that is asked by ALPN which one it speaks."""

NAMES: Final = {"h2": HTTP2, "http/1.1": HTTP1}
"""Names of ALPN (RFC 7301, RFC 9113 3.2)."""

APP_PROTOCOLS: Final = {
    "kubernetes.io/h2c": HTTP2,
    "grpc": HTTP2,
    "http": HTTP1,
    "kubernetes.io/ws": HTTP1,
    "kubernetes.io/wss": HTTP1,
}
"""What `appProtocol` of a Service port says (GEP-1911, IANA's service names, and `grpc`, which many write); others say
nothing."""

TLS_PROTOCOLS: Final = frozenset({"https", "kubernetes.io/wss"})
"""Those of ports that speak TLS."""


class Asked(Protocol):
    """What the rule reads of a request."""

    upgrade: bytes
    """The protocol that it wants to switch to, or b""."""
    version: bytes
    scheme: bytes
    """Of the client."""
    length: int
    """Bytes of content; 0: none, -1: unknown."""

    @property
    def is_grpc(self) -> bool:
        """Its content type is gRPC's; asked only where there is content."""


RULE: Final = (
    # HTTP/2 client, https client, gRPC -> version
    ((False, False, False), HTTP1),  # plaintext keeps the client's version
    ((False, False, True), HTTP2),  # gRPC needs HTTP/2
    ((False, True, False), HTTP1),
    ((False, True, True), HTTP2),
    ((True, False, False), HTTP2),  # plaintext keeps the client's version
    ((True, False, True), HTTP2),
    ((True, True, False), HTTP1),  # from HTTPS nothing follows for a plaintext backend
    ((True, True, True), HTTP2),
)
_RULE: Final = dict(RULE)


def configured(policy: int, app_protocol: str) -> int:
    """What holds for all requests: what a policy says, then what the Service port says."""
    return policy or APP_PROTOCOLS.get(app_protocol.lower(), BY_REQUEST)


def speaks_tls(app_protocol: str) -> bool:
    """Whether the Service port says that its endpoints speak TLS."""
    return app_protocol.lower() in TLS_PROTOCOLS


def chosen(asked: Asked) -> int:
    """The version for one request where nothing is configured."""
    return _RULE[asked.version == HTTP_2, asked.scheme == b"https", asked.length != 0 and asked.is_grpc]


def in_one(asked: Asked) -> int:
    """The version for one request to a forward proxy that takes requests of HTTP/1.1 in absolute form, where the client
    speaks HTTP/2: only gRPC needs that of the server as well."""
    return HTTP2 if asked.length and asked.is_grpc else HTTP1


def offered(asked: Asked, allowed: tuple[int, ...]) -> int:
    """The version for one request over TLS, where nothing is configured: what the rule says, cut to `allowed`, what
    `alpnProtocols` names (one or both). EITHER: the rule says HTTP/2 only because the client speaks it, and the server
    may choose (HTTP/2 by prior knowledge is for plain text)."""
    if len(allowed) == 1:
        return allowed[0]
    if asked.upgrade:
        return HTTP1  # RFC 8441 is an extension that few servers have
    version = chosen(asked)
    if version == HTTP1 or (asked.length and asked.is_grpc):
        return version
    return EITHER


def is_grpc(low: bytes) -> bool:
    """Whether the content type of a block (its lower-case twin) is gRPC's: `application/grpc`, alone or with a
    message's format behind "+" or parameters. gRPC-Web is not."""
    if b"application/grpc" not in low:  # nearly always
        return False
    at = low.find(b"\r\ncontent-type:")
    if at < 0:
        return False
    value = low[at + 15 : low.find(b"\r\n", at + 15)].strip(b" \t")
    return kind(value) == GRPC
