"""Request mirror (HTTPRequestMirrorFilter): a setting of the route, carried in its plan. A rule may have several."""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.table.plans import Mirror
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.RequestMirror, env: Env) -> Mirror:
    """Without a fraction, all requests. Raises `Refused` for a fraction over 1 and for a mirror to nowhere."""
    if not config.backend:
        raise Refused("a mirror needs a backend")
    if not config.denominator:
        return Mirror(config.backend)
    if config.numerator > config.denominator:
        raise Refused(f"{config.numerator} of {config.denominator} is more than all requests")
    return Mirror(config.backend, config.numerator, config.denominator)
