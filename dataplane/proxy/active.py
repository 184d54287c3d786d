"""An exchange as the functions of this package see it: its fields with their types, and what leads out of any of them.

Most of what acts on an exchange is a plain function of `x: ActiveExchange`, in the file that is about it; such files
import each other one way only. What every one of them may have to do, wherever it stands (answer, give up, end), and
what its carriers report, are methods: `proxy/exchange` has them, and is the one file that knows all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from dataplane.carriers import Downstream, Upstream
    from dataplane.chain.filter import Filter
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Work
    from dataplane.proxy.attempt.as_routed import AsRouted
    from dataplane.proxy.attempt.replay import BodyCopy, NeedsBody
    from dataplane.proxy.attempt.tries import Retries
    from dataplane.proxy.context import Context
    from dataplane.proxy.request.bounds import Bounds
    from dataplane.proxy.response.delayed import DelayedResponse
    from dataplane.table.binds import ListenerPlan
    from dataplane.table.plans import BackendPlan, RoutePlan, RoutePolicies, Target
    from dataplane.table.table import Table
    from dataplane.upstream.endpoint import Endpoint, Lease
    from dataplane.upstream.limits import Tally
    from dataplane.upstream.outgoing import Outgoing

    class _Leasing(Exchange, Lease):
        """It holds its lease itself, and is the consumer of its upstream."""

        endpoint: Endpoint | None
        counted: Tally | None
        retries: Retries | None

else:
    _Leasing = Exchange  # protocols have no slots


class ActiveExchange(_Leasing):
    """The types of the fields of `Exchange` that those below the tables cannot name, and what ends it."""

    __slots__ = ()

    down: Downstream
    context: Context
    table: Table
    listener: ListenerPlan
    plan: RoutePlan
    policies: RoutePolicies
    target_plan: Target
    waiting: Waits | None
    installing: Filter
    backend_plan: BackendPlan
    up: Upstream | None
    outgoing: Outgoing  # the present try, where its backend has finishers; else not there
    as_routed: AsRouted
    body_copy: BodyCopy | None
    mirroring: NeedsBody | None
    delayed_response: DelayedResponse | None
    inlet: Inlet | None
    bounds: Bounds | None

    def took_long(self) -> None:
        """Expressions of its steps are about to take long: such steps wait from now on where a turn is full."""
        if self.policies is not None:
            self.policies.chain.is_long = True
        elif self.listener is not None:
            self.listener.chain.is_long = True

    if TYPE_CHECKING:  # `proxy/exchange` has these

        def reply(self, reply: Reply) -> None:
            """End with a reply of the gateway, which the response steps see; a part of another one must not be out."""

        def failed(self, error: Exception) -> None:
            """A bug in Gatewright, or a request of which more is asked than is read: it ends."""

        def give_up(self, reason: str, detail: str = "") -> None:
            """It cannot go on: an answer, or, when a part of a response is out, breaking off."""

        def complete(self) -> None:
            """The response is whole."""

        def pace(self) -> None:
            """The buffer of its content has changed (`http/body.BodyBuffer`)."""

        def abandon(self, reason: str) -> None:
            """It ends without (the whole of) its response; the carrier knows it, or learns it from the caller."""

        def work(self, work: Coroutine[Any, Any, Reply | None]) -> Work: ...


class Waits(Protocol):
    """What waits on behalf of an exchange (`Exchange.waiting`)."""

    @property
    def is_over(self) -> bool: ...

    def cancel(self) -> None:
        """What it asks for is no longer needed: CancelledError is thrown where it waits, and it is driven on to its
        end, for it may have to clean up."""

    def end_with(self, end: Callable[[ActiveExchange], None], seconds: float) -> None:
        """Cancelled: call `end` when it is over, and after `seconds` in any case; once. A second call takes the place
        of the first."""


class Inlet(Protocol):
    """Who takes a request's content in place of the body and the upstream carrier (`Exchange.inlet`)."""

    def received(self, x: ActiveExchange, data: bytes, end: bool, lines: bytes = b"") -> None:
        """`lines`: with `end`, the trailers behind it."""

    def pause(self, x: ActiveExchange) -> None: ...

    def resume(self, x: ActiveExchange) -> None: ...

    def leave(self, x: ActiveExchange) -> None:
        """The request's content is no longer needed."""
