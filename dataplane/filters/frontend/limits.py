"""`frontend.limits`: how much a proxy takes on at a time. Carried out by `server/admission` (connections),
`proxy/request/admission` (requests, their bodies and their pace), `link/pools.BodyMemory` (memory of held bodies) and
`filters/steps/basic_authentication` (checks of passwords)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.table.limits import LimitsPlan

if TYPE_CHECKING:
    from dataplane.chain.filter import Env
    from gatewright.wire.v1 import frontend_pb2


def build(config: frontend_pb2.Limits, env: Env) -> LimitsPlan:
    """Zero is nothing that the API lets through: it counts as absent, so that no proxy is closed by it."""
    return LimitsPlan(
        config.max_connections or None,
        config.max_connections_per_address or None,
        config.max_requests or None,
        config.max_held_bytes or None,
        config.max_request_bytes or None,
        config.stream_idle_timeout_ms / 1000 or None,
        config.max_password_checks or None,
        config.max_password_checks_per_address or None,
    )
