"""Sending an exchange upstream: which backend, which endpoint, which connection, and what to do when that fails.

An attempt costs no object of its own: its state is in the exchange, its response goes to the carrier of the exchange.
"""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING

from dataplane.carriers import REFUSED, UNSENT
from dataplane.chain.replies import made
from dataplane.http.rules import WHOLE_BODY
from dataplane.proxy import grpc_calls
from dataplane.proxy.attempt import backend_steps, mirrors, outgoing, retries
from dataplane.proxy.attempt.replay import BodyCopy
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.layers import registry as layers
from dataplane.proxy.request import request_body
from dataplane.proxy.steps.response_steps import TARGET, UPSTREAM
from dataplane.proxy.steps.waiting import Steps, interrupted
from dataplane.table.plans import GRPC_ROUTE
from dataplane.upstream import lease, persistence
from dataplane.upstream.opening import cause_of
from dataplane.upstream.outgoing import RETRY_HEADER
from dataplane.upstream.settings import NO_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.carriers import Upstream
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.plans import BackendPlan

    Next = Callable[[ActiveExchange, Context], None]


def forward(x: ActiveExchange, context: Context, then: Next | None = None) -> None:
    """Choose a backend by weight, run its own steps, and begin the first attempt. `then`: in place of `begin`."""
    plan = x.plan
    targets = plan.targets
    if len(targets) == 1:
        target = targets[0]
    elif not targets or not plan.weights or not plan.weights[-1]:
        x.reply(made("NoValidBackend"))
        return
    else:
        target = targets[bisect(plan.weights, int(context.random() * plan.weights[-1]))]
    if not target.backend:
        x.reply(made("InvalidBackend", target.invalid))
        return
    x.target_plan = target
    request = target.chain.request
    if request is not None:
        x.stage = TARGET
        if x.policies.mirrors:  # what is added for this backend (credentials, it may be) is not for others
            x.mirroring = mirrors.drawn(x, context)
        answer = request(x)
        if answer is not None:
            interrupted(x, context, target.chain, answer, then or begin)
            return
    (then or begin)(x, context)


def begin(x: ActiveExchange, context: Context, has_waited: bool = False) -> None:
    """Start the request deadline and the first attempt. `has_waited`: for a body that a precondition reads."""
    x.stage = UPSTREAM
    policies = x.policies
    timeouts, retry = policies.timeouts, policies.retry
    if retry is not None and retry.reads_body and not has_waited and x.buffer is not None and x.body is None:
        Steps(x, retries.read_body(x, x.may_hold(WHOLE_BODY)), _begin_with_body).begin()
        return
    seconds = timeouts.request
    if seconds is not None and x.plan.kind == GRPC_ROUTE:
        seconds = None  # Timeouts: HTTPRoutes only
    if x.grpc is not None and b"grpc-timeout" in x.request.low:
        seconds = grpc_calls.seconds(x, seconds)
    if seconds is not None:
        x.deadline = context.clock() + seconds
        x.down.arm(x.deadline)
    if retry is None and not policies.mirrors:
        attempt(x, context)
    else:
        _begin_kept(x, context)


def _begin_with_body(x: ActiveExchange, context: Context) -> None:
    begin(x, context, True)


def _begin_kept(x: ActiveExchange, context: Context) -> None:
    """The first attempt of a request of which something is kept: for another try, for mirrors."""
    policy = x.policies.retry
    if policy is not None:
        x.retries = retries.granted(x, policy)
        x.request.remove(RETRY_HEADER)  # a client's own must not pass for the gateway's
    copies = None
    if x.policies.mirrors:
        copies = mirrors.drawn(x, context) if x.target_plan.chain.request is None else x.mirroring
    if x.has_body and (x.retries is not None or copies is not None):
        x.body_copy = BodyCopy(
            x.may_hold(WHOLE_BODY), context.body_memory, x.peer, x.length, copies, x.retries is not None
        )
        x.body_copy.trailers = request_body.passing_trailers(x)
    had_body = x.has_body  # steps of the backend may make one
    attempt(x, context)
    if copies is not None and not had_body:
        copies.send(b"")


def attempt(x: ActiveExchange, context: Context) -> None:
    """One try: run the steps of the backend, get a carrier of its kind, and send on it."""
    backend = x.table.backends.get(x.target_plan.backend)
    if backend is None:
        x.reply(made("InvalidBackend", x.target_plan.backend))
        return
    policies, version = x.policies, x.plan.http_version
    if policies.backend is not NO_SETTINGS or policies.rules is not None or version:
        backend = backend.beneath(policies.backend, policies.rules, version)
    x.backend_plan = backend
    if backend.steps is not None:
        backend_steps.run(x, context, _finish)
    elif backend.application or backend.finishers is not None:
        _finish(x, context)
    else:  # as `_lease`: most requests
        if policies.timeouts.backend_request is not None or backend.request_timeout is not None:
            limit(x, context)
        leases = context.leases
        leases.backends[backend.kind].begin(x, backend, leases)


def _finish(x: ActiveExchange, context: Context) -> None:
    """The steps of the backend have run: its finishers follow."""
    backend = x.backend_plan
    if backend.application:
        refused = layers.refusal(x)
        if refused is not None:
            x.reply(refused)
            return
    if backend.finishers is not None:
        outgoing.finish(x, context, _lease)
    else:
        _lease(x, context)


def _lease(x: ActiveExchange, context: Context) -> None:
    if x.policies.timeouts.backend_request is not None or x.backend_plan.request_timeout is not None:
        limit(x, context)
    context.leases.begin(x, x.backend_plan)


def toward(x: ActiveExchange, plan: BackendPlan) -> None:
    """The backend of this try was for no destination yet, and has found it: its finishers and its lease are those of
    that plan."""
    x.backend_plan = plan
    if plan.finishers is not None:
        outgoing.finish(x, x.context, _toward)
    else:
        _toward(x, x.context)


def _toward(x: ActiveExchange, context: Context) -> None:
    context.leases.begin(x, x.backend_plan)


def send(x: ActiveExchange, up: Upstream) -> None:
    """As `upstream.endpoint.Lease.lease_ready`: send the head, and what there is of the body, in one go."""
    plan = x.backend_plan
    if plan.application or x.grpc is not None or plan.finishers is not None:
        up = layers.over(x, up)
    if not x.has_body:
        x.resendable = b""
        mode = x.policies.host_rewrite
        is_plain = x.retries is None and plan.finishers is None and x.trace is None
        if is_plain and not (plan.renames if mode is None else mode):
            # as in `_block`: most requests
            up.begin(x, x.request.block, b"", True)
        else:
            up.begin(x, _block(x), b"", True)
        return
    data, done = request_body.take(x)
    x.resendable = data if x.request_done and len(data) <= MAX_REPLAY else None
    _send_content(x, up, data, done)


def send_again(x: ActiveExchange, up: Upstream) -> None:
    """As `upstream.endpoint.Lease.lease_again`."""
    assert x.resendable is not None  # else it would not be sent again
    if x.backend_plan.application or x.grpc is not None or x.backend_plan.finishers is not None:
        up = layers.over(x, up)
    if x.has_body:
        _send_content(x, up, x.resendable, True)
    else:
        up.begin(x, _block(x), b"", True)


def _send_content(x: ActiveExchange, up: Upstream, data: bytes, done: bool) -> None:
    trailers = request_body.passing_trailers(x) if done and x.trailers else b""
    up.begin(x, _block(x), data, done and not trailers)
    if trailers:
        up.trailers(trailers)


def _block(x: ActiveExchange) -> bytes:
    """The header lines to send."""
    mode, kept, plan = x.policies.host_rewrite, x.retries, x.backend_plan
    if plan.finishers is not None:
        return x.outgoing.head.block
    if (plan.renames if mode is None else mode) or x.trace is not None or (kept is not None and kept.tries):
        return outgoing.lines(x, plan, 0 if kept is None else kept.tries)
    return x.request.block


MAX_REPLAY = 65_536
"""Bytes of content kept for the case that the idle connection it was sent on turns out to be closed."""


def no_carrier(x: ActiveExchange, cause: str, detail: str) -> None:
    """As `upstream.endpoint.Lease.lease_failed`."""
    if cause == "endpoints":
        x.reply(made("NoEndpoints"))
    elif cause == "refused":
        x.reply(made("BackendRefused", detail))
    elif cause == "forbidden":
        x.reply(made("DestinationRefused", detail))
    elif cause == "limit":
        x.reply(made("BackendBusy", detail, b"retry-after: 1\r\n"))
    elif cause == "dns":
        _failed(x, "dns", made("DnsFailed", detail), sent=False)
    else:
        plan = x.backend_plan
        detail = f"{plan.host.decode('latin-1')}:{plan.port}: {detail}" if plan.host else detail
        _failed(x, "connect", made("TunnelFailed" if cause == "tunnel" else "ConnectFailed", detail), sent=False)


def lost(x: ActiveExchange, cause: str, stale: bool) -> None:
    """The connection of an exchange without a response head was lost: try again where that is safe, or answer."""
    context = x.context
    tries = 0 if x.retries is None else x.retries.tries
    if context.leases.lost(x, x.backend_plan, cause, stale, x.resendable is not None, tries):
        if x.policies.timeouts.backend_request is not None or x.backend_plan.request_timeout is not None:
            limit(x, context)
    elif cause in ("reset", "closed", UNSENT, REFUSED):
        reply = made("UpstreamFailed", f"{_label(x)}: connection {cause}")
        _failed(x, "reset", reply, sent=cause not in (UNSENT, REFUSED))
    elif cause_of(cause) == "tunnel":
        _failed(x, "connect", made("TunnelFailed", f"{_label(x)}: {cause}"), sent=False)
    else:
        _failed(x, "invalid", made("UpstreamInvalid", f"{_label(x)}: {cause}"), sent=True)


def _label(x: ActiveExchange) -> str:
    return "-" if x.endpoint is None else x.endpoint.label


def timed_out(x: ActiveExchange) -> None:
    """The deadline of an attempt passed before its response head came."""
    sent = x.up is not None
    lease.release(x)
    _failed(x, "timeout", made("UpstreamTimeout"), sent=sent)


def _failed(x: ActiveExchange, cause: str, reply: Reply, sent: bool) -> None:
    """An attempt ended without a response head: another try where a policy grants one, else `reply`."""
    x.attempt_deadline = NEVER
    if x.trace is not None:
        x.trace.try_ends(x.context.clock(), "" if x.endpoint is None else x.endpoint.label, 0, cause)
    if cause != "dns":
        x.context.leases.failed(x.backend_plan, x.endpoint)
    if x.retries is None:
        if sent or x.backend_plan.steps is not None or not persistence.moves_on(x):
            x.reply(reply)
        else:  # a session does not end with its endpoint
            x.attempt += 1
            attempt(x, x.context)
    else:
        retries.after_failure(x, x.context, cause, reply, sent, attempt)


def refuses(x: ActiveExchange, head: ResponseHead) -> bool:
    """Whether the response with this head is let go because the request is tried again."""
    return retries.refuses(x, x.context, head, attempt)


def refuses_body(x: ActiveExchange) -> bool:
    """The same for a response that `refuses` left undecided, with its body (`x.response_body`)."""
    return retries.refuses_body(x, x.context, attempt)


def limit(x: ActiveExchange, context: Context) -> None:
    """Give the attempt that begins now its deadline: the backend's `http.requestTimeout`, or the rule's
    `backendRequest`, which is a HTTPRoute's (Timeouts), whichever is shorter."""
    seconds, own = x.policies.timeouts.backend_request, x.backend_plan.request_timeout
    if seconds is None or x.plan.kind == GRPC_ROUTE:
        seconds = own
    elif own is not None:
        seconds = min(seconds, own)
    if seconds is None:
        return
    x.attempt_deadline = context.clock() + seconds
    x.down.arm(x.attempt_deadline)
