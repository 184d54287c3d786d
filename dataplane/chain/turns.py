"""Long work in turns of the loop: it looks at its CPU time, and lets others go on between."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

AT_A_TIME: Final = 0.002
"""Seconds of CPU time of one turn: others go on after it."""


class _NextTurn:
    """Awaited: others go on. It needs no event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


NEXT_TURN: Final = _NextTurn()


class Turns(Protocol):
    """Of a worker's loop (`net/turns`), for what takes unknown time."""

    def has_time(self) -> bool: ...

    def has_gone_on(self, *sources: str) -> None: ...

    def add(self, waiting: Any, source: str = "", /) -> None: ...  # Any: what has `next_turn`


async def with_pauses(work: Generator[None, None, T]) -> T:
    """Do it, and let others go on where it has taken `AT_A_TIME`. Answers and raises what it does."""
    began = time.thread_time()
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found
        if time.thread_time() - began > AT_A_TIME:
            await NEXT_TURN
            began = time.thread_time()
