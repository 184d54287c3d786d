"""Calls of A2A agents are counted, with few values of each label, whatever clients and agents say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.a2a import methods
from dataplane.telemetry.metric_rows.a2a import REQUESTS

if TYPE_CHECKING:
    from dataplane.a2a import Call
    from dataplane.exchange import Exchange
    from dataplane.telemetry.observer import Counts, Observer

ANSWERED, ERROR, DENIED, FAILED = "answered", "error", "denied", "failed"
_DENIALS: Final = frozenset(("AuthorizationDenied", "AgentCallUnreadable"))
_BAD: Final = 400


def observer(counts: Counts) -> Observer:
    """As `observer.Makes`."""

    def observe(x: Exchange, seconds: float) -> None:
        if x.agent_call is not None:
            counts.count_for(x, *counted(x.agent_call, x))

    return observe


def counted(call: Call, x: Exchange) -> tuple[str, str, str, str]:
    """The metric, and its labels: method, last state of the task, and outcome. States are those of a table already."""
    method = call.method or ""
    return REQUESTS, method if not method or method in methods.KNOWN else "other", call.state or "", _outcome(call, x)


def _outcome(call: Call, x: Exchange) -> str:
    if x.reason:
        return DENIED if x.reason in _DENIALS else FAILED
    if x.grpc is not None and x.grpc.status is None:
        return FAILED  # it did not end as gRPC's answers do
    is_error = call.error is not None or x.status >= _BAD or (x.grpc is not None and x.grpc.status != 0)
    return ERROR if is_error else ANSWERED
