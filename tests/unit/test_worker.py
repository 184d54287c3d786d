"""Parts of the serving process that need no agent."""

from __future__ import annotations

import asyncio
import threading

from dataplane import worker


async def test_work_that_holds_the_processor_has_one_thread() -> None:
    """However much of it clients ask for: the loop has to share its core with one."""
    beside = worker._beside(asyncio.get_running_loop())
    threads = {await work for work in [beside(threading.get_ident) for _ in range(8)]}
    assert len(threads - {threading.get_ident()}) == len(threads) == 1
