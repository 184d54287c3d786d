"""Health of the endpoints of a backend (Health): what is unhealthy, and who is evicted for it.

Of a route it is a value of its plan, of a backend one of the backend's (`table/endpoints`); leases act on it.
"""

from __future__ import annotations

from typing import Final

from dataplane.chain import expressions
from dataplane.chain.filter import Env, Refused
from dataplane.upstream.health import Eviction, Health
from gatewright.wire.v1 import backend_policy_pb2

_PERCENT: Final = 100


def build(config: backend_policy_pb2.Health, env: Env) -> Health:
    """Raises `Refused` for a condition that does not compile or reads the body, which is not there when it is asked,
    and for percentages above 100."""
    condition = None
    if config.unhealthy_condition:
        program = expressions.compiled(config.unhealthy_condition, "response", "unhealthyCondition")
        if expressions.reads_response_body([program]):
            raise Refused("unhealthyCondition is asked when the head of a response comes: it cannot read its body")
        condition = expressions.condition(program)
    return Health(condition, _eviction(config.eviction) if config.HasField("eviction") else None)


def _eviction(config: backend_policy_pb2.Eviction) -> Eviction:
    for field in ("restore_health", "health_threshold"):
        if getattr(config, field) > _PERCENT:
            raise Refused(f"eviction.{field}: more than {_PERCENT} percent")
    return Eviction(
        config.duration_ms / 1000 or Eviction().duration,
        config.restore_health if config.HasField("restore_health") else None,
        config.consecutive_failures if config.HasField("consecutive_failures") else None,
        config.health_threshold if config.HasField("health_threshold") else None,
    )
