"""Jobs that share one event loop with everything else: one after the other, each in slices of a few milliseconds.

Made and called by `pipeline`. A job is a generator that yields wherever others may run, and GIVE_WAY where they should,
or PAUSE where other processes should have the processor: until they answer, as it ends when the next job comes.
A short one that has nothing before it and does not give way is done when `start` returns, without a turn of the loop.
Two jobs are never under way at once, so what a job leaves half done between two slices is seen by no other job.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from controlplane import collector

SLICE = 0.003
"""Seconds until others get turns."""

TURNS = 4
"""Turns of the loop between two slices. An answer of the gRPC server takes about eight of them; a turn in which no task
wants anything costs some 20 us."""

Job = Iterator[float | None]
"""Yields None, GIVE_WAY or PAUSE."""

GIVE_WAY: Final = 0.0
"""What a job yields when somebody waits for what it just made: its slice ends, however short it was."""

PAUSE: Final = 0.008
"""The same where what is left of the job is of less hurry than what others make of it: seconds at most."""


async def rest() -> None:
    """The turns of others between two slices, for work in a loop of its own."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Turns:
    """The jobs of one owner, in the order in which they were started. `slices` counts what has run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.slices = 0
        self._clock = clock
        self._jobs: deque[tuple[Job, asyncio.Future[None]]] = deque()
        self._handle: asyncio.Handle | None = None
        self._is_pausing = False
        self._is_running = False

    def __repr__(self) -> str:
        return f"<Turns {len(self._jobs)} jobs, {self.slices} slices>"

    def start(self, job: Job) -> asyncio.Future[None]:
        """Runs the job when its turn has come: now, if nothing is before it. The future has what it raised."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._jobs.append((job, future))
        if self._is_pausing:
            self._stop_waiting()
            self._rest(1)
        elif self._handle is None and not self._is_running:
            self._run()
        return future

    def close(self) -> None:
        """Leaves what has not ended undone; tasks that wait for it are cancelled."""
        self._stop_waiting()
        while self._jobs:
            _, future = self._jobs.popleft()
            future.cancel()

    def _run(self) -> None:
        self._handle, self._is_pausing = None, False
        self._is_running = True
        self.slices += 1
        end = self._clock() + SLICE
        seconds: float | None = None
        try:
            while self._jobs and seconds is None:
                seconds = self._advance(end)
        finally:
            self._is_running = False
        if self._jobs:
            if seconds and len(self._jobs) == 1:
                self._is_pausing = True
                self._handle = asyncio.get_running_loop().call_later(seconds, self._run)
            else:
                collector.after_slice()
                self._rest(TURNS)

    def _stop_waiting(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._is_pausing = None, False

    def _rest(self, turns: int) -> None:
        following = (self._run,) if turns == 1 else (self._rest, turns - 1)
        self._handle = asyncio.get_running_loop().call_soon(*following)

    def _advance(self, end: float) -> float | None:
        """Goes on with the first job until it ends (None) or the slice does: the seconds that the job wants to rest."""
        job, future = self._jobs[0]
        try:
            for seconds in job:
                if seconds is not None:
                    return seconds
                if self._clock() >= end:
                    return GIVE_WAY
        except Exception as error:
            # Handed on to the task that waits for the job; asyncio reports it when there is none.
            _end(future, error)
        else:
            _end(future, None)
        self._jobs.popleft()
        return None


def _end(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return  # tasks that waited for it were cancelled
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
