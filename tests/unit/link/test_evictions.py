"""Evictions: one count for all workers of a proxy, without a lock for who reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from dataplane.link import buckets, evictions, locks
from dataplane.link.buckets import GROUP, Buckets
from dataplane.link.commits import Commits
from dataplane.link.evictions import GROUPS, HEAD, MOST, WAYS, Evictions
from dataplane.link.shared import Region
from dataplane.upstream.health import Eviction
from tests.fakes.shared_buckets import spawn

ALWAYS = Eviction(3.0)


def test_what_nobody_knows_is_not_evicted() -> None:
    known = Evictions.local()
    record = known.record("backend/a", "10.0.0.1:80")
    record.succeeded(1.0)
    assert (record.until(), record.evictions(), record.failures(), known.changes) == (0.0, 0, 0, 0)


def test_each_eviction_in_a_row_lasts_longer() -> None:
    known = Evictions.local()
    record, now = known.record("backend/a", "10.0.0.1:80"), 100.0
    for number in (1, 2, 3):
        assert record.failed(now, ALWAYS, 0.7) == 3.0 * number
        assert record.until() == now + 3 * number and record.evictions() == number == known.changes
        now = record.until()


def test_an_evicted_one_is_not_evicted_again() -> None:
    record = Evictions.local().record("backend/a", "10.0.0.1:80")
    record.failed(100.0, ALWAYS, 0.7)
    assert record.failed(101.0, ALWAYS, 0.7) == 0.0
    assert record.until() == 103.0 and record.failures() == 2


def test_a_success_from_before_does_not_end_the_row_of_evictions() -> None:
    record = Evictions.local().record("backend/a", "10.0.0.1:80")
    record.failed(100.0, ALWAYS, 0.7)
    record.succeeded(101.0)
    assert (record.failures(), record.evictions()) == (0, 1)
    record.succeeded(103.0)
    assert (record.failures(), record.evictions(), record.until()) == (0, 0, 103.0)


def test_no_eviction_is_longer_than_a_day() -> None:
    record = Evictions.local().record("backend/a", "10.0.0.1:80")
    assert record.failed(0.0, Eviction(1e9), 0.7) == MOST


@pytest.mark.parametrize(
    ("rule", "failures", "health", "due"),
    [
        (Eviction(), 1, 1.0, True),
        (Eviction(failures=2), 1, 0.0, False),
        (Eviction(failures=2), 2, 1.0, True),
        (Eviction(failures=0), 99, 0.0, False),
        (Eviction(threshold=50), 99, 0.5, False),
        (Eviction(threshold=50), 1, 0.49, True),
        (Eviction(threshold=0), 99, 0.0, False),
        (Eviction(failures=0, threshold=50), 1, 0.1, True),
        (Eviction(failures=5, threshold=50), 5, 0.9, True),
        (Eviction(failures=5, threshold=50), 4, 0.9, False),
    ],
)
def test_when_it_is_due(rule: Eviction, failures: int, health: float, due: bool) -> None:
    record = Evictions.local().record("backend/a", "10.0.0.1:80")
    answers = [record.failed(0.0, rule, health) for _ in range(failures)]
    assert any(answers) is due


def test_backends_do_not_evict_for_each_other() -> None:
    known = Evictions.local()
    known.record("backend/a", "10.0.0.1:80").failed(0.0, ALWAYS, 0.0)
    assert known.record("backend/a", "10.0.0.1:80").until() == 3.0
    assert known.record("backend/b", "10.0.0.1:80").until() == known.record("backend/a", "10.0.0.2:80").until() == 0.0


def test_more_than_there_is_room_for(caplog: pytest.LogCaptureFixture) -> None:
    """One group: whoever is over for longest makes room, and of the evicted the one that returns first."""
    known = Evictions(memoryview(bytearray(HEAD + WAYS * 32)), Buckets.local())
    records = [known.record("backend/a", f"10.0.0.{number}:80") for number in range(WAYS + 1)]
    for number, record in enumerate(records[:-1]):
        assert record.failed(float(number), ALWAYS, 0.0) == 3.0
    assert records[-1].failed(10.0, ALWAYS, 0.0) == 3.0
    assert records[0].until() == 0.0 and [each.until() for each in records[1:3]] == [4.0, 5.0]
    assert caplog.text == ""
    for number in range(WAYS):
        known.record("backend/b", f"10.0.0.{number}:80").failed(10.5, Eviction(60.0), 0.0)
    known.record("backend/c", "x").failed(11.0, ALWAYS, 0.0)
    assert caplog.text.count("more endpoints are evicted") == 1


def one_group(guards: locks.Locks | None = None) -> Evictions:
    own = Buckets(memoryview(bytearray(GROUP * 16)), guards)
    return Evictions(memoryview(bytearray(HEAD + WAYS * 32)), own)


def test_who_takes_the_place_of_an_evicted_one_is_not_evicted(caplog: pytest.LogCaptureFixture) -> None:
    """It has nothing of the one that was there: no eviction, none in a row, no failure but its own."""
    known = one_group()
    for number in range(WAYS):
        known.record("backend/a", f"10.0.0.{number}:80").failed(1.0, Eviction(60.0), 0.0)
    late = known.record("backend/a", "10.0.1.0:80")
    assert late.failed(2.0, Eviction(failures=2), 0.0) == 0.0
    assert (late.until(), late.evictions(), late.failures()) == (0.0, 0, 1)
    assert "more endpoints are evicted" in caplog.text


def test_one_whose_eviction_is_over_at_this_moment_makes_room_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    known, durations = one_group(), [3.0 + (5 * number + 3) % WAYS for number in range(WAYS)]
    records = [known.record("backend/a", f"10.0.0.{number}:80") for number in range(WAYS)]
    for record, seconds in zip(records, durations, strict=True):
        record.failed(1.0, Eviction(seconds), 0.0)
    assert known.record("backend/b", "x").failed(4.0, ALWAYS, 0.0) == 3.0
    assert [record.until() for record in records] == [0.0 if seconds == 3.0 else 1.0 + seconds for seconds in durations]
    assert caplog.text == ""


def test_an_entry_that_changes_hands_is_nobodys_meanwhile() -> None:
    """Who reads takes no lock: it must not find its own name beside what is known of another."""
    known = one_group()
    for number in range(WAYS):
        known.record("backend/a", f"10.0.0.{number}:80").failed(1.0, ALWAYS, 0.0)
    moments, words, owners = known.moments, known.words, list[int]()

    class Watched:
        def __getitem__(self, at: int) -> float:
            return moments[at]

        def __setitem__(self, at: int, moment: float) -> None:
            owners.append(words[at - 1])
            moments[at] = moment

    known.moments = Watched()  # type: ignore[assignment]
    at = known.claim(0, 77, 2.0)
    assert owners == [0] and words[at] == 77


class Counted:
    """A lock that is had at once, and counts how often."""

    index = 0

    def __init__(self) -> None:
        self.word = memoryview(bytearray(8)).cast("Q")
        self.taken = self.given = 0

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _number: int) -> Counted:
        return self

    def try_take(self, _blocking: bool) -> bool:
        self.taken += 1
        return True

    def give(self) -> None:
        self.given += 1


def test_the_lock_is_taken_only_for_what_changes_something() -> None:
    """A success is noted when it ends a row of failures, or of evictions after the last one is over."""
    lock = Counted()
    record = one_group(cast(locks.Locks, lock)).record("backend/a", "10.0.0.1:80")
    steps: list[tuple[Callable[[], object], int]] = [
        (lambda: record.succeeded(99.0), 0),
        (lambda: record.failed(100.0, ALWAYS, 0.0), 1),
        (lambda: record.succeeded(101.0), 1),
        (lambda: record.succeeded(102.0), 0),
        (lambda: record.succeeded(103.0), 1),
        (lambda: record.succeeded(104.0), 0),
        (lambda: (record.until(), record.evictions(), record.failures()), 0),
    ]
    for number, (step, taken) in enumerate(steps):
        lock.taken = lock.given = 0
        step()
        assert (number, lock.taken, lock.given) == (number, taken, taken)


def test_a_success_leaves_another_alone_that_has_its_place_meanwhile() -> None:
    """Between the look and the lock another worker may have given the place away."""
    lock = Counted()
    known = one_group(cast(locks.Locks, lock))
    record = known.record("backend/a", "10.0.0.1:80")
    record.failed(100.0, Eviction(failures=0), 0.0)
    at = known.find(record._group, record._digest)
    assert at is not None

    def given_away(_blocking: bool) -> bool:
        known.words[at] = 7
        return True

    lock.try_take = given_away  # type: ignore[method-assign]
    record.succeeded(101.0)
    assert known.words[at + 3] == 1


def test_room() -> None:
    assert GROUPS * WAYS == 16_384


CHILD = """
from dataplane.link.evictions import Evictions
from dataplane.upstream.health import Eviction
known = Evictions.of(region, buckets)
for number in range(int(sys.argv[2])):
    known.record("backend/a", "10.0.0.1:80").failed(1.0, Eviction(failures=0), 0.0)
known.record("backend/a", "10.0.0.2:80").failed(1.0, Eviction(7.0), 0.0)
"""


def test_workers_count_together() -> None:
    _, region = Commits.create(1, **buckets.SECTIONS, **evictions.SECTIONS, counts=128)
    try:
        assert locks.initialise(region.section(buckets.LOCKS))
        children = [spawn(region, CHILD, 2000) for _ in range(2)]
        assert [child.wait() for child in children] == [0, 0]
        known = Evictions.of(region, Buckets.of(region))
        assert known.record("backend/a", "10.0.0.1:80").failures() == 4000
        there = known.record("backend/a", "10.0.0.2:80")
        assert (there.until(), there.evictions(), there.failures(), known.changes) == (8.0, 1, 2, 1)
        for child in children:
            assert child.stdout is not None
            child.stdout.close()
    finally:
        region.close()


def test_without_a_section_or_locks_a_worker_counts_for_itself() -> None:
    _, region = Commits.create(1, counts=128)
    try:
        assert _counts(region)
        _, bare = Commits.create(1, **buckets.SECTIONS)
        assert locks.initialise(bare.section(buckets.LOCKS)) and _counts(bare)
        bare.close()
    finally:
        region.close()


def _counts(region: Region) -> bool:
    known = Evictions.of(region, Buckets.of(region))
    return known.record("backend/a", "10.0.0.1:80").failed(0.0, ALWAYS, 0.0) == 3.0
