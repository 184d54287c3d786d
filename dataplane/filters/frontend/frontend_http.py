"""`frontend.http`: how listeners speak HTTP. Its value is an `http/rules.HttpRules`, for a listener's plan."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from dataplane.chain.filter import Refused
from dataplane.http.connection_rules import (
    FRAME_SIZES,
    MAX_HEADER_SIZE,
    MAX_WINDOW,
    MIN_PING_INTERVAL,
    ConnectionRules,
)
from dataplane.http.rules import (
    DEFAULT,
    DROP,
    KEEP,
    KEEP_FROM_TRUSTED,
    KEEP_NAMES,
    MAX_HEADERS,
    OWNED,
    REJECT,
    REPLACE,
    Hops,
    HttpRules,
)
from dataplane.http.spellings import CHANGE, OPEN, PathRules
from dataplane.http.spellings import KEEP as KEEP_PATH
from dataplane.http.spellings import REJECT as REJECT_PATH
from gatewright.wire.v1 import frontend_pb2

if TYPE_CHECKING:
    from dataplane.chain.filter import Env

_REQUEST_IDS: Final = {
    frontend_pb2.REQUEST_ID_UNSPECIFIED: KEEP,
    frontend_pb2.REQUEST_ID_KEEP: KEEP,
    frontend_pb2.REQUEST_ID_REPLACE: REPLACE,
    frontend_pb2.REQUEST_ID_KEEP_FROM_TRUSTED: KEEP_FROM_TRUSTED,
}

_UNDERSCORES: Final = {
    frontend_pb2.HEADER_UNDERSCORES_UNSPECIFIED: DROP,
    frontend_pb2.HEADER_UNDERSCORES_DROP: DROP,
    frontend_pb2.HEADER_UNDERSCORES_REJECT: REJECT,
    frontend_pb2.HEADER_UNDERSCORES_KEEP: KEEP_NAMES,
}

_LOWERS_NAMES: Final = {
    frontend_pb2.HTTP1_HEADER_CASE_UNSPECIFIED: False,
    frontend_pb2.HTTP1_HEADER_CASE_LOWERCASE: True,
    frontend_pb2.HTTP1_HEADER_CASE_PRESERVE: False,
}

_PATH_ACTIONS: Final = {
    frontend_pb2.PATH_ACTION_UNSPECIFIED: OPEN,
    frontend_pb2.PATH_ACTION_KEEP: KEEP_PATH,
    frontend_pb2.PATH_ACTION_REJECT: REJECT_PATH,
    frontend_pb2.PATH_ACTION_DECODE: CHANGE,
    frontend_pb2.PATH_ACTION_REMOVE: CHANGE,
    frontend_pb2.PATH_ACTION_MERGE: CHANGE,
    frontend_pb2.PATH_ACTION_LOWER: CHANGE,
}


def build(config: frontend_pb2.FrontendHttp, env: Env) -> HttpRules:
    """Raises `Refused` for what is no network or of a newer language."""
    if config.request_id not in _REQUEST_IDS:
        raise Refused(f"requestId: {config.request_id} is unknown to this proxy")
    if config.header_underscores not in _UNDERSCORES:
        raise Refused(f"headerUnderscores: {config.header_underscores} is unknown to this proxy")
    owned = tuple(name.encode() for name in config.owned_headers.names) if config.HasField("owned_headers") else OWNED
    hops = _hops(config.trusted_hops) if config.HasField("trusted_hops") else None
    return HttpRules(
        hops,
        owned,
        _REQUEST_IDS[config.request_id],
        config.max_query_parameters or DEFAULT.max_query_parameters,
        _UNDERSCORES[config.header_underscores],
        _paths(config.path),
        config.max_json_keys or DEFAULT.max_json_keys,
        min(config.http1_max_headers, MAX_HEADERS) or None,
        config.max_buffer_size if config.HasField("max_buffer_size") else DEFAULT.max_buffer,
        _connection(config),
    )


def closed(why: str) -> HttpRules:
    """In place of a policy that cannot be applied: no request is served, and no hop in front is trusted."""
    return HttpRules(hops=Hops(), refused=why)


def _connection(config: frontend_pb2.FrontendHttp) -> ConnectionRules:
    """0 of the wire is None: unset."""
    if config.http1_header_case not in _LOWERS_NAMES:
        raise Refused(f"http1HeaderCase: {config.http1_header_case} is unknown to this proxy")
    interval = config.http2_keepalive_interval_ms / 1000
    return ConnectionRules(
        idle_timeout=config.http1_idle_timeout_ms / 1000 or None,
        max_duration=config.max_connection_duration_ms / 1000 or None,
        lowers_names=_LOWERS_NAMES[config.http1_header_case],
        stream_window=min(config.http2_window_size, MAX_WINDOW) or None,
        connection_window=min(config.http2_connection_window_size, MAX_WINDOW) or None,
        frame_size=_frame_size(config.http2_frame_size),
        max_header_size=min(config.http2_max_header_size, MAX_HEADER_SIZE) or None,
        ping_interval=max(interval, MIN_PING_INTERVAL) if interval else None,
        ping_timeout=config.http2_keepalive_timeout_ms / 1000 or None,
    )


def _frame_size(size: int) -> int | None:
    low, high = FRAME_SIZES
    if size and not low <= size <= high:
        raise Refused(f"http2FrameSize: {size} is not between {low} and {high}")
    return size or None


def _path_action(config: frontend_pb2.PathSpellings, name: str) -> str:
    action = _PATH_ACTIONS.get(getattr(config, name))
    if action is None:
        raise Refused(f"path.{name}: {getattr(config, name)} is unknown to this proxy")
    return action


def _paths(config: frontend_pb2.PathSpellings) -> PathRules:
    return PathRules(
        _path_action(config, "escaped_backslashes"),
        _path_action(config, "escaped_slashes"),
        _path_action(config, "parameters"),
        _path_action(config, "repeated_slashes"),
        _path_action(config, "case") == CHANGE,
    )


def _hops(config: frontend_pb2.TrustedHops) -> Hops:
    try:
        return Hops(config.count, tuple(ip_network(text) for text in config.cidrs))
    except ValueError as error:
        raise Refused(f"trustedHops.cidrs: {error}") from None
