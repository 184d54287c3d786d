"""Timeouts of a route (`timeouts` of HTTPRoutes and GatewayPolicies): a setting, carried out by `proxy/attempt`."""

from __future__ import annotations

from dataplane.chain.filter import Env
from dataplane.table.plans import Timeouts
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.Timeouts, env: Env) -> Timeouts:
    """Absent and zero mean no limit (Gateway API HTTPRouteTimeouts)."""
    return Timeouts(config.request_ms / 1000 or None, config.backend_request_ms / 1000 or None)
