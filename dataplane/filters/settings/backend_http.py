"""HTTP toward a backend (BackendHTTP): the version that it is spoken to with, and how long a try may take.

Of a route it is a value of its plan, of a backend one of the backend's (`table/endpoints`); leases and attempts act on
it.
"""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.upstream.settings import Http
from dataplane.upstream.versions import BY_REQUEST, HTTP1, HTTP2
from gatewright.wire.v1 import backend_policy_pb2

_VERSIONS = {
    backend_policy_pb2.HTTP_VERSION_UNSPECIFIED: BY_REQUEST,
    backend_policy_pb2.HTTP_VERSION_HTTP1: HTTP1,
    backend_policy_pb2.HTTP_VERSION_HTTP2: HTTP2,
}


def build(config: backend_policy_pb2.BackendHttp, env: Env) -> Http:
    """Raises `Refused` for a version that this proxy does not know."""
    version = _VERSIONS.get(config.version)
    if version is None:
        raise Refused("version must be HTTP1 or HTTP2")
    return Http(version, config.request_timeout_ms / 1000 if config.request_timeout_ms else None)
