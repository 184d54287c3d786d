"""Retry (HTTPRouteRetry, `retry`): a setting of the route, carried in its plan for the attempts."""

from __future__ import annotations

from dataplane.chain import expressions
from dataplane.chain.filter import Env, Refused
from dataplane.table.plans import Retry
from gatewright.wire.v1 import traffic_pb2


def build(config: traffic_pb2.Retry, env: Env) -> Retry:
    """Raises `Refused` for a code that is no error status (HTTPRouteRetryStatusCode), and for an expression that does
    not compile."""
    for code in config.codes:
        if not 400 <= code <= 599:
            raise Refused(f"code {code} is not between 400 and 599")
    precondition = expressions.compiled(config.precondition, "request", "precondition") if config.precondition else None
    condition = expressions.compiled(config.condition, "response", "condition") if config.condition else None
    default = Retry()
    return Retry(
        frozenset(config.codes),
        config.attempts if config.HasField("attempts") else default.attempts,
        config.backoff_ms / 1000 if config.HasField("backoff_ms") else default.backoff,
        None if precondition is None else expressions.condition(precondition),
        None if condition is None else expressions.condition(condition),
        reads_body=precondition is not None and bool(expressions.reads_request_body([precondition])),
        judges_body=condition is not None and expressions.reads_response_body([condition]),
    )
