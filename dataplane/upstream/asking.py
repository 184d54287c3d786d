"""What all calls of policies have in common (`calls`, `call_streams`): the way to an endpoint, and its losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Self

from dataplane.carriers import REFUSED, UNSENT
from dataplane.chain.calls import CallFailed
from dataplane.http.messages import NO_NAMES
from dataplane.http.statuses import SWITCHING
from dataplane.upstream import balance
from dataplane.upstream.lease import answered
from dataplane.upstream.versions import is_grpc

if TYPE_CHECKING:
    from dataplane.carriers import Upstream
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.upstream.calls import HttpCalls, Inherited, Table
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.limits import Tally

BODILESS: Final = frozenset((b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"TRACE"))
"""Methods whose empty body need not be announced (RFC 9110 8.6)."""
MAX_CONNECTS: Final = 3
"""Endpoints that a call tries to connect to: nothing was sent to the ones before."""


class Asking(ABC):
    """What every call under way is: holder of a lease, consumer of its answer, woken at its deadline."""

    __slots__ = (
        "__weakref__",
        "attempt",
        "calls",
        "counted",
        "endpoint",
        "head_of_answer",
        "inherited",
        "is_idempotent",
        "is_repeatable",
        "key",
        "lease",
        "leased",
        "length",
        "method",
        "plan",
        "request",
        "seconds",
        "started",
        "target",
        "tried",
        "up",
    )
    upgrade = b""
    version = b"HTTP/1.1"
    scheme = b"http"
    client = None
    takes_trailers = False
    never_indexed = NO_NAMES

    def __init__(self, calls: HttpCalls, key: str, request: CallRequest, seconds: float, length: int) -> None:
        self.calls = calls
        self.key = key
        self.request = request
        self.method = request.method
        self.target = request.target
        self.length = length
        self.seconds = seconds
        self.started = calls.clock()
        self.inherited: Inherited | None = None
        """What policies above the backend say; None: nothing."""
        self.plan: Any = None
        """BackendPlan of the table that served when it began."""
        self.endpoint: Endpoint | None = None
        self.up: Upstream | None = None
        self.leased = False
        self.counted: Tally | None = None
        self.lease = self.attempt = 0
        self.tried: list[Endpoint] = []
        """Endpoints that could not be connected to, or are asked now."""
        self.head_of_answer: ResponseHead | None = None
        self.is_repeatable = True
        """All of the request is still here."""
        self.is_idempotent = False
        """It may come twice, whatever its method is."""

    @property
    def retries(self) -> Self:
        """As `Lease.retries`: a call knows itself where it went."""
        return self

    @property
    def is_grpc(self) -> bool:
        return is_grpc(b"\r\n" + self.request.headers.lower())

    def begin(self) -> None:
        """Get a connection and send; or wait for a name or a connection."""
        plan = self.plan = plan_of(self.calls.table(), self.key, self.inherited)
        if plan is None:
            self.fail(CallFailed("unresolved", f"{self.key} is not known"))
        else:
            if plan.request_timeout is not None:  # decisions, Callouts: it overrides the call's own
                self.seconds = plan.request_timeout
            self.calls.leases.begin(self, plan)

    @abstractmethod
    def lease_ready(self, up: Upstream) -> None: ...

    def lease_again(self, up: Upstream) -> None:
        self.lease_ready(up)

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        """Another endpoint, where there is one: a name may have an address that nobody listens on."""
        if cause == "connect":
            self.calls.leases.failed(self.plan, self.endpoint)
        if cause == "refused":
            self.fail(CallFailed("unresolved", detail))
        elif cause == "limit":
            self.fail(CallFailed("connect", detail))
        elif cause != "connect":
            what = "its name cannot be resolved" if cause == "dns" else "it has no endpoints"
            self.fail(CallFailed("unresolved", f"{self.key}: {what}"))
        elif others and len(self.tried) < MAX_CONNECTS:
            self.begin()
        else:
            self.fail(CallFailed("connect", detail))

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:  # noqa: B027  nothing
        """What a policy asks for is not passed on."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if end:
            self.up = None
        assert self.endpoint is not None  # it was sent there
        balance.observe(self.endpoint, self.calls.clock() - self.started)
        answered(self.plan, self.endpoint, head)
        if head.status == SWITCHING:
            self.fail(CallFailed("invalid", f"{self.where()} switched protocols"))
            return
        self.head_of_answer = head
        self.answered(head, first, end)

    @abstractmethod
    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The final head is here, with some of the content."""

    def upstream_interim(self, head: ResponseHead) -> None:  # noqa: B027  nothing, unless a kind of call wants more
        """1xx: the final response is still to come."""

    @abstractmethod
    def upstream_content(self, data: bytes, end: bool) -> None: ...

    @abstractmethod
    def upstream_trailers(self, lines: bytes) -> None: ...

    def upstream_lost(self, cause: str, stale: bool) -> None:
        if self.head_of_answer is None and self.calls.leases.lost(
            self, self.plan, cause, stale, self.is_repeatable, is_idempotent=self.is_idempotent
        ):
            return
        if self.head_of_answer is None:
            self.calls.leases.failed(self.plan, self.endpoint)
        if cause in ("closed", "reset", UNSENT, REFUSED):
            self.fail(CallFailed("lost", f"{self.where()}: connection {cause}"))
        else:
            self.fail(CallFailed("invalid", f"{self.where()}: {cause}"))

    def upstream_blocked(self) -> None:  # noqa: B027  nothing, unless a kind of call wants more
        """The request is written already; nothing to hold back."""

    def upstream_drained(self) -> None:  # noqa: B027  nothing, unless a kind of call wants more
        """See `upstream_blocked`."""

    @abstractmethod
    def fail(self, error: CallFailed) -> None: ...

    def too_late(self) -> CallFailed:
        """The answer was not there, or not whole, in time."""
        if self.head_of_answer is None and self.up is not None:
            self.calls.leases.failed(self.plan, self.endpoint)
        return CallFailed("timeout", f"{self.where()} gave no answer within {self.seconds:g} s")

    def where(self) -> str:
        """For messages: the endpoint, or the backend while there is none."""
        return self.key if self.endpoint is None else self.endpoint.label


def plan_of(table: Table, key: str, inherited: Inherited | None) -> Any:  # Any: as `Table` has it
    """The BackendPlan that a call uses, below what policies above it say; None: there is no such backend."""
    plan = table.backends.get(key)
    if plan is None or inherited is None:
        return plan
    return plan.beneath(inherited.backend, inherited.rules)


def block_of(request: CallRequest, backend: Any, length: int) -> bytes:  # Any: a BackendPlan, as `Table` has it
    """The header lines, for content of `length` bytes (`messages.UNKNOWN`: nobody knows). Host is the backend's own
    (RFC 9110 7.2) unless the caller has another; a socket has none."""
    is_said = length > 0 or (length == 0 and request.method not in BODILESS)
    line = b"content-length: %d\r\n" % length if is_said else b""
    host = request.authority or backend.authority or b"localhost"
    return b"\r\nhost: %b\r\n%b%b" % (host, line, request.headers)
