"""A request on its way to a provider, and its answer, as they are in both directions. What is read of either is a
subclass's: `reading`, `detecting`, `realtime`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.backends.llm import credentials, outcomes
from dataplane.backends.terminating.forwarding import Forwarding, reply_of
from dataplane.http.heads import Head
from dataplane.llm import errors, refusals
from dataplane.llm.providers import BEARER
from dataplane.upstream.health import Refused

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallFailed, CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import RouteType
    from dataplane.upstream.outgoing import Outgoing


class Passing(Forwarding):
    """As it is, in both directions."""

    __slots__ = ("_facts", "_is_counted", "_place", "_route", "_x")

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
        """`plan`: a BackendPlan. `place`: of a key that has no location of its own. `has_body`: as of `Forwarding`."""
        super().__init__(out, plan, request, has_body=has_body)
        self._place = place
        self._x: LlmExchange = out.x  # type: ignore[assignment]  # the exchange, of which both are a part
        self._facts = known
        self._route = route
        self._is_counted = False

    def _finished(self, out: Outgoing) -> None:
        credentials.placed(out, self._place)
        super()._finished(out)

    def refused(self, head: ResponseHead) -> Refused | None:
        """429 says that it takes no more, and may say until when."""
        if head.status != refusals.TOO_MANY:
            return None
        return Refused(refusals.seconds(Head(head.block, head.low), self._x.context.wall_clock()))

    def broke(self, error: CallFailed) -> None:
        if self._is_passing:
            self.out.lost()
        else:
            self._x.reply(errors.refused(self._route, reply_of(error)))

    def over_whole(self) -> None:
        self._count()

    def cancel(self) -> None:
        super().cancel()
        self._count()

    def _count(self) -> None:
        """For metrics and the log, once."""
        if not self._is_counted:
            self._is_counted = True
            outcomes.record(self._x, self._route, self._facts, self.calls.clock() - self.started, self.traced)
