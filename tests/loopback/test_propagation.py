"""Routes and backends that come and go, as clients of two proxies with two workers each see it: answers, not times."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from benchmarks.changes import CONNECTIONS, Run
from benchmarks.pair import WORKERS, Pair
from benchmarks.route_files import KINDS, SLOW_KINDS, RouteFiles
from tests.fakes.proxy_process import origin
from tests.harness.waiting import wait_until

ALL = KINDS + SLOW_KINDS
ROUTES = 2 * len(ALL)


def come_and_go(backend_port: int) -> Run:
    """Create all routes one by one, then remove them again. Raises `Lost` for one that does not arrive."""
    with ExitStack() as stack:
        pair = Pair(stack, backend_port)
        files, run = RouteFiles(pair.folder, backend_port, ALL), Run(pair)
        wait_until(lambda: run.answers(files.first()) == {200}, "the first route")
        stack.callback(run.close)
        for number in range(ROUTES):
            run.create(files, number)
        for number in range(ROUTES):
            run.remove(files, number)
        return run


async def test_clients_see_404_then_200_then_404_and_nothing_else_whichever_worker_answers() -> None:
    async with origin() as upstream:
        run = await asyncio.to_thread(come_and_go, upstream)
    assert run.wrong == []
    assert len(run.per_worker) == 2 * WORKERS and min(run.per_worker.values()) > 0
    answered = [each for each in run.asked if each.status == 200]
    assert len(answered) >= ROUTES * CONNECTIONS
    assert {each.kind for each in answered} == {kind.name for kind in ALL}
