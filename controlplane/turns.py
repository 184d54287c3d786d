"""Jobs that share one event loop with everything else: one after the other, each in slices of a few milliseconds.

Made and called by `pipeline`. A job is a generator that yields wherever others may run, and GIVE_WAY where they should.
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
"""Turns of the loop between two slices. An answer of the gRPC server takes about eight of them; a turn in which nobody
wants anything costs some 20 us."""

Job = Iterator[bool | None]
"""Yields None, or GIVE_WAY."""

GIVE_WAY: Final = True
"""What a job yields when somebody waits for what it just made: its slice ends, however short it was."""


async def rest() -> None:
    """The turns of others between two slices, for whoever works through a loop of its own."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Turns:
    """The jobs of one owner, in the order in which they were started. `slices` counts what has run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.slices = 0
        self._clock = clock
        self._jobs: deque[tuple[Job, asyncio.Future[None]]] = deque()
        self._handle: asyncio.Handle | None = None
        self._is_running = False

    def __repr__(self) -> str:
        return f"<Turns {len(self._jobs)} jobs, {self.slices} slices>"

    def start(self, job: Job) -> asyncio.Future[None]:
        """Runs the job when its turn has come: now, if nothing is before it. The future has what it raised."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._jobs.append((job, future))
        if self._handle is None and not self._is_running:
            self._run()
        return future

    def close(self) -> None:
        """Leaves what has not ended undone; whoever waits for it is cancelled."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        while self._jobs:
            _, future = self._jobs.popleft()
            future.cancel()

    def _run(self) -> None:
        self._handle = None
        self._is_running = True
        self.slices += 1
        end = self._clock() + SLICE
        try:
            while self._jobs and self._advance(end):
                pass
        finally:
            self._is_running = False
        if self._jobs:
            collector.after_slice()
            self._rest(TURNS)

    def _rest(self, turns: int) -> None:
        following = (self._run,) if turns == 1 else (self._rest, turns - 1)
        self._handle = asyncio.get_running_loop().call_soon(*following)

    def _advance(self, end: float) -> bool:
        """Goes on with the first job until it ends (True) or the slice does."""
        job, future = self._jobs[0]
        try:
            for gives_way in job:
                if gives_way or self._clock() >= end:
                    return False
        except Exception as error:
            # Handed on to whoever waits for the job; asyncio reports it when nobody does.
            _end(future, error)
        else:
            _end(future, None)
        self._jobs.popleft()
        return True


def _end(future: asyncio.Future[None], error: Exception | None) -> None:
    if future.done():
        return  # whoever waited for it was cancelled
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
