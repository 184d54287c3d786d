"""`frontend.tracing`: which requests of a Gateway are traced, and what their spans say.

Its value is a `tracing/plan.TracingPlan`, which the table gives to the listeners of its Gateway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.chain.filter import Env
    from dataplane.tracing.plan import TracingPlan
    from gatewright.wire.v1 import frontend_pb2


def build(config: frontend_pb2.Tracing, env: Env) -> TracingPlan:
    """Raises `Refused` for an expression or a name that cannot be."""
    from dataplane.tracing import building  # most workers trace nothing

    return building.plan_of(config)
