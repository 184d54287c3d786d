"""Waiting for what other processes do and nobody reports: asked again and again, until it holds or patience ends.

Where there is an event (a notification, the end of a process, bytes), wait for that instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tests.harness.patience import PATIENCE

PAUSE = 0.02
"""Seconds between two questions."""

What = Callable[[], str] | str
"""What is waited for; a function is called when it did not happen."""


async def until(is_true: Callable[[], Any], what: What = "it") -> Any:
    """Wait until it holds; answers what it gave. Awaitables are awaited. AssertionError when it does not happen."""
    end = time.monotonic() + PATIENCE
    while True:
        found = is_true()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        _judge(end, what)
        await asyncio.sleep(PAUSE)


def wait_until(is_true: Callable[[], Any], what: What = "it") -> Any:
    """`until` for code without an event loop."""
    end = time.monotonic() + PATIENCE
    while not (found := is_true()):
        _judge(end, what)
        time.sleep(PAUSE)
    return found


async def cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel it, and wait for its end. Raises what else ended it."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _judge(end: float, what: What) -> None:
    if time.monotonic() > end:
        raise AssertionError(f"did not happen in {PATIENCE:.0f} s: {what if isinstance(what, str) else what()}")
