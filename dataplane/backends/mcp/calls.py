"""Calls to the server of a target: endpoints and connections of its Backend, as the policies of route and backend want
it spoken to; one endpoint alone where a session is pinned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import FOR_EVER, CallRequest
from dataplane.upstream import parts

if TYPE_CHECKING:
    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.mcp.plans import TargetPlan
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import Call

HELLO_SECONDS: Final = 15.0
"""For a server's answer to `initialize`, and for a stream of the older transport to begin."""


def call(
    x: McpExchange, plan: BackendPlan, request: CallRequest, seconds: float = FOR_EVER, is_idempotent: bool = False
) -> Call:
    """Begin a call. `seconds`: until the head of the answer. `is_idempotent`: it may come twice, and does where its
    server had closed the connection that was kept."""
    return x.context.calls.open(
        plan,
        request,
        x=x,  # type: ignore[arg-type]  # it is one
        head_within=seconds,
        idempotent=is_idempotent,
    )


def plan_of(x: McpExchange, target: TargetPlan, pinned: str = "") -> BackendPlan:
    """The backend of a target. `pinned`: label of the endpoint to use, if it is still there. Raises `CallFailed`."""
    found: BackendPlan = parts.plan_of(x.table, target, x.policies, x.context.calls.leases, pinned)
    return found


def request_timeout(x: McpExchange, target: TargetPlan, plan: BackendPlan) -> float | None:
    """How long a server may take to begin an answer, instead of what is usual: `http.requestTimeout`. None: nobody says
    so. `plan`: as `plan_of`."""
    if not target.is_stdio:
        return plan.request_timeout  # as `chain.calls.within` has it
    http = target.own.over(x.policies.backend).http  # no setting of a connection is in its plan
    return None if http is None else http.request_timeout


def authority(x: McpExchange, plan: BackendPlan) -> bytes:
    """The Host header for a server: its own name, unless hostRewrite or a step want another (b"": its own)."""
    return x.authority if x.policies.host_rewrite is False or x.host_set else b""
