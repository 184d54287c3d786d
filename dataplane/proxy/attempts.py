"""Sending an exchange upstream: which backend, which endpoint, which connection, and what to do when that fails.

An attempt costs no object of its own: its state is in the exchange, its response goes to whoever carries the exchange.
"""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.http.methods import IDEMPOTENT
from dataplane.proxy import mirrors, outgoing, retries
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.replay import BodyCopy
from dataplane.proxy.responses import TARGET, UPSTREAM
from dataplane.proxy.waiting import interrupted
from dataplane.upstream import balance
from dataplane.upstream.connection import UNSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.response_head import ResponseHead

MAX_STALE_RETRIES = 2


def forward(x: Exchange, context: Context) -> None:
    """Choose a backend by weight, run its own steps, and begin the first attempt."""
    plan = x.plan
    targets = plan.targets
    if len(targets) == 1:
        target = targets[0]
    elif not targets or not plan.weights or not plan.weights[-1]:
        x.down.reply(x, made("NoValidBackend"))
        return
    else:
        target = targets[bisect(plan.weights, int(context.random() * plan.weights[-1]))]
    if not target.backend:
        x.down.reply(x, made("InvalidBackend", target.invalid))
        return
    x.target_plan = target
    request = target.chain.request
    if request is not None:
        x.stage = TARGET
        if x.policies.mirrors:  # what is added for this backend (credentials, it may be) is not for others
            x.copies = mirrors.drawn(x, context)
        answer = request(x)
        if answer is not None:
            interrupted(x, context, target.chain, answer, begin)
            return
    begin(x, context)


def begin(x: Exchange, context: Context, is_held: bool = False) -> None:
    """Start the request deadline and the first attempt. `is_held`: a body that a precondition reads was waited for."""
    x.stage = UPSTREAM
    policies = x.policies
    timeouts, retry = policies.timeouts, policies.retry
    if retry is not None and retry.reads_body and not is_held and x.body is not None and x.held is None:
        context.spawn(retries.hold(x, context, retry.limit, begin))
        return
    if timeouts.request is not None:
        x.deadline = context.clock() + timeouts.request
        x.down.arm(x.deadline)
    if retry is None and not policies.mirrors:
        attempt(x, context)
    else:
        _begin_kept(x, context)


def _begin_kept(x: Exchange, context: Context) -> None:
    """The first attempt of a request of which something is kept: for another try, for mirrors."""
    policy = x.policies.retry
    if policy is not None:
        x.retries = retries.granted(x, policy)
        x.request.remove(outgoing.RETRY_HEADER)  # a client's own must not pass for ours
    copies = None
    if x.policies.mirrors:
        copies = mirrors.drawn(x, context) if x.target_plan.chain.request is None else x.copies
    if x.has_body and (x.retries is not None or copies is not None):
        limit = policy.limit if x.retries is not None else x.policies.mirrors[0].limit
        x.copy = BodyCopy(limit, context.room, outgoing.length(x), copies, x.retries is not None)
    attempt(x, context)
    if copies is not None and not x.has_body:
        copies.send(b"")


def attempt(x: Exchange, context: Context) -> None:
    """One try: pick an endpoint, send on an idle connection, or open one and send then."""
    backend = x.table.backends.get(x.target_plan.backend)
    if backend is None:
        x.down.reply(x, made("InvalidBackend", x.target_plan.backend))
        return
    x.backend_plan = backend
    seconds = x.policies.timeouts.backend_request
    if seconds is not None and x.attempt_deadline == NEVER:  # else it goes on: the name is known now
        _limit(x, context, seconds)
    endpoints = backend.endpoints
    if backend.host:
        number = x.attempt
        endpoints = context.resolver.endpoints(backend.host, backend.port, lambda: _resolved(x, context, number))
        if endpoints is None:
            return
    if not endpoints:
        if backend.host:
            failed(x, context, "dns", made("DnsFailed"), sent=False)
        else:
            x.down.reply(x, made("NoEndpoints"))
        return
    if x.retries is not None:
        endpoint = x.endpoint = x.retries.pick(endpoints, context.random)
    else:
        endpoint = x.endpoint = endpoints[0] if len(endpoints) == 1 else balance.choose(endpoints, context.random)
    endpoint.pending += 1
    x.trying = True
    idle = endpoint.idle
    if idle:
        send(x, idle.pop())
    else:
        connect(x, context, send)


def connect(x: Exchange, context: Context, use: Callable[[Exchange, UpstreamConnection], None]) -> None:
    """Open a connection to the chosen endpoint, for `use` to send on."""
    number = x.attempt

    def done(connection: UpstreamConnection | None, cause: str) -> None:
        if x.ended or x.replied or x.attempt != number:  # nobody waits for it any more
            if connection is not None:
                connection.park()
        elif connection is None:
            settle(x)
            failed(x, context, "connect", made("ConnectFailed", cause), sent=False)
        else:
            use(x, connection)

    context.connector.connect(x.endpoint, done)


def send(x: Exchange, connection: UpstreamConnection) -> None:
    """Write the head, and what there is of the body, in one go."""
    down = x.down
    x.up = connection
    connection.request_done = down.request_done
    block, mode, kept = x.request.block, x.policies.host_rewrite, x.retries
    if (x.backend_plan.host if mode is None else mode) or (kept is not None and kept.tries):
        block = outgoing.block(x, x.backend_plan, 0 if kept is None else kept.tries)
    body = down.take_body(x) if x.has_body else b""
    head = b"".join((x.method, b" ", x.target, b" HTTP/1.1", block, b"\r\n", body))
    x.out = head if down.request_done and len(head) <= MAX_REPLAY else b""
    connection.begin(down, head, x.method == b"HEAD")


MAX_REPLAY = 65_536
"""Bytes of a request kept for the case that the idle connection it was sent on turns out to be closed."""


def lost(x: Exchange, context: Context, cause: str, stale: bool) -> None:
    """The connection of an exchange without a response head was lost: try again where that is safe, or answer."""
    settle(x)
    x.up = None
    safe = x.method in IDEMPOTENT or cause == UNSENT
    resent = x.attempt if x.retries is None else x.attempt - x.retries.tries
    if stale and x.out and safe and resent < MAX_STALE_RETRIES:
        x.attempt += 1
        context.recorder.stale_retry()
        resend(x, context)
    elif cause in ("reset", "closed", UNSENT):
        reply = made("UpstreamFailed", f"{x.endpoint.label}: connection {cause}")
        failed(x, context, "reset", reply, sent=cause != UNSENT)
    else:
        failed(x, context, "invalid", made("UpstreamInvalid", f"{x.endpoint.label}: {cause}"), sent=True)


def timed_out(x: Exchange, context: Context) -> None:
    """The deadline of an attempt passed before its response head came."""
    settle(x)
    up, x.up = x.up, None
    if up is not None:
        up.release()
    failed(x, context, "timeout", made("UpstreamTimeout"), sent=up is not None)


def failed(x: Exchange, context: Context, cause: str, reply: Reply, sent: bool) -> None:
    """An attempt ended without a response head: another try where a policy grants one, else `reply`."""
    x.attempt_deadline = NEVER
    if x.retries is None:
        x.down.reply(x, reply)
    else:
        retries.after_failure(x, context, cause, reply, sent, attempt)


def refuses(x: Exchange, context: Context, up: UpstreamConnection, head: ResponseHead) -> bool:
    """Whether the response with this head is let go because the request is tried again."""
    return retries.refuses(x, context, up, head, attempt)


def refuses_body(x: Exchange, context: Context) -> bool:
    """The same for a response that `refuses` left undecided, with its body held (`x.answer_body`)."""
    return retries.refuses_body(x, context, attempt)


def resend(x: Exchange, context: Context) -> None:
    """The same bytes again, on a new connection: another idle one may be just as stale."""
    x.endpoint.pending += 1
    x.trying = True
    seconds = x.policies.timeouts.backend_request
    if seconds is not None:
        _limit(x, context, seconds)
    connect(x, context, _send_again)


def _send_again(x: Exchange, connection: UpstreamConnection) -> None:
    x.up = connection
    connection.begin(x.down, x.out, x.method == b"HEAD")


def _limit(x: Exchange, context: Context, seconds: float) -> None:
    """Give the attempt that begins now its deadline."""
    x.attempt_deadline = context.clock() + seconds
    x.down.arm(x.attempt_deadline)


def settle(x: Exchange) -> None:
    """An attempt is over: the endpoint has one request less in flight, the attempt no deadline."""
    if not x.trying:
        return
    x.trying = False
    x.endpoint.pending -= 1
    x.attempt_deadline = NEVER


def _resolved(x: Exchange, context: Context, number: int) -> None:
    if not x.ended and not x.replied and x.up is None and x.attempt == number:
        attempt(x, context)
