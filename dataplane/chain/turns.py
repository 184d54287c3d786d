"""Long work in turns of the loop: it looks at its CPU time, and lets others go on between."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Protocol

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
