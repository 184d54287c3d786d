"""Limits of what a backend is asked at a time (`backend.limits`, an extension).

Of a route it is a value of its plan, of a backend one of the backend's (`table/endpoints`); leases act on it.
"""

from __future__ import annotations

from typing import Final

from dataplane.chain.filter import Env, Refused
from dataplane.upstream.limits import Limits
from gatewright.wire.v1 import backend_policy_pb2


def build(config: backend_policy_pb2.BackendLimits, env: Env) -> Limits:
    """Raises `Refused` for a limit that lets nothing pass, and for a budget above 100."""
    for field, written in _AT_LEAST_ONE.items():
        if config.HasField(field) and not getattr(config, field):
            raise Refused(f"{written} must be at least 1")
    if config.retry_budget > 100:
        raise Refused("retryBudget is more than 100 percent")
    return Limits(
        requests=config.max_requests or None,
        retry_budget=config.retry_budget if config.HasField("retry_budget") else None,
        connections=config.max_connections or None,
        pending=config.max_pending or None,
        idle=config.idle_timeout_ms / 1000 or None,
        age=config.max_connection_duration_ms / 1000 or None,
    )


_AT_LEAST_ONE: Final = {
    "max_connections": "maxConnections",
    "max_pending": "maxPending",
    "max_requests": "maxRequests",
    "idle_timeout_ms": "idleTimeout",
    "max_connection_duration_ms": "maxConnectionDuration",
}
"""Fields of the wire, as users write them."""
