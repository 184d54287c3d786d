"""The steps of a backend (`BackendPlan.steps`: `backend.extAuth`, then `backend.transformation`), on each try before
its kind. Their response steps are the innermost (`steps/response_steps`).

They edit the request itself, as those of a route do, and each try begins with what the route left: where there may be
another one, that is kept. Content that they read or replace is held whole then, and copies for mirrors have it as the
route left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.http.body import BodyMemoryFull, TooLarge
from dataplane.http.rules import WHOLE_BODY
from dataplane.proxy.attempt.as_routed import AsRouted
from dataplane.proxy.request import request_body
from dataplane.proxy.steps.response_steps import BACKEND
from dataplane.proxy.steps.waiting import Steps, interrupted

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.chain.reply import Reply
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context

    Next = Callable[[ActiveExchange, Context], None]


def run(x: ActiveExchange, context: Context, then: Next) -> None:
    """Run the steps of `x.backend_plan` on the try that begins; then `then`, or the answer that one of them gives."""
    steps, retries = x.backend_plan.steps, x.retries
    assert steps is not None  # the caller has looked
    if retries is not None and retries.tries:
        had_body = x.has_body
        x.as_routed.restore(x)
        if had_body and not x.has_body:
            request_body.unclaim(x)  # what a step made
        if steps.takes_body:
            x.as_routed.restore_content(x, x.pace, x.body_copy)
    elif x.body_copy is not None and steps.takes_body and x.body is None:
        Steps(x, _held(x), lambda x, context: _enter(x, context, then)).begin()
        return
    _enter(x, context, then)


def _enter(x: ActiveExchange, context: Context, then: Next) -> None:
    steps, retries = x.backend_plan.steps, x.retries
    assert steps is not None  # as above
    copy = x.body_copy
    if copy is not None and steps.takes_body and x.body is not None:
        copy.body_read(x.body)
    if retries is not None and not retries.tries:
        x.as_routed = AsRouted(x)
    x.stage = BACKEND
    answer = None if steps.request is None else steps.request(x)
    if answer is None:
        then(x, context)
    else:
        interrupted(x, context, steps, answer, then)


async def _held(x: ActiveExchange) -> Reply | None:
    """Wait for all content, of which steps may make other. Where there is too much of it there is no other try."""
    if x.buffer is None:
        return None
    try:
        x.body = await x.buffer.whole(x.may_hold(WHOLE_BODY))
    except TooLarge:
        if x.body_copy is not None:
            x.body_copy.give_up()
    except BodyMemoryFull:
        return made("TooManyBodies")
    return None
