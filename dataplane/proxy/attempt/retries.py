"""Another try: whether a request gets one, when, and on which endpoint (`retry` of a route's rule or a GatewayPolicy).

`proxy/attempt/attempts` asks when an attempt failed or a response head came; it sends, this decides. A request without
a retry policy never comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.http.body import BodyMemoryFull, TooLarge
from dataplane.http.heads import Head
from dataplane.http.methods import IDEMPOTENT
from dataplane.http.statuses import SWITCHING
from dataplane.proxy.attempt.tries import EXHAUSTED, Retries
from dataplane.proxy.request import request_body

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.plans import Retry

FAILURES = frozenset(("connect", "dns", "reset", "timeout"))
"""Causes that are tried again whatever `codes` says; others only when their status is a code."""

DRAIN_TIME = 1.0
"""Seconds that the rest of an unwanted response is read, so that its connection can be used again."""

Attempt = Callable[["ActiveExchange", "Context"], None]


def granted(x: ActiveExchange, policy: Retry) -> Retries | None:
    """Asked before the first try. None: one try, and no body is kept."""
    if not policy.attempts or (policy.precondition is not None and not policy.precondition(x)):
        return None
    return Retries(policy)


def after_failure(x: ActiveExchange, context: Context, cause: str, reply: Reply, sent: bool, attempt: Attempt) -> None:
    """An attempt ended without a response: try again, or answer with `reply`.

    `sent`: the endpoint may have seen the request. `cause`: one of `FAILURES`, or `invalid`.
    """
    retries = x.retries
    assert retries is not None  # the callers have looked
    safe = cause in FAILURES and (not sent or x.method in IDEMPOTENT)
    wanted = (safe or reply.status in retries.policy.codes) and not retries.decided
    if wanted and _again(x, context, cause, attempt):
        return
    if cause == "reset" and retries.given_up == EXHAUSTED:
        reply = made("RetriesExhausted", reply.detail)
    x.reply(reply)


def refuses(x: ActiveExchange, context: Context, head: ResponseHead, attempt: Attempt) -> bool:
    """Whether another try takes the place of this response. If so, it is let go, without anybody waiting for it.

    A condition that reads the body leaves the response undecided (`Retries.decided`): `refuses_body` is asked later.
    """
    assert x.retries is not None  # the caller has looked
    policy, up = x.retries.policy, x.up
    listed = head.status in policy.codes
    if not listed and policy.condition is None:  # most responses
        _accept(x)
        return False
    if not listed and policy.judges_body and head.status != SWITCHING:
        return False
    if (listed or _is_true(x, head)) and _again(x, context, "status", attempt, head.status):
        if up is not None:  # the response goes on
            sleeper = up.discard()
            if sleeper is not None:
                context.deadlines.wake_at(context.clock() + DRAIN_TIME, sleeper)
        return True
    _accept(x)
    return False


def refuses_body(x: ActiveExchange, context: Context, attempt: Attempt) -> bool:
    """The same for a response whose body is in `x.response_body` (None: it could not be). `x.up`: it is not over."""
    assert x.retries is not None  # the caller has looked
    up, condition = x.up, x.retries.policy.condition
    if condition is not None and condition(x) and _again(x, context, "status", attempt, x.status):
        if up is not None:
            up.reset()
        return True
    _accept(x)
    return False


def _accept(x: ActiveExchange) -> None:
    """The client gets this response: there is no other try, and nothing is kept for one."""
    assert x.retries is not None  # the callers have looked
    x.retries.decided = True
    if x.body_copy is not None:
        x.body_copy.no_more_tries()


def ended(x: ActiveExchange, context: Context) -> None:
    """The exchange is over: count what its tries came to."""
    retries = x.retries
    assert retries is not None  # the callers have looked
    if retries.given_up:
        context.recorder.retried(x, retries.given_up)
    elif retries.tries:
        context.recorder.retried(x, _OUTCOMES.get(x.reason, "abandoned") if x.status else "abandoned")


_OUTCOMES = {"": "success", "RequestDeadline": "deadline"}
"""By the reason of our answer; "" is a response of the endpoint."""


def _is_true(x: ActiveExchange, head: ResponseHead) -> bool:
    """The policy's condition on this response."""
    assert x.retries is not None  # the caller has looked
    condition = x.retries.policy.condition
    if condition is None or head.status == SWITCHING:  # nothing judges a tunnel
        return False
    x.status, x.response = head.status, Head(head.block, head.low)
    holds: bool = condition(x)
    x.status, x.response = 0, None
    return holds


def _again(x: ActiveExchange, context: Context, cause: str, attempt: Attempt, status: int = 0) -> bool:
    """Begin another try after its backoff. False: there is none. `status`: of the response that is let go."""
    retries = x.retries
    assert retries is not None  # the callers have looked
    wait = retries.wait(context.random)
    moment = context.clock() + wait
    retries.given_up = _obstacle(x, retries, moment)
    if retries.given_up:
        return False
    if x.trace is not None:
        x.trace.try_ends(context.clock(), "" if x.endpoint is None else x.endpoint.label, status, "")
    retries.tries += 1
    x.attempt += 1
    x.up = x.resendable = None
    x.status, x.response = 0, None  # of the response that is let go
    x.response_body, x.response_body_too_large = None, False
    request_body.keep(x)
    context.recorder.retry(cause)

    def begin() -> None:
        if x.ended or x.replied:
            return
        try:
            attempt(x, context)
        except Exception as error:  # a bug in Gatewright must end in an answer
            x.failed(error)

    context.deadlines.call_at(moment, begin)
    return True


def _obstacle(x: ActiveExchange, retries: Retries, moment: float) -> str:
    """Why there is no try at `moment`, or ""."""
    if retries.tries >= retries.policy.attempts:
        return EXHAUSTED
    if x.body_copy is not None and x.body_copy.too_large:
        return "too_large"
    if moment >= x.deadline:
        return "deadline"
    if x.counted is not None and not retries.is_counted:
        retries.is_counted = x.counted.retry()
        if not retries.is_counted:
            x.context.recorder.backend_limited(x.backend_plan.key, "retryBudget")
            return "budget"
    return ""


async def read_body(x: ActiveExchange, limit: int) -> None:
    """Wait for the body that a precondition reads; one over `limit`, or without memory for it, has no value."""
    try:
        x.body = await x.buffer.whole(limit)  # type: ignore[union-attr]  # the caller has looked
    except (TooLarge, BodyMemoryFull):
        x.body = None
