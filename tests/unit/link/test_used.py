"""When sessions were used last, as all workers know it."""

from __future__ import annotations

import os

from dataplane.link import used
from dataplane.link.shared import Region
from dataplane.link.used import PLACES, Used


def region(workers: int = 3) -> Region:
    made = Region.create("test", used.sections(workers))
    made.close()  # the mapping stays
    return made


def test_the_latest_use_of_all_workers_counts() -> None:
    memory = region()
    workers = [Used.of(memory, index) for index in range(3)]
    number, other = os.urandom(8), os.urandom(8)
    for worker, now in zip(workers, (1000.0, 3000.9, 2000.0), strict=True):
        worker.add(number, now)
    assert [worker.last(number) for worker in workers] == [3000] * 3
    assert all(worker.last(other) is None for worker in workers)
    workers[0].add(number, 4000.0)
    assert Used.of(memory, 2).last(number) == 4000, "a successor reads the same"


def test_in_a_full_group_the_one_that_was_used_longest_ago_makes_place() -> None:
    worker = Used.local()
    numbers = [b"same" + bytes([0, 0, 0, each + 1]) for each in range(PLACES + 1)]
    for at, number in enumerate(numbers[:PLACES]):
        worker.add(number, 100.0 + at)
    worker.add(numbers[0], 200.0)
    worker.add(numbers[PLACES], 201.0)
    assert worker.last(numbers[1]) is None
    assert all(worker.last(number) is not None for number in (numbers[0], *numbers[2:]))


def test_a_region_without_them_serves_one_worker() -> None:
    made = Region.create("test", {"other": 8})
    made.close()
    worker = Used.of(made, 5)
    number = os.urandom(8)
    worker.add(number, 7.0)
    assert worker.last(number) == 7
