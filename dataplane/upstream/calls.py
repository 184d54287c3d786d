"""Calls of policies to other services: one HTTP request over the endpoints and pools that clients' requests use.

The real `chain.calls.Calls`. A worker has one and hands it to the builders of policies. A call costs one object and one
Future; its deadline is a look of the coarse sweep, its answer is framed by the carrier whose consumer it is.
It follows no redirects, keeps no answers, and knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.chain.calls import CallAnswer, CallFailed, CallRequest, CallStream
from dataplane.http.heads import Head
from dataplane.upstream import lease
from dataplane.upstream.asking import Asking, block_of, plan_of
from dataplane.upstream.call_streams import StreamedCall

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.exchange import Exchange
    from dataplane.http.messages import ResponseHead
    from dataplane.upstream.guards import Rules
    from dataplane.upstream.lease import Leases
    from dataplane.upstream.settings import Settings


class Inherited(Protocol):
    """What a call reads of the policies above its backend (`table/plans.RoutePolicies`)."""

    @property
    def backend(self) -> Settings: ...

    @property
    def rules(self) -> Rules | None: ...


class Table(Protocol):
    @property
    def backends(self) -> Mapping[str, Any]: ...  # Any: a BackendPlan; mappings of protocols do not vary

    @property
    def of_gateway(self) -> Inherited:
        """Policies of the Gateway."""


class HttpCalls:
    """`table()`: the one that serves now; a call has no exchange to pin one. `wake_at(moment, sleeper)`: of
    `proxy/deadlines`. `make_future()`: the loop's. `clock`: monotonic seconds."""

    __slots__ = ("clock", "leases", "make_future", "table", "wake_at")

    def __init__(
        self,
        table: Callable[[], Table],
        leases: Leases,
        wake_at: Callable[[float, Any], None],
        make_future: Callable[[], Any],
        clock: Callable[[], float],
    ) -> None:
        self.table = table
        self.leases = leases
        self.wake_at = wake_at
        self.make_future = make_future
        self.clock = clock

    def stream(self, backend: str, request: CallRequest, seconds: float, x: Exchange | None = None) -> CallStream:
        """As `chain.calls.Calls.stream`."""
        call = StreamedCall(self, backend, request, seconds)
        call.inherited = self.inherited(x)
        call.begin()
        self.wake_at(call.started + call.seconds, call)
        return call

    def seconds(self, backend: str, seconds: float, x: Exchange | None = None) -> float:
        """As `chain.calls.Calls.seconds`."""
        plan = plan_of(self.table(), backend, self.inherited(x))
        return seconds if plan is None or plan.request_timeout is None else plan.request_timeout

    def inherited(self, x: Exchange | None) -> Inherited:
        """What policies above the backend say of connections to it."""
        of_gateway = self.table().of_gateway
        if x is None:
            return of_gateway
        found: Any = x.policies  # Any: plans of routes and listeners, whose types this package does not know
        if found is None:  # there is no route yet
            listener: Any = x.listener
            upper = None if listener is None else listener.upper
            found = of_gateway if upper is None else upper.policies
        inherited: Inherited = found
        return inherited

    async def http(
        self,
        backend: str,
        request: CallRequest,
        seconds: float,
        max_body: int = 1024 * 1024,
        x: Exchange | None = None,
    ) -> CallAnswer:
        """As `chain.calls.Calls.http`."""
        call = _Call(self, backend, request, seconds, max_body)
        call.inherited = self.inherited(x)
        call.begin()
        if call.outcome is None:
            call.future = self.make_future()
            self.wake_at(call.started + call.seconds, call)
            try:
                await call.future
            finally:
                if call.outcome is None:  # the caller was cancelled: nobody awaits it any more
                    call.future = None
                    call.end(_given_up(call.where()))
        outcome: Any = call.outcome
        if type(outcome) is CallAnswer:
            return outcome
        try:
            raise outcome
        finally:
            del call, outcome  # see `gatewright/kept_errors`


class _Call(Asking):
    """A call whose request and answer are whole."""

    __slots__ = ("future", "max_body", "outcome", "parts", "size")

    def __init__(self, calls: HttpCalls, key: str, request: CallRequest, seconds: float, max_body: int) -> None:
        super().__init__(calls, key, request, seconds, len(request.body))
        self.max_body = max_body
        self.parts: list[bytes] = []
        self.size = 0
        self.future: Any = None
        self.outcome: CallAnswer | CallFailed | None = None

    def lease_ready(self, up: Upstream) -> None:
        up.begin(self, block_of(self.request, self.plan, len(self.request.body)), self.request.body, True)

    # --- in

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if head.length > self.max_body:
            self._too_large()
        elif first or end:
            self.upstream_content(first, end)

    def upstream_content(self, data: bytes, end: bool) -> None:
        if end:
            self.up = None
        self.size += len(data)
        if self.size > self.max_body:
            self._too_large()
            return
        self.parts.append(data)
        if end:
            head = self.head_of_answer
            assert head is not None  # it came before the end
            self.end(CallAnswer(head.status, Head(head.block, head.low), b"".join(self.parts)))

    def upstream_trailers(self, lines: bytes) -> None:
        """Nobody asks for those of a call."""
        self.upstream_content(b"", True)

    def _too_large(self) -> None:
        self.end(CallFailed("too_large", f"{self.where()}: the answer has more than {self.max_body} bytes"))

    # --- over

    def wake(self, now: float) -> None:
        """The deadline."""
        if self.outcome is None:
            self.end(self.too_late())

    def fail(self, error: CallFailed) -> None:
        self.end(error)

    def end(self, outcome: CallAnswer | CallFailed) -> None:
        """The call is over: nothing of it stays behind."""
        self.outcome = outcome
        lease.release(self)
        lease.uncount(self)
        future = self.future
        if future is not None and not future.done():
            future.set_result(None)

    def __repr__(self) -> str:
        return f"_Call({self.key}, {self.outcome!r})"


def _given_up(where: str) -> CallFailed:
    return CallFailed("lost", f"{where}: given up")
