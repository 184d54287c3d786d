"""From a request head to its route: pin the table, run the gateway phase, route, run the route's request steps.

Everything here is plain calls; when a step has to wait, `waiting` takes over in a Task and comes back to the same
functions. `down` is who carries the exchange (a connection, or a stream of one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.chain import Chain, Waiting, drive
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.proxy import attempts
from dataplane.proxy.responses import ROUTE
from dataplane.table.router import choose

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context


def enter(x: Exchange, context: Context) -> None:
    """Take a request whose head is read and checked."""
    current = context.current
    if current.prepared is not None:
        current.catch_up()  # all workers of a proxy swap as one (table/current)
    table = x.table = current.table
    bind = table.binds.get(x.bind)
    listener = None if bind is None else choose(bind, x.host)
    if listener is None:
        x.down.reply(x, made("BindClosed" if bind is None else "ListenerNotFound"))
        return
    x.listener = listener
    phase = listener.chain.request
    if phase is not None:
        answer = phase(x)
        if answer is not None:
            _interrupt(x, context, listener.chain, answer, route)
            return
    route(x, context)


def nowhere(x: Exchange, context: Context) -> None:
    """`OPTIONS *` asks about the server as a whole (RFC 9110 7.1): no route has such a path."""
    x.table = context.current.table
    x.down.reply(x, made("RouteNotFound"))


def route(x: Exchange, context: Context) -> None:
    """Find the rule and run its request steps; then go upstream."""
    x.stage = ROUTE
    listener = x.listener
    plan = listener.router.match(x.host, x.path, x)
    if plan is None:
        x.down.reply(x, made("RouteNotFound"))
        return
    policies = x.policies = plan.policies if listener.upper is None else plan.policies.under[listener.upper.number]
    request = policies.chain.request
    if request is not None:
        answer = request(x)
        if answer is not None:
            _interrupt(x, context, policies.chain, answer, attempts.forward)
            return
    attempts.forward(x, context)


def _interrupt(
    x: Exchange, context: Context, chain: Chain, answer: Reply | Waiting, then: Callable[[Exchange, Context], None]
) -> None:
    if type(answer) is Reply:
        x.down.reply(x, answer)
    else:
        x.down.waiting = context.spawn(_wait(x, context, chain, answer, then))  # type: ignore[arg-type]


async def _wait(
    x: Exchange, context: Context, chain: Chain, waiting: Waiting, then: Callable[[Exchange, Context], None]
) -> None:
    """The general path: finish the steps in a Task, then go on where the fast path goes on."""
    try:
        reply = await drive(x, chain, waiting)
    except Exception as error:  # a step's bug must end in an answer
        x.down.failed(x, error)
        return
    if x.ended or x.replied:
        return  # the client left, or was answered meanwhile
    if reply is not None:
        x.down.reply(x, reply)
    else:
        then(x, context)
