"""What bounds a slice, what code is compiled for, and what stays after thousands of swaps. Counts, never times."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataplane.table import collection
from dataplane.table.applier import SLICE
from dataplane.table.carryover import Carryover
from dataplane.table.draft import RouterDraft
from dataplane.table.endpoints import STEP
from dataplane.table.store import Change
from gatewright.wire.v1 import policy_pb2
from tests.fakes.table_state import (
    SERVICE,
    TableRun,
    bind,
    endpoint,
    endpoint_gone,
    gone,
    header,
    listener,
    listener_key,
    route,
    route_key,
    service,
)

COUNT = 2000


@pytest.fixture
def run() -> TableRun:
    table = TableRun()
    table.apply(endpoint(), service(), bind(), listener())
    return table


def response_header(value: str) -> policy_pb2.Policy:
    policy = policy_pb2.Policy()
    policy.header_modifiers.response.set.add(name="x", value=value)
    return policy


def one(number: int, value: str = "1", **more: Any) -> Change:  # fields of `route`
    fields = {"hosts": [f"h{number}.example"], "prefix": "/p", "backends": [SERVICE], **more}
    return route(f"r{number}", policies=[header("x", value)], **fields)


# Slices.


def all_changed(_run: TableRun) -> Iterator[Change]:
    return (one(number, "2") for number in range(COUNT))


def hostname_added(_run: TableRun) -> Iterator[Change]:
    return (one(number, hosts=[f"h{number}.example", f"www.h{number}.example"]) for number in range(COUNT))


def to_one_hostname(_run: TableRun) -> Iterator[Change]:
    return (one(number, hosts=["one.example"], prefix=f"/{number}") for number in range(COUNT))


def all_removed(_run: TableRun) -> Iterator[Change]:
    return (gone(route_key(f"r{number}")) for number in range(COUNT))


def listener_returned(run: TableRun) -> Iterator[Change]:
    run.apply(gone(listener_key()))
    return iter([listener()])


def backend_comes_that_all_waited_for(run: TableRun) -> Iterator[Change]:
    other = "backend/service/default/other/80"
    run.apply(service(other), *(one(number, backends=[other]) for number in range(COUNT)))
    return iter([endpoint(backend=other)])


@pytest.mark.parametrize(
    "changes",
    [
        all_changed,
        hostname_added,
        to_one_hostname,
        all_removed,
        listener_returned,
        backend_comes_that_all_waited_for,
    ],
)
def test_a_step_enters_or_takes_out_one_route(
    run: TableRun, changes: Callable[[TableRun], Iterator[Change]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.apply(*(one(number) for number in range(COUNT)))
    state = changes(run)
    touched = []
    for name in ("add", "remove"):
        method = getattr(RouterDraft, name)

        def counted(draft: RouterDraft, hostname: bytes, *rest: Any, method: Any = method) -> None:
            touched.append(hostname)
            method(draft, hostname, *rest)

        monkeypatch.setattr(RouterDraft, name, counted)
    run.tick = SLICE  # every step is a slice
    most, before = 0, 0
    for _ in run.applier.apply(state):
        most, before = max(most, len(touched) - before), len(touched)
    assert len(touched) >= COUNT and most <= 3  # the old version from one hostname, the new one under two


def test_a_step_looks_at_few_endpoints_of_a_backend(run: TableRun) -> None:
    run.apply(*(endpoint(f"10.1.{number >> 8}.{number & 255}") for number in range(STEP * 8)))
    run.tick = SLICE
    assert run.apply(endpoint("10.2.0.1")) >= 8


def test_a_step_gives_back_one_endpoint(run: TableRun, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [f"10.1.0.{number}" for number in range(200)]
    run.apply(*map(endpoint, addresses))
    given: list[object] = []
    give_back = Carryover.give_back

    def counted(carryover: Carryover, given_back: Any) -> Iterator[None]:
        given.append(given_back)
        return give_back(carryover, given_back)

    monkeypatch.setattr(Carryover, "give_back", counted)
    run.tick = SLICE
    most, before = 0, 0
    for _ in run.applier.apply(map(endpoint_gone, addresses)):
        most, before = max(most, len(given) - before), len(given)
    assert (most, len(given), len(run.applier.carryover)) == (1, 200, 1)


# The garbage collector.


def test_a_long_state_is_applied_without_collection_and_a_short_one_with_it(run: TableRun) -> None:
    assert gc.isenabled()
    run.tick = SLICE
    long = [gc.isenabled() for _ in run.applier.apply(one(number) for number in range(100))]
    assert long[: collection.PATIENCE - 1] == [True] * (collection.PATIENCE - 1)
    assert not any(long[collection.PATIENCE :]) and gc.isenabled()
    run.tick = 0.0
    assert all(gc.isenabled() for _ in run.applier.apply([one(1, "2")])) and gc.isenabled()


def test_a_state_that_is_given_up_leaves_the_collector_on(run: TableRun) -> None:
    run.tick = SLICE
    state = run.applier.apply(one(number) for number in range(100))
    for _ in range(collection.PATIENCE + 2):
        next(state)
    assert not gc.isenabled()
    state.close()  # type: ignore[attr-defined]
    assert gc.isenabled()


# What stays.


def edits(run: TableRun, first: int, last: int) -> None:
    """Changes of a constant, added and removed routes, a second hostname that comes and goes, endpoints, a refusal."""
    for number in range(first, last):
        run.apply(one(number % 50, str(number)))
        run.apply(one(1000 + number, str(number)))
        run.apply(one(number % 50, str(number), hosts=[f"h{number % 50}.example", f"w{number}.example"]))
        run.apply(one(number % 50), gone(route_key(f"r{1000 + number}")))
        run.apply(endpoint(f"10.3.{number >> 8}.{number & 255}"), one(7, hosts=["h7.example"], prefix="no slash"))
        run.apply(endpoint_gone(f"10.3.{number >> 8}.{number & 255}"), one(7))


def sizes(run: TableRun) -> dict[str, object]:
    applier = run.applier
    return {
        "chains": len(applier.interns),
        "endpoints": len(applier.carryover),
        "store": repr(applier.store),
        "remains": repr(applier.remains),
        "waiting": len(applier.waiting),
        "refused": len(applier.refused),
    }


@pytest.mark.slow
def test_nothing_grows_with_the_number_of_swaps(run: TableRun) -> None:
    run.apply(*(one(number) for number in range(500)))
    gc.disable()
    try:
        edits(run, 0, 60)
        gc.collect()
        before, objects, blocks = sizes(run), len(gc.get_objects()), sys.getallocatedblocks()
        edits(run, 60, 460)
        assert gc.collect() == 0
        assert sizes(run) == before
        assert len(gc.get_objects()) - objects < 20
        assert sys.getallocatedblocks() - blocks < 1000  # 2,400 swaps; parts of containers that had room are fuller
    finally:
        gc.enable()
