"""Short contents of sessions with their targets, as all workers know them."""

from __future__ import annotations

import os

import pytest

from dataplane.link.arranged import Arranged
from dataplane.link.places import Found
from dataplane.link.renewed import Renewed
from dataplane.link.shared import Region

MOST, PLACE = Renewed.most(), Renewed.PLACE


def region(workers: int = 3) -> Region:
    made = Region.create("test", Renewed.sections(workers) | Arranged.sections(workers))
    made.close()  # the mapping stays
    return made


def test_the_latest_of_all_workers_counts() -> None:
    memory = region()
    workers = [Renewed.of(memory, index) for index in range(3)]
    number, other = os.urandom(8), os.urandom(8)
    assert workers[0].get(number, "a") is None
    for worker, moment in zip(workers, (1000, 3000, 2000), strict=True):
        worker.put(number, "a", moment, b"of %d" % moment)
    assert [worker.get(number, "a") for worker in workers] == [Found(3000, b"of 3000")] * 3
    assert all(worker.get(number, "b") is None and worker.get(other, "a") is None for worker in workers)
    workers[0].put(number, "a", 4000, b"")
    assert Renewed.of(memory, 2).get(number, "a") == Found(4000, b""), "a successor reads the same"


def test_targets_of_a_session_are_beside_each_other() -> None:
    worker, number = Renewed.local(), os.urandom(8)
    for each in range(32):
        worker.put(number, f"t{each}", 1, b"%d" % each)
    assert [worker.get(number, f"t{each}") for each in range(32)] == [Found(1, b"%d" % each) for each in range(32)]


def test_in_a_full_group_the_oldest_makes_place() -> None:
    worker = Renewed.local()
    numbers = [b"same" + bytes([0, 0, 0, each + 1]) for each in range(Renewed.PLACES + 1)]
    for moment, number in enumerate(numbers, 1):
        worker.put(number, "a", moment, number)
        assert worker.forgotten == (1 if moment > Renewed.PLACES else 0)
    assert worker.get(numbers[0], "a") is None
    assert [worker.get(number, "a") for number in numbers[1:]] == [
        Found(moment, number) for moment, number in enumerate(numbers[1:], 2)
    ]


def test_what_is_too_long_is_not_kept() -> None:
    worker, number = Renewed.local(), os.urandom(8)
    worker.put(number, "a", 1, bytes(MOST))
    worker.put(number, "a", 2, bytes(MOST + 1))
    assert worker.get(number, "a") == Found(1, bytes(MOST))


@pytest.mark.parametrize("at", range(8, 64, 7))
def test_what_is_being_written_is_nothing(at: int) -> None:
    memory = memoryview(bytearray(Renewed.sections(1)["renewed"]))
    worker, number = Renewed(memory, 0), os.urandom(8)
    worker.put(number, "a", 1, b"x" * 64)
    (place,) = [place for place in range(16, len(memory), PLACE) if memory[place : place + 8] != bytes(8)]
    memory[place + at] ^= 1
    assert worker.get(number, "a") is None


def test_a_region_without_them_serves_one_worker() -> None:
    made = Region.create("test", {"other": 8})
    made.close()
    worker, number = Renewed.of(made, 5), os.urandom(8)
    worker.put(number, "a", 7, b"x")
    assert worker.get(number, "a") == Found(7, b"x")


def test_each_worker_writes_to_its_own_part() -> None:
    """The counts of all, what made place in each, then what each has written."""
    memory = memoryview(bytearray(Renewed.sections(3)["renewed"]))
    size = (len(memory) - 3 * 16) // 3
    for index in range(3):
        before = bytes(memory)
        for number in range(64):
            Renewed(memory, index).put(os.urandom(8), f"t{number}", 1, b"x" * 200)
        own = slice(48 + index * size, 48 + (index + 1) * size)
        assert memory[own] != before[own] and memory[8 * index] == 64
        others = bytearray(memory)
        others[own], others[8 * index] = before[own], before[8 * index]
        assert others == before


def test_what_made_place_anywhere_is_known_to_all() -> None:
    memory = region()
    workers = [Arranged.of(memory, index) for index in range(3)]
    for moment in range(1, Renewed.PLACES + 3):
        workers[1].put(b"same" + bytes([0, 0, 0, moment]), "a", moment, b"")
    assert [each.forgotten for each in workers] == [2, 2, 2]
    workers[1].put(b"same" + bytes([0, 0, 0, 4]), "a", 99, b"")
    assert workers[0].forgotten == 2, "what is written anew makes place for nobody"


def test_kinds_are_apart() -> None:
    memory, number = region(), os.urandom(8)
    Renewed.of(memory, 0).put(number, "a", 1, b"x")
    assert Arranged.of(memory, 0).get(number, "a") is None and Arranged.most() > MOST
