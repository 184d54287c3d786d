"""A forward proxy between us and a backend (`backend.tunnel`): a value of `upstream/settings`.

Whether the proxy is there is asked when a connection is opened: backends come and go by themselves.
"""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.upstream.settings import Tunnel
from gatewright.wire.v1 import backend_policy_pb2


def build(config: backend_policy_pb2.BackendTunnel, env: Env) -> Tunnel:
    """Raises `Refused` for a tunnel through nothing."""
    if not config.backend:
        raise Refused("a tunnel needs a proxy")
    return Tunnel(config.backend, is_absolute=config.absolute_form)
