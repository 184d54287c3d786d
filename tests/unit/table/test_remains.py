"""Old tables are freed in bounded steps, whoever lets go of them last; nothing is freed that somebody has."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from dataplane.chain.chain import Chain
from dataplane.table.applier import SLICE
from dataplane.table.parted import PartedDict
from dataplane.table.plans import RoutePlan
from dataplane.table.remains import CHUNK, Remains
from dataplane.table.router import EMPTY, Level, Router
from tests.fakes.table_state import (
    SERVICE,
    TableRun,
    bind,
    endpoint,
    endpoint_gone,
    exchange,
    gone,
    header,
    listener,
    route,
    route_key,
    service,
)

COUNT = 3000


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """References alone must do."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def run() -> TableRun:
    table = TableRun()
    table.apply(endpoint(), service(), bind(), listener())
    return table


class Counted(RoutePlan):
    """Counts those that were freed."""

    freed = 0

    def __del__(self) -> None:
        Counted.freed += 1


def plan(number: int) -> Counted:
    return Counted(str(number), "", "", Chain(()))


def most_at_once(remains: Remains) -> int:
    """The largest number of plans that one step frees; all that there are have been freed after it."""
    most, before = 0, Counted.freed
    for _ in remains.drop():
        most, before = max(most, Counted.freed - before), Counted.freed
    return most


@pytest.fixture(autouse=True)
def from_zero() -> None:
    Counted.freed = 0


def in_hosts() -> Router:
    router = Router()
    router.hosts = PartedDict()
    for number in range(COUNT):
        level = router.hosts[b"%d" % number] = Level()
        level.root = plan(number)
    return router


def in_small_hosts() -> Router:
    router = Router()
    for number in range(COUNT // 100):
        level = router.hosts[b"%d" % number] = Level()
        level.prefixes = {b"/%d" % i: plan(i) for i in range(100)}
    return router


def under_one_host() -> Router:
    router = Router()
    router.any = Level()
    router.any.exact = PartedDict()
    for number in range(COUNT):
        router.any.exact[b"/%d" % number] = plan(number)
    return router


@pytest.mark.parametrize("make", [in_hosts, in_small_hosts, under_one_host])
def test_freed_in_bounded_steps(make: Callable[[], Router]) -> None:
    remains, router = Remains(), make()
    remains.watch(router)
    del router
    assert most_at_once(remains) <= CHUNK and Counted.freed == COUNT and not remains


def test_what_somebody_has_is_not_taken_apart() -> None:
    remains, router = Remains(), in_hosts()
    hosts, part = router.hosts, router.hosts.parts()[0]  # type: ignore[union-attr]
    size = len(part)
    remains.watch(router)
    del router
    most_at_once(remains)
    assert Counted.freed == 0 and len(hosts) == COUNT
    remains.add(hosts)
    del hosts
    most_at_once(remains)
    assert Counted.freed == COUNT - size and len(part) == size


def test_an_exchange_that_ends_late_frees_nothing_itself(run: TableRun) -> None:
    woken: list[int] = []
    run.applier.remains.wake = lambda: woken.append(len(woken))
    run.apply(*(route(f"r{i}", hosts=[f"h{i}.example"], policies=[header("x", str(i))]) for i in range(COUNT)))
    x = exchange()
    x.table, x.listener = run.applier.current.table, run.listeners()["http"]
    known = len(run.applier.interns)
    run.apply(*(gone(route_key(f"r{i}")) for i in range(COUNT)))
    assert len(run.applier.interns) == known == COUNT  # the exchange may route by the old table still
    before = len(woken)
    del x
    assert len(run.applier.interns) == COUNT and len(woken) > before
    run.tick = SLICE / 4
    slices = 1
    while run.applier.tidy():
        slices += 1
    assert slices >= COUNT / CHUNK / 4 and len(run.applier.interns) == 0


def test_the_empty_router_is_nobodys_remains() -> None:
    remains = Remains()
    remains.watch(EMPTY)
    assert repr(remains) == "Remains(0 things, 0 old tables in use)"


def test_idle_connections_are_closed_one_to_a_step(run: TableRun) -> None:
    class Connection:
        closed = 0

        def close(self) -> None:
            Connection.closed += 1

    plan = run.backend()
    assert plan is not None
    plan.endpoints[0].idle.extend(Connection() for _ in range(50))  # type: ignore[misc]
    run.tick = SLICE
    closed, most = 0, 0
    for _ in run.applier.apply([endpoint_gone(), endpoint("10.0.0.2")]):
        most, closed = max(most, Connection.closed - closed), Connection.closed
    assert (most, Connection.closed) == (1, 50) and run.backend(SERVICE) is not None
