"""What the library of event streams, which servers of SDKs use, leaves in a loop: it has no end of its own."""

from __future__ import annotations

import asyncio


def end_watchers() -> None:
    """End the tasks that wait for ever for the end of a server, one in each thread; for servers of a test that ends."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
