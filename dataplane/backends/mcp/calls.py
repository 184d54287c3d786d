"""Calls to the server of a target: endpoints and connections of its Backend, as the policies of route and backend want
it spoken to; one endpoint alone where a session is pinned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.calls import CallRequest
from dataplane.http.heads import lines_without
from dataplane.upstream import parts
from dataplane.upstream.asking import block_of
from dataplane.upstream.call_streams import BUFFER, StreamedCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.mcp.typing import McpExchange
    from dataplane.carriers import Upstream
    from dataplane.http.heads import Head
    from dataplane.mcp.plans import TargetPlan
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import HttpCalls

FOR_EVER: Final = float("inf")

_OWN: Final = frozenset(
    {
        *(b"host", b"accept", b"accept-encoding", b"mcp-session-id", b"last-event-id", b"expect", b"range"),
        *(b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"trailer", b"te"),
        *(b"connection", b"keep-alive", b"upgrade", b"proxy-connection", b"if-none-match", b"if-modified-since"),
        b"mcp-name",
    }
)
"""Headers of a client's request that are about its connection, its content or its session with us."""


def passing(head: Head) -> bytes:
    """The lines of a request that go on to servers: all but those that are written anew."""
    return lines_without(head.block, head.low, _OWN)


class TargetCall(StreamedCall):
    """A request that is whole, and its answer in parts: taken with `receive`, or given as they come (`pour`)."""

    __slots__ = ("_of", "_taker")

    def __init__(self, calls: HttpCalls, plan: BackendPlan, request: CallRequest, seconds: float) -> None:
        super().__init__(calls, plan.key, request, seconds)
        self.length = len(request.body)
        self._of = plan
        self._taker: Callable[[bytes], None] | None = None

    def begin(self) -> None:
        self.plan = self._of
        self.calls.leases.begin(self, self._of)

    def lease_ready(self, up: Upstream) -> None:
        body = self.request.body
        up.begin(self, block_of(self.request, self.plan, len(body)), body, True)

    async def pour(self, taker: Callable[[bytes], None]) -> None:
        """Give the rest of the answer to `taker`, in the callback that brings it: no turn of the loop, nothing is held.
        Who takes no more says so with `hold`. Raises `CallFailed`."""
        self._flush(taker)
        self._taker = taker
        try:
            while not self._is_over:
                self._raise()
                await self._read()
        finally:
            self._taker = None
        self._flush(taker)

    def _flush(self, taker: Callable[[bytes], None]) -> None:
        parts, was_held = tuple(self._parts), self._size >= BUFFER
        self._parts.clear()
        self._size = 0
        if was_held:
            self.hold(False)
        for part in parts:  # whoever takes them may hold again
            taker(part)

    def hold(self, held: bool) -> None:
        """Stop whoever answers, or let them go on."""
        if self.up is not None:
            if held:
                self.up.pause()
            else:
                self.up.resume()

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._taker is None or end:
            super().upstream_content(data, end)
        elif data:
            self._taker(data)


def call(
    x: McpExchange, plan: BackendPlan, request: CallRequest, seconds: float = FOR_EVER, is_idempotent: bool = False
) -> TargetCall:
    """Begin a call. `seconds`: until the head of the answer. `is_idempotent`: it may come twice, and does where its
    server had closed the connection that was kept."""
    calls = x.context.calls
    made = TargetCall(calls, plan, request, seconds)
    made.is_idempotent = is_idempotent
    made.begin()
    if seconds != FOR_EVER:
        calls.wake_at(made.started + seconds, made)
    return made


def plan_of(x: McpExchange, target: TargetPlan, pinned: str = "") -> BackendPlan:
    """The backend of a target. `pinned`: label of the endpoint to use, if it is still there. Raises `CallFailed`."""
    found: BackendPlan = parts.plan_of(x.table, target, x.policies, x.context.calls.leases, pinned)
    return found


def request_timeout(x: McpExchange, target: TargetPlan, plan: BackendPlan) -> float | None:
    """How long a server may take to begin an answer, instead of what is usual: `http.requestTimeout`. None: nobody says
    so. `plan`: as `plan_of`."""
    if not target.is_stdio:
        return plan.request_timeout
    http = target.own.over(x.policies.backend).http  # no setting of a connection is in its plan
    return None if http is None else http.request_timeout


def authority(x: McpExchange, plan: BackendPlan) -> bytes:
    """The Host header for a server: its own name, unless hostRewrite or a step want another (b"": its own)."""
    return x.authority if x.policies.host_rewrite is False or x.host_set else b""
