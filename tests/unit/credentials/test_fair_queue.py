"""Turns between sources."""

from __future__ import annotations

from random import Random

from dataplane.credentials.fair_queue import FairQueue


def drained(queue: FairQueue[str]) -> list[str]:
    found = []
    while (item := queue.take()) is not None:
        found.append(item)
    return found


def test_sources_take_turns() -> None:
    queue: FairQueue[str] = FairQueue()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        assert queue.add(item[0], item) is None
    assert queue.take() == "a1"
    assert queue.add("d", "d1") is None
    assert drained(queue) == ["b1", "c1", "a2", "d1", "b2", "a3"]
    assert queue.take() is None and len(queue) == 0


def test_a_source_has_so_many_places() -> None:
    queue: FairQueue[str] = FairQueue(most_of_source=2)
    assert [queue.add("a", item) for item in ("a1", "a2", "a3")] == [None, None, "a3"]
    assert queue.add("b", "b1") is None
    assert queue.take() == "a1" and queue.add("a", "a4") is None
    assert drained(queue) == ["b1", "a2", "a4"]


def test_a_full_queue_takes_the_newest_of_who_has_most() -> None:
    queue: FairQueue[str] = FairQueue(most=4)
    for item in ("a1", "a2", "a3", "b1"):
        queue.add(item[0], item)
    assert queue.add("c", "c1") == "a3"
    assert queue.add("b", "b2") == "b2"  # a has two, b would have as many: nothing is won
    assert queue.add("d", "d1") == "a2"
    assert queue.add("e", "e1") == "e1"  # all have one
    assert drained(queue) == ["a1", "b1", "c1", "d1"]


def test_nothing_is_lost_or_doubled() -> None:
    random, queue = Random(3), FairQueue[str](most_of_source=3, most=8)
    inside: set[str] = set()
    for step in range(2000):
        if random.random() < 0.6:
            item = str(step)
            loser = queue.add(random.randrange(6), item)
            inside |= {item}
            inside -= {loser or ""}
        else:
            item = queue.take() or ""
            assert item in inside or not inside
            inside -= {item}
        assert len(queue) == len(inside) <= 8
