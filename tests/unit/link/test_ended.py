"""Sessions that were ended, as all workers know it: each writes its own places, all read all of them."""

from __future__ import annotations

import os

from dataplane.link.ended import Ended
from dataplane.link.shared import Region


def region(workers: int = 3) -> Region:
    made = Region.create("test", Ended.sections(workers))
    made.close()  # the mapping stays
    return made


def test_what_one_worker_ends_is_ended_for_all_and_nothing_else_is() -> None:
    memory = region()
    workers = [Ended.of(memory, index) for index in range(3)]
    numbers = [os.urandom(8) for _ in range(300)]
    for at, number in enumerate(numbers):
        workers[at % 3].add(number)
    others = [os.urandom(8) for _ in range(300)]
    for worker in workers:
        assert all(number in worker for number in numbers)
        assert not any(number in worker for number in others)


def test_a_successor_knows_what_its_predecessor_ended() -> None:
    memory = region(1)
    number = os.urandom(8)
    Ended.of(memory, 0).add(number)
    assert number in Ended.of(memory, 0)


def test_a_full_group_forgets_its_oldest_and_no_other_group() -> None:
    worker = Ended.local()
    other = (1).to_bytes(4, "little") + b"othr"
    worker.add(other)
    numbers = [bytes(4) + bytes([1, 0, 0, at]) for at in range(Ended.PLACES + 1)]
    for number in numbers:
        worker.add(number)
    assert [number in worker for number in numbers] == [False] + [True] * Ended.PLACES
    assert other in worker


def test_a_part_of_two_numbers_is_no_number() -> None:
    """Bytes across two places, in the group that the number of these bytes would be in."""
    worker, ends = Ended.local(), Ended.GROUPS.to_bytes(4, "little")
    for number in (bytes(4) + ends, bytes(3) + b"\0next"):
        worker.add(number)
    assert bytes(4) + ends in worker and ends + bytes(4) not in worker


def test_one_that_is_ended_twice_takes_one_place() -> None:
    worker = Ended.local()
    numbers = [bytes(4) + bytes([1, 0, 0, at]) for at in range(Ended.PLACES)]
    for number in (*numbers, *numbers):
        worker.add(number)
    assert all(number in worker for number in numbers)


def test_without_a_section_a_worker_remembers_by_itself() -> None:
    made = Region.create("test", {"other": 8})
    worker = Ended.of(made, 5)
    made.close()
    worker.add(b"12345678")
    assert b"12345678" in worker
