"""What is sent by ourselves, on its way: what a `Call` and a copy for a mirror have in common. Begin, deadline, the way
to an endpoint, losses; what becomes of the answer is the subclass's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from dataplane.carriers import REFUSED, UNSENT
from dataplane.chain.calls import CallFailed, within
from dataplane.http.messages import NO_NAMES
from dataplane.http.statuses import SWITCHING
from dataplane.upstream import balance, lease, outgoing
from dataplane.upstream.opening import cause_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dataplane.carriers import Consumer, Upstream
    from dataplane.chain.chain import Chain
    from dataplane.exchange import Exchange, TracedCall
    from dataplane.http.messages import Peer, ResponseHead
    from dataplane.upstream.calls.stepped import Answering, CallExchange
    from dataplane.upstream.endpoint import Endpoint
    from dataplane.upstream.health import Refused
    from dataplane.upstream.limits import Tally
    from dataplane.variables import Services

MAX_CONNECTS: Final = 3
"""Endpoints that are tried to connect to: nothing was sent to the ones before."""


class Sends(Protocol):
    """What a worker sends its own requests with (`service.HttpCalls`)."""

    leases: lease.Leases
    wake_at: Callable[[float, Any], None]
    """Of `proxy/deadlines`."""
    make_future: Callable[[], Any]
    """The loop's."""
    clock: Callable[[], float]
    """Monotonic seconds."""
    called: Callable[[str, str, float], None]
    """Counts a call that has ended: key of its backend, outcome, seconds."""
    services: Services | None
    """What exchanges of this worker have; None: no call to a backend with steps can be made."""


class Sending(ABC):
    """Holder of a lease, consumer of its answer, woken at its deadlines; and itself knows where it went
    (`Lease.retries`)."""

    __slots__ = (
        "__weakref__",
        "answering",
        "attempt",
        "attributes",
        "block",
        "body",
        "calls",
        "counted",
        "endpoint",
        "failure",
        "finishing",
        "head_by",
        "head_of_answer",
        "is_over",
        "is_repeatable",
        "lease",
        "leased",
        "length",
        "method",
        "never_indexed",
        "peer",
        "plan",
        "started",
        "stepping",
        "target",
        "traced",
        "tried",
        "up",
        "whole_by",
    )
    upgrade = b""
    version = b"HTTP/1.1"
    scheme = b"http"
    client: Peer | None = None
    takes_trailers = False
    is_idempotent = False
    """It may come twice, whatever its method is."""

    def __init__(
        self,
        calls: Sends,
        plan: lease.BackendPlan,
        method: bytes,
        target: bytes,
        block: bytes,
        body: bytes,
        length: int,
    ) -> None:
        """`block`: all header lines; `length`: of the content, of which `body` is the first."""
        self.attributes: Mapping[str, object] | None = None
        """As `Outgoing.attributes`, where there is no exchange; once steps of the backend have run, what they left."""
        self.calls = calls
        self.plan = plan
        self.method = method
        self.target = target
        self.block = block
        self.body = body
        self.length = length
        self.head_by = self.whole_by = _NEVER
        self.started = calls.clock()
        self.peer: str | None = None
        """As `endpoint.Lease.peer`."""
        self.endpoint: Endpoint | None = None
        self.up: Upstream | None = None
        self.leased = False
        self.counted: Tally | None = None
        self.lease = self.attempt = 0
        self.never_indexed = NO_NAMES
        """As `carriers.Consumer.never_indexed`."""
        self.tried: list[Endpoint] = []
        """Endpoints that could not be connected to, or are asked now."""
        self.head_of_answer: ResponseHead | None = None
        self.is_repeatable = True
        """All of the request is still here."""
        self.is_over = False
        """Its answer is here whole, or it has failed."""
        self.finishing: outgoing.Finishing | None = None
        """Steps and finishers that wait."""
        self.answering: Answering | None = None
        """Response steps of the backend."""
        self.stepping: CallExchange | None = None
        """How steps of the backend see it, where they have begun."""
        self.traced: TracedCall | None = None
        """Its span, where the exchange that it is for is traced."""
        self.failure = ""
        """Why it ended before its end: a cause of `CallFailed`."""

    @property
    def retries(self) -> Self:
        """As `Lease.retries`."""
        return self

    @property
    @abstractmethod
    def is_grpc(self) -> bool: ...

    # --- the beginning, and its time

    def begin(self, head_within: float, whole_within: float, x: Exchange | None) -> None:
        """Finish the head, get a connection and send; any of these may have to wait. Seconds: until the head of the
        answer, and until its end; `http.requestTimeout` of the backend takes the place of the first, and what is after
        the head keeps the time that it has."""
        if x is not None:
            self.peer = x.peer
        head_within = min(head_within, whole_within)
        self.head_by = self.started + within(self.plan, head_within)
        self.whole_by = _NEVER if whole_within == _NEVER else self.head_by + max(0.0, whole_within - head_within)
        if self.plan.finishers is None and self.plan.steps is None:
            self.calls.leases.begin(self, self.plan)
        else:
            self.finishing = outgoing.Finishing(partial(self._prepare, x), self._prepared)
            self.finishing.begin()
        if not self.is_over and self.head_by != _NEVER:
            self.calls.wake_at(self.head_by, self)

    def _prepare(self, x: Exchange | None) -> Awaitable[None] | None:
        """The steps of the backend, then its finishers; None: done at once. Raises `Unfinished`."""
        return self._finish(x) if self.plan.steps is None else self._step(self.plan.steps, x)

    async def _step(self, chain: Chain, x: Exchange | None) -> None:
        from dataplane.upstream.calls import stepped  # few backends that are called have steps

        view = stepped.view_of(self, x, self._whole, self.attributes)
        body, self.stepping = view.body, view
        await stepped.run(chain, view)
        self.attributes = view.attributes
        self.method, self.target, self.block = view.method, view.target, view.request.block
        if view.body is not body:
            self.body, self.length = view.body or b"", view.length
        if chain.response is not None:
            self.answering = stepped.Answering(self, chain, view)
        waits = self._finish(x)
        if waits is not None:
            await waits

    @property
    def _whole(self) -> bytes | None:
        """All content; None: more of it comes later."""
        return self.body if self.length == len(self.body) else None

    def _finish(self, x: Exchange | None) -> Awaitable[None] | None:
        if self.plan.finishers is None:
            return None
        out = outgoing.Outgoing(self.method, self.target, self.block, self._whole, self.plan, x, 0, self.attributes)
        waits = outgoing.finish(out)
        if waits is not None:
            return self._finish_later(out, waits)
        self._finished(out)
        return None

    async def _finish_later(self, out: outgoing.Outgoing, waits: Awaitable[None]) -> None:
        await waits
        self._finished(out)

    def _finished(self, out: outgoing.Outgoing) -> None:
        """All finishers have run."""
        self.target, self.block = out.target, out.head.block
        self.never_indexed |= out.secrets

    def _prepared(self, error: outgoing.Unfinished | None) -> None:
        self.finishing = None
        if self.is_over:
            return
        if error is not None:
            self.fail(CallFailed("unfinished", f"{self.plan.key}: {error}", error.reason, error.reply))
        else:
            self.calls.leases.begin(self, self.plan)

    @property
    def consumer(self) -> Consumer:
        """Who takes the answer from the carrier: this, or the response steps of the backend before it."""
        return self if self.answering is None else self.answering

    def wake(self, now: float) -> None:
        """A deadline, or one that is met."""
        if not self.is_over and (now >= self.whole_by or (self.head_of_answer is None and now >= self.head_by)):
            self.fail(self._too_late())

    def _too_late(self) -> CallFailed:
        if self.head_of_answer is None and self.up is not None:
            self.calls.leases.failed(self.plan, self.endpoint)
        due = self.head_by if self.head_of_answer is None else self.whole_by
        return CallFailed("timeout", f"{self.where()} gave no answer within {due - self.started:g} s")

    # --- its lease

    @abstractmethod
    def lease_ready(self, up: Upstream) -> None: ...

    def lease_again(self, up: Upstream) -> None:
        self.lease_ready(up)

    def lease_failed(self, cause: str, detail: str, others: bool = False) -> None:
        """Another endpoint, where there is one: a name may have an address that no process listens on."""
        if cause in _NOT_CONNECTED:
            self.calls.leases.failed(self.plan, self.endpoint)
            if others and len(self.tried) < MAX_CONNECTS:
                self.calls.leases.begin(self, self.plan)
                return
        self.fail(_FAILURES[cause](self.plan.key, detail))

    # --- its answer

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:  # noqa: B027  nothing
        """What we ask for ourselves is not passed on."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if end:
            self.up = None
        assert self.endpoint is not None  # it was sent there
        balance.observe(self.endpoint, self.calls.clock() - self.started)
        lease.answered(self.plan, self.endpoint, head, None, self.refused(head))
        if head.status == SWITCHING:
            self.switched(head, first, end)
            return
        self.head_of_answer = head
        if self.whole_by != _NEVER and self.whole_by > self.head_by:
            self.calls.wake_at(self.whole_by, self)
        self.answered(head, first, end)

    def refused(self, head: ResponseHead) -> Refused | None:
        """Whether the endpoint takes no more requests, by this answer, for who knows what it means."""
        return None

    def switched(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """A 101, which is an answer for who asks for one alone."""
        self.fail(CallFailed("invalid", f"{self.where()} switched protocols"))

    @abstractmethod
    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The final head is here, with some of the content."""

    def upstream_interim(self, head: ResponseHead) -> None:  # noqa: B027  nothing
        """1xx: the final response is still to come."""

    @abstractmethod
    def upstream_content(self, data: bytes, end: bool) -> None: ...

    @abstractmethod
    def upstream_trailers(self, lines: bytes) -> None: ...

    def upstream_lost(self, cause: str, stale: bool) -> None:
        leases, is_answered = self.calls.leases, self.head_of_answer is not None
        if not is_answered and leases.lost(
            self, self.plan, cause, stale, self.is_repeatable, is_idempotent=self.is_idempotent
        ):
            return
        if not is_answered:
            leases.failed(self.plan, self.endpoint)
        if cause in _BROKEN:
            self.fail(CallFailed("lost", f"{self.where()}: connection {cause}"))
        else:
            kind = "connect" if cause_of(cause) == "tunnel" else "invalid"
            self.fail(CallFailed(kind, f"{self.where()}: {cause}"))

    def upstream_blocked(self) -> None:  # noqa: B027  nothing, unless more than one piece is sent
        """The request is written already; nothing to hold back."""

    def upstream_drained(self) -> None:  # noqa: B027  as above
        """See `upstream_blocked`."""

    # --- the end

    @abstractmethod
    def fail(self, error: CallFailed) -> None:
        """It ends without the whole of its answer."""

    def over(self) -> None:
        """Nothing of it stays behind."""
        self.is_over = True
        if self.finishing is not None:
            self.finishing.cancel()
            self.finishing = None
        if self.answering is not None:
            self.answering.drop()
        if self.stepping is not None and self.plan.steps is not None:
            view, self.stepping = self.stepping, None
            for hook in self.plan.steps.end:
                hook(view)
        lease.release(self)
        lease.uncount(self)
        if self.traced is not None:
            status = 0 if self.head_of_answer is None else self.head_of_answer.status
            endpoint = "" if self.endpoint is None else self.endpoint.label
            self.traced.end(self.calls.clock(), endpoint, status, self.failure)

    def where(self) -> str:
        """For messages: the endpoint, or the backend while there is none."""
        return self.plan.key if self.endpoint is None else self.endpoint.label


_NEVER: Final = float("inf")
_BROKEN: Final = frozenset(("closed", "reset", UNSENT, REFUSED))
_NOT_CONNECTED: Final = frozenset(("connect", "tunnel"))
_FAILURES: Final = {
    "connect": lambda key, detail: CallFailed("connect", detail),
    "tunnel": lambda key, detail: CallFailed("connect", detail),
    "limit": lambda key, detail: CallFailed("connect", detail),
    "refused": lambda key, detail: CallFailed("unresolved", detail),
    "dns": lambda key, detail: CallFailed("unresolved", f"{key}: {detail}", "DnsFailed"),
    "endpoints": lambda key, detail: CallFailed("unresolved", f"{key}: it has no endpoints"),
}
"""By cause of `Lease.lease_failed`."""
