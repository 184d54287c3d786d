"""When a request step answers something: what `entry` (steps of listener and route) and `attempts` (steps of a backend
reference) do alike. The fast path never comes here.

Steps that wait need no Task, which costs more than their own work often does: what they wait for runs them on. They
begin when the present events are handled, not at once: of many requests that come together each is read first, then for
each its steps run, which was measured to cost less than one request after the other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dataplane.chain.chain import Chain, Waiting, drive
from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context


class Steps:
    """The steps of an exchange that wait, from the one that answered an awaitable; then the fast path goes on. There is
    no current Task in them (as `asyncio.timeout` wants): deadlines are `proxy/deadlines`."""

    __slots__ = ("_context", "_exchange", "_then", "_work")

    def __init__(
        self,
        x: Exchange,
        context: Context,
        work: Coroutine[Any, Any, Reply | None],
        then: Callable[[Exchange, Context], None],
    ) -> None:
        self._exchange = x
        self._context = context
        self._work: Any = work
        self._then = then

    @property
    def is_over(self) -> bool:
        return self._work is None

    def go_on(self, _future: Any = None) -> None:
        """Run until the next wait, or to the end."""
        work = self._work
        if work is None:  # cancelled meanwhile
            return
        try:
            future = work.send(None)
        except StopIteration as end:
            self._over()
            self._go_beyond(end.value)
        except asyncio.CancelledError:  # what it waited for was given up
            self._over()
        except Exception as error:  # a step's bug must end in an answer
            self._over()
            self._exchange.down.failed(self._exchange, error)
        else:
            self._wait_for(future)

    def _wait_for(self, future: Any) -> None:
        if future is None:  # `asyncio.sleep(0)`
            self._context.call_soon(self.go_on)
            return
        future._asyncio_future_blocking = False  # as a Task says that it has understood
        future.add_done_callback(self.go_on)

    def _over(self) -> None:
        self._work = None
        down = self._exchange.down
        if down.waiting is self:  # no cycle may be left, and the connection may carry another exchange next
            down.waiting = None

    def _go_beyond(self, reply: Reply | None) -> None:
        """To where the fast path goes on after its last step, or to the reply of the one that ended the descent."""
        x = self._exchange
        if x.ended or x.replied:
            return  # the client left, or was answered meanwhile
        try:
            if reply is not None:
                x.down.reply(x, reply)
            else:
                self._then(x, self._context)
        except Exception as error:  # a bug of ours must end in an answer
            x.down.failed(x, error)

    def cancel(self) -> None:
        """What the steps ask for is for nobody. No effect when they run just now: they end then."""
        work = self._work
        if work is not None and not work.cr_running:
            self._work = None
            work.close()

    def __repr__(self) -> str:
        return f"Steps({'over' if self.is_over else 'waiting'})"


def interrupted(
    x: Exchange, context: Context, chain: Chain, answer: Reply | Waiting, then: Callable[[Exchange, Context], None]
) -> None:
    """A chain answered something. `then`: where the fast path goes on after its last step."""
    if isinstance(answer, Reply):
        x.down.reply(x, answer)
        return
    steps = x.down.waiting = Steps(x, context, drive(x, chain, answer), then)
    context.call_soon(steps.go_on)
