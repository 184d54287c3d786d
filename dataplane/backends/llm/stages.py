"""A request to LLM providers is served in stages, between which others on the same worker have their turn.

A stage is what a generator does until it yields. Of a small request, as most are, all of them are done at once. Those
of a large one share the turns of the loop with all other work of unknown length (`net/turns`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dataplane.chain.reply import Reply
from dataplane.llm.body import Malformed
from dataplane.llm.pieces import PIECE
from gatewright.turns import at_once

if TYPE_CHECKING:
    from dataplane.backends.llm.visit import Visit
    from dataplane.backends.terminating.contract import Served
    from dataplane.llm.pieces import Steps


def served(visit: Visit, stages: Steps[Served]) -> Served:
    """What they come to, or what awaits it. Raises `Malformed`."""
    return staged(visit, stages) if is_large(len(visit.tries.body)) else at_once(stages)


def is_large(size: int) -> bool:
    """Whether a body of `size` bytes is served in stages: it is decoded in more than one piece."""
    return size > PIECE


async def staged(visit: Visit, stages: Steps[Served]) -> Reply | None:
    """A body that is `Malformed` is answered."""
    try:
        found = await _done(visit, stages)
    except Malformed as error:
        return visit.refused("LlmBadRequest", str(error), error.field)
    return found if found is None or isinstance(found, Reply) else await found


async def _done(visit: Visit, stages: Steps[Served]) -> Served:
    turns, tries, pauses = visit.x.context.turns, visit.tries, is_large(len(visit.tries.body))
    while True:
        tries.is_staged = True
        try:
            next(stages)
        except StopIteration as end:
            found: Served = end.value
            return found
        finally:
            tries.is_staged = False
        if pauses and not turns.has_time():
            await asyncio.sleep(0)  # until a turn has time again (`proxy/steps/waiting`)
