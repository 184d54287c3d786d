"""TCP toward a backend (BackendTCP): how long a connection may take, probes of idle ones, and the PROXY header
that names the client (an extension).

A value of `upstream/settings`; the connector acts on it.
"""

from __future__ import annotations

from typing import Final

from dataplane.chain.filter import Env, Refused
from dataplane.net.keepalive import DEFAULT, Keepalive, seconds
from dataplane.upstream.settings import Tcp
from gatewright.wire.v1 import backend_policy_pb2, connection_pb2


def build(config: backend_policy_pb2.BackendTcp, env: Env) -> Tcp:
    """Raises `Refused` for a version of the PROXY protocol that this proxy does not write."""
    if config.proxy_protocol not in _VERSIONS:
        raise Refused(f"proxyProtocol: {config.proxy_protocol} is no version that this proxy writes")
    made = Tcp(keepalive=_keepalive(config.keepalive), proxy_version=_VERSIONS[config.proxy_protocol])
    return made._replace(connect_timeout=config.connect_timeout_ms / 1000) if config.connect_timeout_ms else made


_VERSIONS: Final = {
    connection_pb2.PROXY_PROTOCOL_VERSION_UNSPECIFIED: 0,
    connection_pb2.PROXY_PROTOCOL_VERSION_V1: 1,
    connection_pb2.PROXY_PROTOCOL_VERSION_V2: 2,
}


def _keepalive(config: connection_pb2.Keepalive) -> Keepalive:
    return Keepalive(
        config.retries or DEFAULT.retries,
        seconds(config.time_ms) or DEFAULT.time,
        seconds(config.interval_ms) or DEFAULT.interval,
    )
