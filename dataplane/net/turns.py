"""Work that goes on in the next turn of the loop, because one peer has had its share of this one.

A connection whose bytes would cost more than a small bound keeps what is left, stops reading its socket, and asks for a
turn. Those who ask are served one after the other, for a few milliseconds of computing in each turn, so that however
many they are, what others sent is looked at in between.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

log = logging.getLogger("dataplane.net")

SHARE: Final = 0.005
"""Seconds of the thread's CPU time that those who wait are given in one turn; who is being served ends his piece."""


class Waiting(Protocol):
    def next_turn(self) -> None:
        """Go on, by a bounded piece; ask again when that was not all. Also called when the connection is gone."""


class Turns:
    """One per worker. `call_soon` is the loop's: it runs a function when the present events are handled."""

    __slots__ = ("_call_soon", "_clock", "_is_called", "_waiting")

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], Any], clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._call_soon = call_soon
        self._clock = clock
        self._waiting: deque[Waiting] = deque()
        self._is_called = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        """`waiting` has more to do. Called once by each until its `next_turn`."""
        self._waiting.append(waiting)
        if not self._is_called:
            self._is_called = True
            self._call_soon(self._run)

    def _run(self) -> None:
        waiting, clock = self._waiting, self._clock
        end = clock() + SHARE
        for _ in range(len(waiting)):  # who asks again meanwhile comes in the turn after
            one = waiting.popleft()
            try:
                one.next_turn()
            except Exception as error:  # a bug with one connection must not keep the others waiting
                log.error("%r could not go on", one, exc_info=error)
            if clock() >= end:
                break
        self._is_called = bool(waiting)
        if waiting:
            self._call_soon(self._run)
