"""When a step answers an awaitable: request steps of listener, route and backend reference, and response steps alike.
The fast path never comes here.

Steps that wait need no Task, which costs more than their own work often does: what they wait for runs them on. They
begin when the present events are handled, not at once: of many requests that come together each is read first, then for
each its steps run, which was measured to cost less than one request after the other.

They may await futures of `Env` (which calls of policies, bodies and threads give, too) and each other, nothing else:
there is no current Task, so `asyncio.timeout`, groups and other libraries' waiting would go wrong in ways that are
hard to see. What is awaited otherwise fails at once and says why. Hooks that need a Task have one of their own behind
such a future (`chain/tasks`).

The work of a backend that ends requests itself runs beside the steps in the same way (`work`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.chain import Chain, Waiting, drive, leave, run_later
from dataplane.chain.reply import Reply
from dataplane.http.body import Gone

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dataplane.net.turns import Turns
    from dataplane.proxy.active import ActiveExchange, Waits
    from dataplane.proxy.context import Context

log = logging.getLogger("dataplane.proxy")

ASKED, THROWN = 1, 2
"""Of a cancellation: not thrown yet, because the steps run just now; thrown."""


_OVER: Final = object()
"""Of steps that are over: nothing runs them on."""


class StepFuture(asyncio.Future[Any]):
    """What `Env.make_future` gives: steps may await it."""

    __slots__ = ()
    of_env = True


class Steps:
    """The steps of an exchange that wait, from the one that answered an awaitable; then its life goes on."""

    __slots__ = ("_awaited", "_cancelled", "_end", "_exchange", "_is_refused", "_then", "_work")

    def __init__(
        self,
        x: ActiveExchange,
        work: Coroutine[Any, Any, Reply | None],
        then: Callable[[ActiveExchange, Context], None],
    ) -> None:
        """Runs `work` to its end; then `then`, or the `Reply` that it answers."""
        self._exchange = x
        self._work: Any = work
        self._then = then
        self._awaited: Any = None
        """What runs them on; whatever else says so is late."""
        self._cancelled = 0
        self._is_refused = False
        """They awaited what they must not."""

    def begin(self) -> None:
        """When the present events are handled."""
        x = self._exchange
        x.waiting = self if x.waiting is None else Several(x.waiting, self)
        x.context.call_soon(self.go_on)

    @property
    def is_over(self) -> bool:
        return self._work is None

    def go_on(self, future: Any = None) -> None:
        """Run until the next wait, or to the end."""
        if future is not self._awaited:  # cancelled meanwhile
            return
        x = self._exchange
        turns = x.context.writes.turns
        if turns.has_time():
            self._go_on_in(turns)
        else:
            self._awaited = None
            turns.add(self, x.client.address)

    def next_turn(self) -> None:
        """As `net.turns.Waiting`: this turn has time."""
        if self._awaited is None:  # else cancelled meanwhile
            self._go_on_in(self._exchange.context.writes.turns)

    def _go_on_in(self, turns: Turns) -> None:
        self._go_on()
        turns.has_gone_on(*self._exchange.makers())

    def _go_on(self) -> None:
        try:
            awaited = self._work.send(None)
        except StopIteration as end:
            self._finished(end.value)
        except (Exception, asyncio.CancelledError) as error:
            self._broken(error)
        else:
            if awaited is None and not self._cancelled:  # `asyncio.sleep(0)`; who cancels it may go on a turn early
                self._awaited = None
                self._exchange.context.call_soon(self.go_on)
            else:
                self._wait_for(awaited)

    def _throw(self, error: BaseException) -> None:
        if self._cancelled == ASKED:
            self._cancelled = THROWN
        self._awaited = None
        try:
            awaited = self._work.throw(error)
        except StopIteration as end:
            self._finished(end.value)
        except (Exception, asyncio.CancelledError) as end:
            self._broken(end)
        else:
            self._wait_for(awaited)
        finally:
            del error  # this frame is in its traceback: see `gatewright/kept_errors`

    def _wait_for(self, future: Any) -> None:
        if self._cancelled == ASKED:
            self._throw(asyncio.CancelledError())
        elif future is None:
            self._awaited = None
            self._exchange.context.call_soon(self.go_on)
        elif getattr(future, "of_env", False):
            self._awaited = future
            future._asyncio_future_blocking = False  # as a Task says that it has understood
            future.add_done_callback(self.go_on)
        else:
            self._refuse(future)

    def _refuse(self, future: Any) -> None:
        error = TypeError(f"a step without a Task (Row.task) may await futures of Env only, not {future!r}")
        if not self._is_refused:
            self._is_refused = True
            self._throw(error)
            return
        try:  # it goes on as if nothing were wrong
            self._work.close()
        except RuntimeError:
            log.error("a step does not end in %r", self._exchange)
        self._broken(error)

    def _finished(self, reply: Reply | None) -> None:
        x = self._over()
        if not self._cancelled:
            self._go_beyond(x, reply)
        elif self._end is not None:
            self._too_late()

    def _over(self) -> ActiveExchange:
        self._work = None
        self._awaited = _OVER
        x = self._exchange
        if x.waiting is self:  # no cycle may be left
            x.waiting = None
        elif isinstance(x.waiting, Several):
            x.waiting = x.waiting.without(self)
        return x

    def _broken(self, error: BaseException) -> None:
        """By a bug, or cancelled: by us, or what was waited for was given up."""
        x = self._over()
        if not isinstance(error, Exception):
            pass  # cancelled
        elif not self._cancelled:
            self._failed(x, error)
        elif not isinstance(error, Gone):
            log.error("internal error in the cleanup of %r", x, exc_info=error)
        if self._cancelled and self._end is not None:
            self._too_late()

    def _go_beyond(self, x: ActiveExchange, reply: Reply | None) -> None:
        """To where the exchange goes on after its last step, or to the reply of the one that answered."""
        if x.ended or x.replied:
            return  # the client left, or was answered meanwhile
        try:
            if reply is not None:
                x.reply(reply)
            else:
                self._then(x, x.context)
        except Exception as error:  # a bug in Gatewright must end in an answer
            x.failed(error)

    def _failed(self, x: ActiveExchange, error: Exception) -> None:
        """A step's bug must end in an answer."""
        x.failed(error)

    def cancel(self) -> None:
        """As `active.Waits.cancel`."""
        work = self._work
        if work is None or self._cancelled:
            return
        self._cancelled = ASKED
        self._end: Callable[[ActiveExchange], None] | None = None
        if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
            leave(work)
            self._broken(asyncio.CancelledError())
        elif not work.cr_running:  # else at their next wait
            self._throw(asyncio.CancelledError())

    def end_with(self, end: Callable[[ActiveExchange], None], seconds: float) -> None:
        """As `active.Waits.end_with`."""
        self._end = end
        context = self._exchange.context
        context.deadlines.call_at(context.clock() + seconds, self._too_late)

    def _too_late(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end(self._exchange)

    def __repr__(self) -> str:
        return f"Steps({'over' if self.is_over else 'waiting'})"


class Several:
    """Steps that wait while the work of a backend does."""

    __slots__ = ("_of",)

    def __init__(self, *of: Waits) -> None:
        self._of = of

    @property
    def is_over(self) -> bool:
        return all(each.is_over for each in self._of)

    def without(self, gone: Waits) -> Waits | None:
        """What is left of it."""
        left = [each for each in self._of if each is not gone]
        return Several(*left) if len(left) > 1 else left[0] if left else None

    def cancel(self) -> None:
        """As `active.Waits.cancel`."""
        for each in self._of:
            each.cancel()

    def end_with(self, end: Callable[[ActiveExchange], None], seconds: float) -> None:
        """As `active.Waits.end_with`."""
        last = [each for each in self._of if not each.is_over]
        left = len(last)

        def one(x: ActiveExchange) -> None:
            nonlocal left
            left -= 1
            if not left:
                end(x)

        for each in last:
            each.end_with(one, seconds)


def work(x: ActiveExchange, work: Coroutine[Any, Any, Reply | None]) -> Steps:
    """As `Exchange.work`."""
    steps = Steps(x, work, _nothing)
    steps.begin()
    return steps


def _nothing(x: ActiveExchange, context: Context) -> None:
    """It has given its response, or will."""


def interrupted(
    x: ActiveExchange,
    context: Context,
    chain: Chain,
    answer: Reply | Waiting,
    then: Callable[[ActiveExchange, Context], None],
) -> None:
    """A chain answered something. `then`: where the fast path goes on after its last step."""
    if isinstance(answer, Reply):
        x.reply(answer)
        return
    steps = x.waiting = Steps(x, drive(x, chain, answer), then)
    context.call_soon(steps.go_on)  # as `begin`


def later(x: ActiveExchange, context: Context, chain: Chain, then: Callable[[ActiveExchange, Context], None]) -> None:
    """Run the request steps of a chain in another turn of the loop, since this one is full; then go on as those do
    that have passed at once."""
    steps = x.waiting = Steps(x, run_later(x, chain), then)
    context.writes.turns.add(steps, x.client.address)
