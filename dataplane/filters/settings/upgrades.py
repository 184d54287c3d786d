"""Upgrades (`traffic.upgrades`, a Gatewright extension): which protocols a client may switch to; carried in the plan of
a route for `proxy/request/entry`, which asks when a request wants one."""

from __future__ import annotations

from dataplane.chain.filter import Env
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.Upgrades, env: Env) -> frozenset[bytes]:
    """The names in lower case (RFC 9110 7.8: a WebSocket client may write `WebSocket`)."""
    return frozenset(name.lower().encode() for name in config.protocols)
