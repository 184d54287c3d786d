"""`frontend.tcp`: keepalive of clients' connections. Its value is a `net/keepalive.Keepalive` of the plan."""

from __future__ import annotations

from dataplane.chain.filter import Env
from dataplane.net.keepalive import DEFAULT, Keepalive, seconds
from gatewright.wire.v1 import connection_pb2


def build(config: connection_pb2.FrontendTcp, env: Env) -> Keepalive:
    """0 of the wire is unset."""
    keepalive = config.keepalive
    return Keepalive(
        keepalive.retries or DEFAULT.retries,
        seconds(keepalive.time_ms) or DEFAULT.time,
        seconds(keepalive.interval_ms) or DEFAULT.interval,
    )
