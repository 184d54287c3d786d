"""Retry (HTTPRouteRetry): a setting of the route, carried in its plan for the attempts."""

from __future__ import annotations

from dataplane.chain.filter import Env, Refused
from dataplane.table.plans import Retry
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.Retry, env: Env) -> Retry:
    """Raises `Refused` for a code that is no error status (HTTPRouteRetryStatusCode)."""
    for code in config.codes:
        if not 400 <= code <= 599:
            raise Refused(f"code {code} is not between 400 and 599")
    default = Retry()
    return Retry(
        frozenset(config.codes),
        config.attempts if config.HasField("attempts") else default.attempts,
        config.backoff_ms / 1000 if config.HasField("backoff_ms") else default.backoff,
    )
