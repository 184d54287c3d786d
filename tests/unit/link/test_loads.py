"""What the workers of a proxy carry: one sum, whoever writes and whoever dies."""

from __future__ import annotations

import pytest

from dataplane.link import loads
from dataplane.link.loads import ADDRESSES, CONNECTIONS, HELD, REQUESTS, SECTION, Loads
from dataplane.link.shared import Region


def region(workers: int = 3) -> Region:
    made = Region.create("test-loads", loads.sections(workers))
    loads.initialise(made)
    return made


def test_the_sum_of_all_workers() -> None:
    shared = region()
    workers = [Loads.of(shared, index) for index in range(3)]
    for number, worker in enumerate(workers, 1):
        worker.put(CONNECTIONS, number)
        worker.put(HELD, 2**40)
    workers[1].put(CONNECTIONS, 20)
    assert [worker.workers for worker in (*workers, Loads.local())] == [3, 3, 3, 1]
    assert [worker.total(CONNECTIONS) for worker in workers] == [24] * 3
    assert workers[0].total(HELD) == 3 * 2**40 and workers[0].total(REQUESTS) == 0
    shared.close()


def test_connections_of_an_address_are_counted_at_all_workers() -> None:
    shared = region()
    one, other, _ = (Loads.of(shared, index) for index in range(3))
    rows = one.rows(b"192.0.2.1")
    assert rows == other.rows(b"192.0.2.1")
    one.count(rows, 1)
    other.count(rows, 1)
    other.count(rows, 1)
    other.count(rows, -1)
    assert one.counted(rows) == other.counted(rows) == 2
    shared.close()


def test_addresses_do_not_count_for_each_other() -> None:
    own = Loads.local()
    addresses = [b"192.0.2.%d" % number for number in range(256)]
    for address in addresses:
        own.count(own.rows(address), 1)
    assert [own.counted(own.rows(address)) for address in addresses] == [1] * 256


def test_a_name_has_a_row_of_each_half() -> None:
    """Never twice the same one, and names are spread over all of them."""
    own, half = Loads.local(), loads.ROWS // 2
    rows = [own.rows(b"%d" % number) for number in range(4000)]
    assert all(0 <= first < half <= second < 2 * half for first, second in rows)
    for found in ({first for first, _ in rows}, {second - half for _, second in rows}):
        assert min(found) < half // 100 and max(found) >= half - half // 100 and len(found) > 2500


def test_where_an_address_is_counted_is_a_secret_of_the_proxy() -> None:
    one, other = region(), region()
    assert Loads.of(one, 0).rows(b"192.0.2.1") != Loads.of(other, 0).rows(b"192.0.2.1")
    one.close()
    other.close()


@pytest.mark.parametrize("by", ["agent", "successor"])
def test_what_a_dead_worker_carried_counts_no_more(by: str) -> None:
    shared = region()
    dead, alive = Loads.of(shared, 0), Loads.of(shared, 1)
    rows = dead.rows(b"192.0.2.1")
    for worker in (dead, alive):
        worker.put(REQUESTS, 5)
        worker.count(rows, 1)
    if by == "agent":
        loads.forget(shared, 0)
    else:
        Loads.of(shared, 0)
    assert alive.total(REQUESTS) == 5 and alive.counted(rows) == 1
    shared.close()


def test_a_region_without_these_sections() -> None:
    bare = Region.create("test-loads", {"other": 8})
    own = Loads.of(bare, 2)
    own.put(REQUESTS, 1)
    assert own.total(REQUESTS) == 1
    bare.close()


def test_workers_do_not_share_a_line_of_the_cache() -> None:
    sizes = loads.sections(4)
    assert sizes[SECTION] == 5 * 64 and sizes[ADDRESSES] == 4 * 65_536
