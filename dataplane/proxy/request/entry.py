"""From a request head to its route: pin the table, run the gateway phase, route, run the route's request steps.

Everything here is plain calls; when a step has to wait, `proxy/steps/waiting` takes over and comes back to the same
functions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.http import upgrades, uri, well_known
from dataplane.http.connect_rules import CONNECT
from dataplane.http.spellings import REFUSED, one_reading
from dataplane.proxy.attempt import attempts
from dataplane.proxy.request import admission, connects, hops
from dataplane.proxy.steps.response_steps import ROUTE
from dataplane.proxy.steps.waiting import interrupted, later
from dataplane.table.binds import choose

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.http.spellings import PathRules
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.binds import BindPlan, ListenerPlan
    from dataplane.table.plans import RoutePlan, RoutePolicies
    from dataplane.table.router import Router

HTTP2: Final = b"HTTP/2"
"""Of a request whose wish for another protocol is an extended CONNECT: without it nothing is left."""


def start(x: ActiveExchange) -> None:
    """Take a request whose head is read and checked."""
    context = x.context
    try:
        current = context.current
        if current.prepared is not None:
            current.catch_up()  # all workers of a proxy swap as one (table/current)
        table = x.table = current.table
        bind = table.binds.get(x.bind)
        if x.path == uri.NO_PATH and not _has_path(x, bind):
            return
        listener = None if bind is None else choose(bind, x.host)
        if listener is None:
            x.reply(made("BindClosed" if bind is None else "ListenerNotFound"))
            return
        if listener.tls is not None and (listener.key != x.client.listener or listener.tls.asks != x.client.asked):
            x.reply(_misdirected(x, listener))
            return
        x.listener = listener
        if listener.telemetry is not None and listener.telemetry.tracing is not None:
            x.trace = trace = listener.telemetry.tracing.begin(x)
            if trace is not None:  # else its end is as that of any other
                x.noted = True
        limits = table.request_limits
        if limits is not None and admission.refuses(x, limits):
            return
        paths = listener.http.paths
        if (x.readings is None or paths.lower) and not _has_one_reading(x, paths):
            x.reply(made(REFUSED, "a spelling of paths that is not allowed"))
            return
        phase = listener.chain.request
        if phase is not None:
            chain = listener.chain
            if chain.is_long and _is_full(context):
                later(x, context, chain, route)
                return
            answer = phase(x)
            if answer is not None:
                interrupted(x, context, listener.chain, answer, route)
                return
        route(x, context)
    except Exception as error:  # a bug in Gatewright must end in an answer
        x.failed(error)


def _has_path(x: ActiveExchange, bind: BindPlan | None) -> bool:
    """Whether it goes on as any other request; otherwise it was answered."""
    if x.method == CONNECT:
        return connects.is_routed(x, bind)
    x.reply(made("RouteNotFound"))  # `OPTIONS *` asks about the server as a whole (RFC 9110 7.1)
    return False


def _misdirected(x: ActiveExchange, listener: ListenerPlan) -> Reply:
    """The listener was not the one that was chosen for the connection; or it is, and asks other things of clients'
    certificates than it did when this one showed its own: the client has to connect again."""
    if listener.key != x.client.listener:
        return made("Misdirected")
    return replace(made("Misdirected", "validation of clients has changed since the connection began"), close=True)


def _has_one_reading(x: ActiveExchange, rules: PathRules) -> bool:
    """Make the path one that policies and the origin read alike, or note how others may read it; False: refuse."""
    found = one_reading(x.path, rules)
    if found is None:
        return False
    path, x.readings = found
    if path != x.path:
        x.target = x.asked_target = path + x.target[len(x.path) :]
        x.path = path
    return True


def _is_one_rule(x: ActiveExchange, router: Router) -> bool:
    """Whether the path leads to the same rule however an origin reads it."""
    plan = router.match(x.host, x.path, x)
    return all(router.match(x.host, reading, x) is plan for reading in x.readings or ())


def route(x: ActiveExchange, context: Context) -> None:
    """Find the rule and run its request steps; then go upstream."""
    x.stage = ROUTE
    listener = x.listener
    if x.readings and not _is_one_rule(x, listener.router):
        x.reply(made(REFUSED, "an origin may read the path as another rule's"))
        return
    plan = listener.router.match(x.host, x.path, x)
    if plan is None:
        plan = _publisher(x, listener)
    if plan is None:
        x.reply(made("RouteNotFound"))
        return
    policies = _policies(plan, listener)
    x.policies = policies
    forward: attempts.Next = attempts.forward
    if x.upgrade or x.method in hops.METHODS:
        if x.method == CONNECT:
            forward = connects.forward
        elif _is_refused(x):
            return
        elif x.method in hops.METHODS:
            forward = hops.forward
    request = policies.chain.request
    if request is not None:
        chain = policies.chain
        if chain.is_long and _is_full(context):
            later(x, context, chain, forward)
            return
        answer = request(x)
        if answer is not None:
            interrupted(x, context, chain, answer, forward)
            return
    forward(x, context)


def _is_full(context: Context) -> bool:
    """Whether this turn of the loop is long already."""
    return context.writes.turns.is_full()


def _policies(plan: RoutePlan, listener: ListenerPlan) -> RoutePolicies:
    """Those of a rule at a listener."""
    if listener.upper is None:
        return plan.policies
    under = plan.policies.under
    assert under is not None  # filled before the swap for each listener that has an upper
    return under[listener.upper.number]


def _publisher(x: ActiveExchange, listener: ListenerPlan) -> RoutePlan | None:
    """The rule for a well-known path that no rule takes: that of the path which it is about, where a policy of it
    publishes OAuth metadata. So a challenge never leads to nothing."""
    resource = well_known.resource_of(x.path)
    if resource is None or x.readings:
        return None
    plan = listener.router.match(x.host, resource, x)
    x.prefix = b"/"  # of the path that was asked for, whichever rule answers
    return plan if plan is not None and _policies(plan, listener).chain.publishes else None


def _is_refused(x: ActiveExchange) -> bool:
    """Whether a TRACE, or a wish for another protocol, was answered: what a route does not allow. An `upgrade` of
    HTTP/1.1 is left out of the request instead, as RFC 9110 7.8 has it."""
    if x.method == b"TRACE" and not x.plan.traces:
        x.reply(made("TraceNotAllowed", headers=hops.ALLOW))  # RFC 9110 15.5.6: what a 405 has to say
        return True
    if x.upgrade:
        left = upgrades.cut(x.upgrade, x.policies.upgrades)
        if not left and x.version == HTTP2:
            x.reply(made("UpgradeNotAllowed", f"to {x.upgrade.decode('latin-1')!r}"))
            return True
        x.upgrade = left
    return False
