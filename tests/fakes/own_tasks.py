"""What stands for a worker in tests without one, as far as it starts work of its own."""

from __future__ import annotations

import asyncio
from typing import Any


class OwnTasks:
    """Keeps what it was given to do, and ends it with the test."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Future[Any]] = []

    def work(self, coroutine: Any) -> asyncio.Future[Any]:
        self.tasks.append(asyncio.ensure_future(coroutine))
        return self.tasks[-1]

    async def turn(self) -> None:
        """Let it go on until it waits for something."""
        for _ in range(8):
            await asyncio.sleep(0)

    async def ends(self) -> None:
        for each in self.tasks:
            each.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
