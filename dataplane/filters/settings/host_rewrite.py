"""Host rewrite (hostRewrite): whether the Host header becomes the destination's; carried in the plan of a route
for the attempts (`proxy/attempt/outgoing`), because the destination is known only then."""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from gatewright.wire.v1 import traffic_pb2

_MODES = {traffic_pb2.HOST_REWRITE_MODE_AUTO: True, traffic_pb2.HOST_REWRITE_MODE_NONE: False}


def build(config: traffic_pb2.HostRewrite, env: Env) -> bool:
    """True for `Auto`, False for `None`. Raises `Refused` for a mode that this proxy does not know."""
    mode = _MODES.get(config.mode)
    if mode is None:
        raise Refused("mode must be Auto or None")
    return mode
