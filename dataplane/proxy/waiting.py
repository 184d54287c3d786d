"""When a request step answers something: what `entry` (steps of listener and route) and `attempts` (steps of a backend
reference) do alike. The fast path never comes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.chain import Chain, Waiting, drive
from dataplane.chain.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.exchange import Exchange
    from dataplane.proxy.context import Context


def interrupted(
    x: Exchange, context: Context, chain: Chain, answer: Reply | Waiting, then: Callable[[Exchange, Context], None]
) -> None:
    """A chain answered something. `then`: where the fast path goes on after its last step."""
    if isinstance(answer, Reply):
        x.down.reply(x, answer)
    else:
        x.down.waiting = context.spawn(_wait(x, context, chain, answer, then))


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
