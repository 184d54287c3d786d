"""`frontend.connect`: what becomes of CONNECT requests. Its value is a `http/connect_rules.ConnectRule`;
carried out by `proxy/request/connects`."""

from __future__ import annotations

from typing import Final

from dataplane.chain.filter import Env, Refused
from dataplane.http.connect_rules import DENY, ROUTE, TUNNEL, ConnectRule
from gatewright.wire.v1 import connection_pb2

_MODES: Final = {
    connection_pb2.CONNECT_MODE_DENY: DENY,
    connection_pb2.CONNECT_MODE_ROUTE: ROUTE,
    connection_pb2.CONNECT_MODE_TUNNEL: TUNNEL,
}


def build(config: connection_pb2.FrontendConnect, env: Env) -> ConnectRule:
    """Raises `Refused` for what is of a newer language."""
    mode = _MODES.get(config.mode)
    if mode is None:
        raise Refused(f"mode: {config.mode} is unknown to this proxy")
    return ConnectRule(mode)
