"""Calls to the server of a target: endpoints and connections of its Backend, as the policies of route and backend want
it spoken to; one endpoint alone where a session is pinned.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import FOR_EVER, CallRequest
from dataplane.mcp import trace_context
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
    is_traced = x.trace is not None
    made = x.context.calls.open(
        plan,
        replace(request, traced_body=trace_context.written) if is_traced and request.body else request,
        x=x,  # type: ignore[arg-type]  # it is one
        head_within=seconds,
        idempotent=is_idempotent,
    )
    if is_traced and made.traced is not None:
        made.traced.describe(*_about(x))
    return made


def _about(x: McpExchange) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Name and attributes of the span of a call, by OpenTelemetry's conventions for MCP: what the message of the client
    is about."""
    known: Any = None if x.attributes is None else x.attributes.get("mcp")
    if not known or not known.get("methodName"):
        return "", ()
    method = known["methodName"]
    found = [("mcp.method.name", method)]
    name = method
    for kind, attribute in (
        ("tool", "gen_ai.tool.name"),
        ("prompt", "gen_ai.prompt.name"),
        ("resource", "mcp.resource.uri"),
    ):
        item = known.get(kind)
        if item:
            found.append((attribute, item["name"]))
            name = method if kind == "resource" else f"{method} {item['name']}"
    if "tool" in known:
        found.append(("gen_ai.operation.name", "execute_tool"))
    return name, tuple(found)


def plan_of(x: McpExchange, target: TargetPlan, pinned: str = "") -> BackendPlan:
    """The backend of a target. `pinned`: label of the endpoint to use, if it is still there. Raises `CallFailed`."""
    found: BackendPlan = parts.plan_of(x.table, target, x.policies, x.context.calls.leases, pinned)
    return found


def request_timeout(x: McpExchange, target: TargetPlan, plan: BackendPlan) -> float | None:
    """How long a server may take to begin an answer, instead of what is usual: `http.requestTimeout`. None: not
    configured. `plan`: as `plan_of`."""
    if not target.is_stdio:
        return plan.request_timeout  # as `chain.calls.within` has it
    http = target.own.over(x.policies.backend).http  # no setting of a connection is in its plan
    return None if http is None else http.request_timeout


def authority(x: McpExchange, plan: BackendPlan) -> bytes:
    """The Host header for a server: its own name, unless hostRewrite or a step want another (b"": its own)."""
    return x.authority if x.policies.host_rewrite is False or x.host_set else b""
