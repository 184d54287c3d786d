"""Limits of what a backend is asked at a time (`backend.limits`, an extension).

Of a route it is a value of its plan, of a backend one of the backend's (`table/endpoints`); leases act on it.
"""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.upstream.limits import Limits
from gatewright.wire.v1 import backend_policy_pb2


def build(config: backend_policy_pb2.BackendLimits, env: Env) -> Limits:
    """Raises `Refused` for a limit of no request, and for a budget above 100."""
    if config.HasField("max_requests") and not config.max_requests:
        raise Refused("maxRequests must be at least 1")
    if config.retry_budget > 100:
        raise Refused("retryBudget is more than 100 percent")
    return Limits(
        config.max_requests if config.HasField("max_requests") else None,
        config.retry_budget if config.HasField("retry_budget") else None,
    )
