"""Hooks that read the request body: run at once when it is there, else when it has come.

Used by the builders of such policies. The body is `Exchange.body`; it stays there after it was sent on.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from dataplane.chain.expressions import ALL, OF_AGENTS
from dataplane.chain.filter import RequestHook
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.http.body import BodyMemoryFull, TooLarge

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.http.body import BodyBuffer


TOO_MANY_BODIES = REPLIES["TooManyBodies"]


SHORT: Final = 2048
"""Bytes of a body that is here at once and takes no time to speak of, whatever reads it: more have the share of a turn
that all work of unknown length has (`net/turns`)."""


def buffering(hook: RequestHook, limit: int, too_large: Reply | None = None, whose: int = ALL) -> RequestHook:
    """`hook` with the whole body in `x.body`. A body over `limit` bytes (`filter.WHOLE`: the listener's limit, which in
    any case may be the smaller one: `HttpRules.may_hold`) is answered with `too_large`, or without one
    left as it is: `x.body` is None then and `request.body` has no value. One that there is no memory for is refused.
    `whose`: as `expressions.reads_request_body` has it."""

    def read(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        buffer = x.buffer
        if buffer is None or x.body is not None or (whose == OF_AGENTS and not x.is_for_agent):
            return hook(x)
        most = x.may_hold(limit)
        if buffer.is_over(most):
            buffer.limit = most
            return hook(x) if too_large is None else too_large
        if not buffer.complete:
            return _later(x, buffer, hook, most, too_large)
        is_long = buffer.size > SHORT
        if is_long and not x.context.turns.has_time():
            return _later(x, buffer, hook, most, too_large)
        try:
            x.body = buffer.keep()
        except BodyMemoryFull:
            return TOO_MANY_BODIES
        answer = hook(x)
        if is_long:
            x.context.turns.has_gone_on(*x.makers())
        return answer

    return read


async def _later(
    x: Exchange, buffer: BodyBuffer, hook: RequestHook, limit: int, too_large: Reply | None
) -> Reply | None:
    try:
        x.body = await buffer.whole(limit)
    except BodyMemoryFull:
        return TOO_MANY_BODIES
    except TooLarge:
        buffer.limit = limit
        if too_large is not None:
            return too_large
    answer = hook(x)
    return answer if answer is None or isinstance(answer, Reply) else await answer
