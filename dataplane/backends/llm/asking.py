"""A request to one candidate, whose place another one may take until something of its answer is there
(docs/llm/failover.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm import outcomes
from dataplane.backends.llm.held import Try
from dataplane.backends.llm.passing import Passing
from dataplane.chain.calls import FOR_EVER, CallFailed
from dataplane.llm.providers import BEARER
from dataplane.upstream.calls import Call

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import RouteType

DRAIN_TIME: Final = 1.0
"""Seconds that the rest of an answer is read that makes place for another candidate, so that its connection can be used
again."""


class Asking(Passing):
    """A subclass says what becomes of an answer that stays: `accepted`."""

    __slots__ = ("_event_by", "_has_token", "_try")

    def __init__(
        self,
        out: Taker,
        plan: Any,
        request: CallRequest,
        route: RouteType,
        known: Facts,
        place: Place = BEARER,
        has_body: bool = False,
    ) -> None:
        """`plan`: a BackendPlan."""
        super().__init__(out, plan, request, route, known, place, has_body)
        self._try = out if isinstance(out, Try) else None
        """None: there is no other provider to ask."""
        self._event_by = FOR_EVER
        """When the first content has to be there, if anybody else can be asked."""
        self._has_token = False
        """Something of the answer itself has come."""

    def go(self, head_within: float = FOR_EVER) -> None:
        super().go(head_within)
        seconds = self._x.policies.timeouts.backend_request
        if seconds is not None:  # beside the backend's own, whichever is shorter
            self.head_by = min(self.head_by, self.started + seconds)
            self.calls.wake_at(self.head_by, self)

    def within(self, seconds: float | None) -> None:
        """The first content of a stream has to be there by then, where another candidate can be asked. None: it has
        time."""
        if seconds is not None and self._try is not None and not self.is_over:
            self._event_by = self.started + seconds
            self.calls.wake_at(self._event_by, self)

    def wake(self, now: float) -> None:
        super().wake(now)
        if now >= self._event_by and not self.is_over and not self._has_token and self._try is not None:
            self._event_by = FOR_EVER
            if self._try.may_give_way():
                self.calls.leases.failed(self.plan, self.endpoint)
                self.fail(CallFailed("timeout", f"{self.where()} sent no content in time"))

    def answered(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if self._try is not None and self._try.gives_way(str(head.status), head.status, head):
            self._leave()
        else:
            self.accepted(head, first, end)

    def accepted(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """The answer with this head is the one that the client gets, or the beginning of a stream that may be."""
        super().answered(head, first, end)

    def _leave(self) -> None:
        """Another candidate takes the place of this answer, which goes on unread for a moment."""
        assert self._try is not None  # it gives way
        up, self.up = self.up, None
        self._let_go_of_stream()
        self._end()
        sleeper = None if up is None else up.discard()
        if sleeper is not None:
            self.calls.wake_at(self.calls.clock() + DRAIN_TIME, sleeper)
        self._try.proceed()

    def _let_go_of_stream(self) -> None:
        """It is counted among the tries that failed, and nothing of it is kept."""
        self._is_counted = True
        self._describe()

    def _describe(self) -> None:
        """Say of its span what is known."""
        if self.traced is not None:
            outcomes.describe(self.traced, self._route, self._facts)

    def fails_early(self, why: str) -> bool:
        """Whether a stream makes place for another candidate, which failed before its first content; "": it did not.
        If so, it does not go on."""
        if not why or self._try is None or self._has_token or self.is_over or not self._try.may_give_way():
            return False
        self.fail(CallFailed("lost", f"{self.where()}: {why}"))
        return True

    def over(self) -> None:
        super().over()
        if self._try is not None:
            head = self.head_of_answer
            outcome = self.failure or ("" if head is None else str(head.status))
            self._try.tries.note(self._try.name, outcome, self.calls.clock() - self.started)
            self._facts["candidates"] = self._try.tries.text

    def fail(self, error: CallFailed) -> None:
        if not self._has_given_way(error):
            super().fail(error)

    def _has_given_way(self, error: CallFailed) -> bool:
        """Whether another candidate took the place of this one, which failed."""
        if self.is_over or self._try is None or not self._try.gives_way(error.cause):
            return False
        self._let_go_of_stream()
        Call.fail(self, error)
        self._try.proceed()
        return True
