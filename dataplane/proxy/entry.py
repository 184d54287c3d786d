"""From a request head to its route: pin the table, run the gateway phase, route, run the route's request steps.

Everything here is plain calls; when a step has to wait, `proxy/waiting` takes over and comes back to the same
functions. `down` is who carries the exchange (a connection, or a stream of one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.proxy import attempts
from dataplane.proxy.responses import ROUTE
from dataplane.proxy.waiting import interrupted
from dataplane.table.router import choose

if TYPE_CHECKING:
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
            interrupted(x, context, listener.chain, answer, route)
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
            interrupted(x, context, policies.chain, answer, attempts.forward)
            return
    attempts.forward(x, context)
