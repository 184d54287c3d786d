"""The real `chain.calls.Calls`: the gateway's own requests over the endpoints and pools that clients' requests use.

A worker has one and hands it to the builders of policies. A call costs one object and a Future; its deadlines are
looks of the coarse sweep, its answer is framed by the carrier whose consumer it is. It follows no redirects, keeps no
answers, and knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.chain.calls import FOR_EVER, MAX_ANSWER, CallAnswer, CallFailed, CallRequest
from dataplane.upstream.calls import levels
from dataplane.upstream.calls.call import Call
from dataplane.upstream.outgoing import in_trace

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.upstream.lease import BackendPlan, Leases
    from dataplane.variables import Services


class HttpCalls:
    """`table()`: the one that serves now; a call has no exchange to pin one. `wake_at(moment, sleeper)`: of
    `proxy/deadlines`. `make_future()`: the loop's. `clock`: monotonic seconds. `services`, `called`: as `Sends` has
    them."""

    __slots__ = ("called", "clock", "leases", "make_future", "services", "table", "wake_at")

    def __init__(
        self,
        table: Callable[[], levels.Table],
        leases: Leases,
        wake_at: Callable[[float, Any], None],
        make_future: Callable[[], Any],
        clock: Callable[[], float],
        services: Services | None = None,
        called: Callable[[str, str, float], None] = lambda backend, outcome, seconds: None,
    ) -> None:
        self.table = table
        self.leases = leases
        self.wake_at = wake_at
        self.make_future = make_future
        self.clock = clock
        self.services = services
        self.called = called

    def plan(self, backend: str, x: Exchange | None = None) -> BackendPlan:
        """As `chain.calls.Calls.plan`."""
        table = self.table()
        plan: BackendPlan | None = levels.plan_of(table.backends, backend, levels.inherited(table, x))
        if plan is None:
            raise CallFailed("unresolved", f"{backend} is not known")
        return plan

    def open(
        self,
        plan: BackendPlan,
        request: CallRequest,
        *,
        x: Exchange | None,
        head_within: float,
        whole_within: float = FOR_EVER,
        idempotent: bool = False,
        sends_more: bool = False,
    ) -> Call:
        """As `chain.calls.Calls.open`."""
        trace = None if x is None else x.trace
        if trace is None:
            call = Call(self, plan, request, idempotent, sends_more)
        else:
            traced = trace.call_begins(plan.key, request.method, self.clock())
            headers = in_trace(b"\r\n" + request.headers, traced.context.header_lines())[2:]
            body = request.body if request.traced_body is None else request.traced_body(request.body, traced.context)
            call = Call(self, plan, replace(request, headers=headers, body=body), idempotent, sends_more)
            if request.about is not None:
                traced.describe(*request.about)
            call.traced = traced
        call.begin(head_within, whole_within, x)
        return call

    async def http(
        self,
        backend: str,
        request: CallRequest,
        seconds: float,
        max_body: int = MAX_ANSWER,
        x: Exchange | None = None,
    ) -> CallAnswer:
        """As `chain.calls.Calls.http`."""
        plan = self.plan(backend, x)
        return await self.open(plan, request, x=x, head_within=seconds, whole_within=seconds).whole(max_body)
