"""Which workers a commit waits for. Pure; `agent/workers` waits, writes it down and wakes the workers.

A state is sent to all workers, prepared by each, and committed when none that may be asked for an answer is behind:
from then on (`link/commits`) no request meets the state before. So a commit waits for the workers that have
sockets, except those that are ending and those that are late: a worker without a sign of life (stopped, or held by
something that never ends) may keep the others from a state once, for a bounded time; after that it is waited for again
when it has caught up. A new worker gets its sockets when it has prepared the newest state, and is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Life(Protocol):
    """What is known of a worker (`WorkerProcess`)."""

    prepared: int
    accepts: bool
    is_late: bool
    is_condemned: bool


L = TypeVar("L", bound=Life)


def awaited(lives: Iterable[L], number: int) -> list[L]:
    """The workers without which the state with this number is not committed yet."""
    return [life for life in accepting(lives) if life.prepared < number and not (life.is_late or life.is_condemned)]


def accepting(lives: Iterable[L]) -> list[L]:
    """Those whose sockets are theirs already."""
    return [life for life in lives if life.accepts]
