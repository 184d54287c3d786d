"""Hooks that read the request body: run at once when it is there, else when it has come.

Used by the builders of such policies. What is held is `Exchange.held`; it stays there after the body was sent on.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from dataplane.chain.filter import RequestHook
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.http.body import NoRoom, TooLarge

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.http.body import Body


NO_ROOM = REPLIES["TooManyBodies"]


def holding(hook: RequestHook, limit: int, too_large: Reply | None = None) -> RequestHook:
    """`hook` with the whole body in `x.held`. A body over `limit` bytes is answered with `too_large`, or without one
    left as it is: `x.held` is None then and `request.body` has no value. One that there is no room for is refused."""

    def hold(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        body = x.body
        if body is None or x.held is not None:
            return hook(x)
        if body.is_over(limit):
            body.limit = limit
            return hook(x) if too_large is None else too_large
        if body.complete:
            try:
                x.held = body.keep()
            except NoRoom:
                return NO_ROOM
            return hook(x)
        return _later(x, body, hook, limit, too_large)

    return hold


async def _later(x: Exchange, body: Body, hook: RequestHook, limit: int, too_large: Reply | None) -> Reply | None:
    try:
        x.held = await body.whole(limit)
    except NoRoom:
        return NO_ROOM
    except TooLarge:
        body.limit = limit
        if too_large is not None:
            return too_large
    answer = hook(x)
    return answer if answer is None or isinstance(answer, Reply) else await answer
