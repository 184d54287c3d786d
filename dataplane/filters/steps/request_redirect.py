"""Request redirect: answer with a Location (Gateway API HTTPRequestRedirectFilter).

What is not configured comes from the request, the port from the configured scheme or else from the listener; a port is
left out where it is the scheme's own. The query stays; paths are replaced as in `url_rewrite`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.uri import SCHEME_PORTS, canonical_host, canonical_path
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "request_redirect"

STATUSES = frozenset((301, 302, 303, 307, 308))
DEFAULT_STATUS = 302

PREFIX_MISSING = made("PolicyUnusable", "request_redirect: the rule matched no prefix")
"""Gateway API allows a prefix to be replaced in rules that match by prefix only."""

NewPath = Callable[["Exchange"], "bytes | None"]


def build(config: traffic_pb2.RequestRedirect, env: Env) -> Filter:
    """Raises `Refused` for a part that no Location can have."""
    scheme, hostname, port = config.scheme.lower().encode(), config.hostname.encode(), config.port
    if scheme and scheme not in SCHEME_PORTS:
        raise Refused(f"scheme {config.scheme!r} must be http or https")
    if hostname and canonical_host(hostname) is None:
        raise Refused(f"hostname {config.hostname!r} is not a host")
    if port > 65535:
        raise Refused(f"port {port} is not between 1 and 65535")
    status = config.status or DEFAULT_STATUS
    if status not in STATUSES:
        raise Refused(f"status {status} must be one of {sorted(STATUSES)}")
    new_path = _path(config.path)

    def redirect(exchange: Exchange) -> Reply:
        path = new_path(exchange)
        if path is None:
            return PREFIX_MISSING
        used, listener = scheme or exchange.scheme, exchange.listener
        assert listener is not None  # steps are those of a listener's routes
        origin = _origin(used, hostname or exchange.host, port or (SCHEME_PORTS[scheme] if scheme else listener.port))
        if not origin and path.startswith(b"//"):  # that would name another host (RFC 3986 4.2)
            path = b"/" + path.lstrip(b"/")
        query = exchange.target.find(b"?")
        location = origin + path if query == -1 else origin + path + exchange.target[query:]
        return Reply(status, "Redirect", headers=b"location: %b\r\n" % location)

    return Filter(NAME, request=redirect)


def _origin(scheme: bytes, host: bytes, port: int) -> bytes:
    """`scheme://host:port`; b"" for a request without a host (HTTP/1.0), which is redirected within its origin."""
    if not host:
        return b""
    return b"%b://%b" % (scheme, host) if port == SCHEME_PORTS[scheme] else b"%b://%b:%d" % (scheme, host, port)


def _path(config: traffic_pb2.PathModifier) -> NewPath:
    """What gives the new path, or None where there is no prefix to replace."""
    kind = config.WhichOneof("kind")
    if kind == "replace_full_path":
        full = _checked(config.replace_full_path) or b"/"
        return lambda exchange: full
    if kind == "replace_prefix_match":
        replacement = _checked(config.replace_prefix_match)
        return lambda exchange: _replaced(exchange.path, exchange.prefix, replacement)
    return lambda exchange: exchange.path


def _checked(path: str) -> bytes:
    canonical = canonical_path(path.encode())
    if canonical is None or (path and not path.startswith("/")):
        raise Refused(f"path {path!r} must begin with / and hold only what a path may")
    return canonical


def _replaced(path: bytes, prefix: bytes, replacement: bytes) -> bytes | None:
    if not prefix:
        return None
    rest = path if prefix == b"/" else path[len(prefix) :]
    return replacement.rstrip(b"/") + rest if rest else replacement or b"/"
