"""An event loop whose clock is moved by hand: nothing waits, nothing is late, the same history runs the same way.

`World` drives it: `turns` lets every ready callback run a number of times, `rest` moves the clock from timer to timer.
Between two turns of the loop everything stands still, so an operation of a test falls between any two steps of the
product. `processes` tells whose task is running, so that a process can be killed: its tasks end, its timers are void.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, ContextVar
from typing import Any
from unittest import mock

START = 1000.0
"""Small: asyncio adds a nanosecond to see whether a timer is due, which a float of today's date does not notice."""


class Process:
    """What a real process would be: tasks that end together. `tidy` closes what the kernel would close."""

    def __init__(self, name: str, tidy: Callable[[], None] = lambda: None) -> None:
        self.name, self.tidy = name, tidy
        self.tasks: set[asyncio.Task[Any]] = set()
        self.is_dead = False

    def kill(self) -> None:
        self.is_dead = True
        self.tidy()
        for task in list(self.tasks):
            task.cancel()

    def __repr__(self) -> str:
        return self.name


MANY = 20_000
"""Turns of the loop without a move of the clock, after which something goes on for ever."""

RUNNING: ContextVar[Process | None] = ContextVar("running process", default=None)


class _Selector(selectors.PollSelector):
    """Looks and never waits; says when a turn begins, and when there is nothing to do at this time of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.on_turn: Callable[[], None] = _nothing
        self.on_idle: Callable[[], None] = _nothing
        self.left = 0

    def select(self, timeout: float | None = None) -> Any:
        self.left -= 1
        if not self.left:
            raise RuntimeError("this goes on for ever")
        self.on_turn()
        found = super().select(0)
        if not found and timeout != 0:
            self.on_idle()
        return found


class HandLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = START
        self._selector_of_ours = _Selector()
        self._due: list[float] = []
        super().__init__(self._selector_of_ours)
        self.set_task_factory(_task)
        self.set_exception_handler(self._failed)
        self.failures: list[dict[str, Any]] = []
        """What tasks raised that nobody waited for."""

    def time(self) -> float:
        return self.now

    def each_turn(self, look: Callable[[], None]) -> None:
        """Call `look`, which must not raise, before each turn."""
        self._selector_of_ours.on_turn = look

    def call_at(  # type: ignore[override]  # the types of a callback's arguments are its caller's business
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        heapq.heappush(self._due, when)
        return super().call_at(when, callback, *args, context=context)

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]  # as above
        """Signals belong to the process that runs the tests."""

    def start(self, process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something as that process."""
        return self.run_until_complete(_started(process, coroutine))

    def turns(self, count: int) -> None:
        self._selector_of_ours.left = MANY
        self.run_until_complete(_turns(count))

    def until_idle(self) -> None:
        """Until nothing is left to do at this time."""
        self._selector_of_ours.left = MANY
        self.run_until_complete(self._idle())

    def rest(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        end = self.now + seconds
        self.until_idle()
        while self._due and self._due[0] <= end:
            self.now = max(self.now, heapq.heappop(self._due))
            self.until_idle()
        self.now = end

    async def _idle(self) -> None:
        idle = self.create_future()
        self._selector_of_ours.on_idle = lambda: None if idle.done() else idle.set_result(None)
        await idle

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(context)


def _nothing() -> None:
    pass


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _started(process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    token = RUNNING.set(process)
    try:
        return asyncio.get_running_loop().create_task(coroutine)
    finally:
        RUNNING.reset(token)


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **options)
    process = RUNNING.get()
    if process is not None:
        process.tasks.add(task)
        task.add_done_callback(process.tasks.discard)
    return task


@contextlib.contextmanager
def hand_moved() -> Iterator[HandLoop]:
    """A loop that is the clock of every module for as long as the block lasts."""
    loop = HandLoop()
    asyncio.set_event_loop(loop)
    clock = loop.time
    try:
        with (
            mock.patch("time.monotonic", clock),
            mock.patch("time.time", clock),
            mock.patch("time.thread_time", lambda: 0.0),
        ):
            yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()
