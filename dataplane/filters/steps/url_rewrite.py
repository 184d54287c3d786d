"""URL rewrite: change host and path of the request on its way up (Gateway API HTTPURLRewriteFilter).

The query stays. A replaced prefix is the one that the rule matched; slashes are joined as HTTPPathModifier's table
says: one between replacement and rest, and an empty outcome is "/".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.chain.filter import Env, Filter, Refused
from dataplane.chain.pseudo_headers import set_authority
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.uri import canonical_host, canonical_path
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "url_rewrite"

Rewrite = Callable[["Exchange"], "Reply | None"]
"""A request hook that never waits."""

PREFIX_MISSING = made("PolicyUnusable", "url_rewrite: the rule matched no prefix")
"""Gateway API allows a prefix to be replaced in rules that match by prefix only."""


def build(config: traffic_pb2.UrlRewrite, env: Env) -> Filter | None:
    """Raises `Refused` for a hostname or path that no request can have."""
    hooks = [hook for hook in (_hostname(config.hostname), _path(config.path)) if hook is not None]
    if not hooks:
        return None
    return Filter(NAME, request=hooks[0] if len(hooks) == 1 else _both(*hooks))


def _both(first: Rewrite, second: Rewrite) -> Rewrite:
    def rewrite(exchange: Exchange) -> Reply | None:
        first(exchange)
        return second(exchange)

    return rewrite


def _hostname(hostname: str) -> Rewrite | None:
    if not hostname:
        return None
    authority = hostname.encode()
    host = canonical_host(authority)
    if host is None:
        raise Refused(f"hostname {hostname!r} is not a host")

    def rewrite_host(exchange: Exchange) -> None:
        set_authority(exchange, authority, host)

    return rewrite_host


def _path(config: traffic_pb2.PathModifier) -> Rewrite | None:
    kind = config.WhichOneof("kind")
    if kind == "replace_full_path":
        return _full_path(_checked(config.replace_full_path) or b"/")
    if kind == "replace_prefix_match":
        return _prefix(_checked(config.replace_prefix_match))
    return None


def _checked(path: str) -> bytes:
    canonical = canonical_path(path.encode())
    if canonical is None or (path and not path.startswith("/")):
        raise Refused(f"path {path!r} must begin with / and hold only what a path may")
    return canonical


def _full_path(path: bytes) -> Rewrite:
    def replace_path(exchange: Exchange) -> None:
        query = exchange.target.find(b"?")
        exchange.target = path if query == -1 else path + exchange.target[query:]
        exchange.path = path

    return replace_path


def _prefix(replacement: bytes) -> Rewrite:
    alone, before = replacement or b"/", replacement.rstrip(b"/")

    def replace_prefix(exchange: Exchange) -> Reply | None:
        prefix = exchange.prefix
        if not prefix:
            return PREFIX_MISSING
        rest = exchange.path if prefix == b"/" else exchange.path[len(prefix) :]
        path = before + rest if rest else alone
        query = exchange.target.find(b"?")
        exchange.target = path if query == -1 else path + exchange.target[query:]
        exchange.path = path
        return None

    return replace_prefix
