"""When sessions were used last, as all workers know it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

from dataplane.link.shared import Region
from dataplane.link.used import Used


def region(workers: int = 3) -> Region:
    made = Region.create("test", Used.sections(workers))
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
    numbers = [b"same" + bytes([0, 0, 0, each + 1]) for each in range(Used.PLACES + 1)]
    for at, number in enumerate(numbers[: Used.PLACES]):
        worker.add(number, 100.0 + at)
    worker.add(numbers[0], 200.0)
    worker.add(numbers[Used.PLACES - 1], 200.0)  # of the latest: it keeps its one place
    worker.add(numbers[Used.PLACES], 201.0)
    assert worker.last(numbers[1]) is None
    assert all(worker.last(number) is not None for number in (numbers[0], *numbers[2:]))


class Watched:
    """Memory that says what it holds after each write."""

    def __init__(self, memory: memoryview, look: Callable[[], None]) -> None:
        self.memory, self.look = memory, look

    def __len__(self) -> int:
        return len(self.memory)

    def __getitem__(self, at: slice) -> memoryview:
        return self.memory[at]

    def __setitem__(self, at: slice, data: bytes) -> None:
        self.memory[at] = data
        self.look()


def test_at_no_moment_has_a_session_the_moment_of_another() -> None:
    memory = region(1).section(Used.SECTION)
    reader, seen = Used(memory, 0), set[int | None]()
    numbers = [b"same" + bytes([0, 0, 0, each + 1]) for each in range(Used.PLACES + 1)]
    writer = Used(cast(memoryview, Watched(memory, lambda: seen.add(reader.last(numbers[0])))), 0)
    for each, number in enumerate(numbers[: Used.PLACES]):
        writer.add(number, 100.0 + each)
    assert seen == {None, 100}
    seen.clear()
    writer.add(numbers[Used.PLACES], 300.0)
    assert seen == {None} and reader.last(numbers[Used.PLACES]) == 300


def test_a_region_without_them_serves_one_worker() -> None:
    made = Region.create("test", {"other": 8})
    made.close()
    worker = Used.of(made, 5)
    number = os.urandom(8)
    worker.add(number, 7.0)
    assert worker.last(number) == 7
