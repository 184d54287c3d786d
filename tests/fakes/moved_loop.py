"""An event loop with a time of its own: nothing waits for a timer, sockets are real.

    @moved
    async def test_patience(tmp_path: Path) -> None:
        await asyncio.sleep(3600)  # takes no time

When no callback is ready and no descriptor is, the loop's time moves to the next timer. So `asyncio.sleep`,
`asyncio.timeout`, `call_later` and whatever reads `loop.time()` go by a time that only this loop moves. What two ends
on this loop say to each other over a socket is there as soon as it is sent, so it comes before any timer.
What other threads do takes real time: while work is under way in one (`asyncio.to_thread`), nothing is moved.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")

START = 1000.0
"""Small: asyncio adds a nanosecond to see whether a timer is due, which a large float would not notice."""

MANY = 200_000
"""Moves of the time after which something goes on for ever."""


class _Selector(selectors.EpollSelector):
    """Never waits for a timer; `move` is called with the seconds that would have been waited."""

    def __init__(self) -> None:
        super().__init__()
        self.move: Callable[[float], None] = _nowhere
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if self.threads or timeout is None:
            return super().select(None)  # another thread, a process or a signal goes on from here
        self.move(max(timeout, 0.0))
        return []


class MovedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = START
        self._moves = 0
        self._own_selector = _Selector()
        self._own_selector.move = self.move
        super().__init__(self._own_selector)

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        self._own_selector.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self._own_selector.threads -= 1

    def move(self, seconds: float) -> None:
        self._moves += 1
        if self._moves > MANY:
            raise RuntimeError("this goes on for ever")
        self._now += seconds


def moved(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that runs on a `MovedLoop`. Whatever task it leaves behind is a failure."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=MovedLoop) as runner:
            runner.run(_leaving_nothing(test(*args, **kwargs)))

    return run


async def _leaving_nothing(test: Coroutine[Any, Any, None]) -> None:
    await test
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"left behind: {left}"


def _nowhere(_seconds: float) -> None:
    """Before the loop is made there is no time."""
