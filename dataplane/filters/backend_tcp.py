"""TCP toward a backend (spec 2, BackendTCP): how long a connection may take, and probes of idle ones.

A value of `upstream/settings`; the connector acts on it.
"""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.net.keepalive import DEFAULT, Keepalive, seconds
from dataplane.upstream.settings import Tcp
from gatewright.wire.v1 import backend_policy_pb2, connection_pb2


def build(config: backend_policy_pb2.BackendTcp, env: Env) -> Tcp:
    """Raises `Refused` for a PROXY header, which this proxy does not send."""
    if config.proxy_protocol:
        raise Refused("proxyProtocol is not supported yet")
    made = Tcp(keepalive=_keepalive(config.keepalive))
    return made._replace(connect_timeout=config.connect_timeout_ms / 1000) if config.connect_timeout_ms else made


def _keepalive(config: connection_pb2.Keepalive) -> Keepalive:
    return Keepalive(
        config.retries or DEFAULT.retries,
        seconds(config.time_ms) or DEFAULT.time,
        seconds(config.interval_ms) or DEFAULT.interval,
    )
