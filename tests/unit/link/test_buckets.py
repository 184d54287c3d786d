"""Buckets: what one process counts by itself, and what several count together."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.link import buckets, locks
from dataplane.link.buckets import GROUP, STANDS, Buckets, Rate
from dataplane.link.commits import Commits
from dataplane.link.shared import Region
from tests.fakes import shared_buckets
from tests.harness.patience import PATIENCE

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")

NEVER = 1e9
"""Seconds until a token comes back, in tests without a clock."""


@pytest.fixture
def region() -> Iterator[Region]:
    with shared_buckets.shared() as made:
        yield made


def taken(found: Buckets, key: str, rate: Rate, now: float, tries: int) -> int:
    """How many of the tries got a token."""
    take = found.meter(key, [rate]).take
    return sum(take(now) is None for _ in range(tries))


@pytest.fixture(params=["local", "shared"])
def either(request: pytest.FixtureRequest, region: Region) -> Buckets:
    return Buckets.local() if request.param == "local" else Buckets.of(region)


def test_a_bucket_holds_its_capacity_and_fills_all_the_time(either: Buckets) -> None:
    rate = Rate(interval=0.5, capacity=3)
    assert taken(either, "a", rate, 100.0, 5) == 3
    assert taken(either, "a", rate, 100.49, 1) == 0
    assert taken(either, "a", rate, 100.5, 2) == 1
    assert taken(either, "a", rate, 101.25, 3) == 1
    assert taken(either, "a", rate, 101.5, 3) == 1  # the half that was left counts
    assert taken(either, "a", rate, 900.0, 5) == 3


@pytest.mark.parametrize(("interval", "capacity"), [(0.1, 10), (1 / 3, 7), (1e-3, 1000), (60 / 7, 7), (1e-4, 10000)])
@pytest.mark.parametrize("now", [0.0, 86400.0 * 300 + 0.1])
def test_digits_lose_no_token(interval: float, capacity: int, now: float) -> None:
    found = Buckets.local()
    rate = Rate(interval, capacity)
    assert taken(found, "a", rate, now, capacity + 3) == capacity
    assert sum(taken(found, "a", rate, now + (step + 1) * interval, 2) for step in range(50)) == 50


def test_a_refusal_says_when_each_is_full(either: Buckets) -> None:
    take = either.meter("a", [Rate(2.0, 1), Rate(1.0, 5)]).take
    assert take(10.0) is None
    assert take(10.5) == [1.5, 0.5]
    assert take(11.75) == pytest.approx([0.25, -0.75])


def test_a_refusal_says_when_the_only_one_is_full(either: Buckets) -> None:
    take = either.meter("a", [Rate(2.0, 1)]).take
    assert [take(10.0), take(10.5), take(11.75), take(12.0)] == [None, (1.5,), (0.25,), None]


def test_all_are_checked_before_any_is_taken(either: Buckets) -> None:
    meter = either.meter("a", [Rate(NEVER, 10), Rate(NEVER, 3)])
    assert sum(meter.take(1.0) is None for _ in range(8)) == 3
    refused = meter.take(1.0)
    assert refused is not None and refused[0] == pytest.approx(3 * NEVER)


def test_buckets_of_one_meter_do_not_take_each_other_s_place() -> None:
    """Where all entries of the group are in use, the second would be nearest to full as soon as it is there."""
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    for number in range(GROUP):
        assert found.meter(f"crowd {number}", [Rate(NEVER, 1)]).take(1.0) is None
    meter = found.meter("a", [Rate(NEVER, 4), Rate(NEVER, 4)])
    assert sum(meter.take(1.0) is None for _ in range(6)) == 4
    assert meter.take(1.0) == pytest.approx([4 * NEVER, 4 * NEVER])


def test_what_is_spent_may_be_owed(either: Buckets) -> None:
    meter = either.meter("a", [Rate(1.0, 10, is_charged=False)])
    assert meter.take(0.0) is None
    meter.spend(0.0, 0, 25)
    assert meter.take(15.5) is not None
    assert meter.take(16.0) is None
    meter.spend(400.0, 0, 10)
    assert meter.take(400.0) is not None


@pytest.mark.parametrize("limits", [1, 2])
def test_the_last_moment_at_which_there_is_a_token(limits: int) -> None:
    rate = Rate(1.0, 1)
    for tokens, is_taken in ((rate.tolerance, True), (math.nextafter(rate.tolerance, 1.0), False)):
        meter = Buckets.local().meter("a", [rate] * limits)
        meter.spend(0.0, limits - 1, tokens)
        assert (meter.take(0.0) is None) is is_taken


def test_what_may_be_missing_of_a_token() -> None:
    """A thousandth of it and what the digits of the clock may lose, at most half."""
    assert Rate(1000.0, 3).tolerance == pytest.approx(2001.0)
    assert Rate(1.0, 500_000).tolerance - 499_999 == pytest.approx(0.002)
    assert Rate(1e-6, 5000).tolerance == pytest.approx(4999e-6 + 0.5e-6)


def test_one_lock_is_enough_for_one_process() -> None:
    assert Buckets.local().stripes == 1 and not Buckets.local().is_shared


class Guard:
    """A lock that notes what is asked of it. `is_free`: it is had at once; `is_lost`: somebody took it over."""

    index = 0

    def __init__(self, is_free: bool, is_lost: bool) -> None:
        self.is_free, self.is_lost = is_free, is_lost
        self.word = memoryview(bytearray(8)).cast("Q")
        self.said: list[str] = []

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _index: int) -> Guard:
        return self

    def try_take(self, blocking: bool) -> bool:
        assert not blocking, "who waits looks whether its holder lives"
        return self.is_free

    def wait(self) -> None:
        self.said.append("wait")
        self.word[0] = os.getpid()

    def give(self) -> None:
        assert self.word[0] == os.getpid(), "it is given by who has signed"
        self.word[0] = 0
        self.said.append("give")
        if self.is_lost:
            raise ValueError("semaphore or lock released too many times")

    def late(self) -> None:
        self.said.append("late")


OPERATIONS: dict[str, Callable[[Buckets], object]] = {
    "one bucket": lambda found: found.meter("a", [Rate(1.0, 1)]).take(0.0),
    "two buckets": lambda found: found.meter("a", [Rate(1.0, 1), Rate(1.0, 1)]).take(0.0),
    "spending": lambda found: found.meter("a", [Rate(1.0, 1)]).spend(0.0, 0, 1.0),
    "a sign that is put up": lambda found: found.sign("a").put(0.0),
    "a sign that is taken down": lambda found: found.sign("a").take_down(0.0),
}


@pytest.mark.parametrize("does", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("is_free", [False, True])
def test_whatever_touches_a_bucket_holds_its_lock(
    does: Callable[[Buckets], object], is_free: bool, is_lost: bool
) -> None:
    guard = Guard(is_free, is_lost)
    does(Buckets(memoryview(bytearray(GROUP * 16)), cast(locks.Locks, guard)))
    assert guard.said == ["wait"] * (not is_free) + ["give"] + ["late"] * is_lost


def fill(level: Fraction, capacity: int, interval: Fraction, elapsed: Fraction) -> Fraction:
    return min(Fraction(capacity), level + elapsed / interval)


@pytest.mark.parametrize("limits", [1, 2])
def test_a_bucket_that_nobody_asked_for_long_holds_no_more_than_it_can(either: Buckets, limits: int) -> None:
    meter = either.meter("a", [Rate(1.0, 10)] * limits)
    for now in (1000.0, 4600.0):
        assert sum(meter.take(now) is None for _ in range(20)) == 10


EIGHTHS = st.integers(0, 40).map(lambda eighths: Fraction(eighths, 8))
"""Times that a double has in full, so that the model and the buckets mean the same moment."""


@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(4)])),
        min_size=1,
        max_size=3,
    ),
    steps=st.lists(st.tuples(EIGHTHS, st.integers(0, 3)), max_size=40),
)
def test_against_a_bucket_that_is_filled_step_by_step(
    sizes: list[tuple[int, Fraction]], steps: list[tuple[Fraction, int]]
) -> None:
    """The model keeps numbers of tokens, in fractions; a step waits, then takes, or spends on the first bucket."""
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    meter = found.meter("a", [Rate(float(interval), capacity) for capacity, interval in sizes])
    levels, now = [Fraction(capacity) for capacity, _ in sizes], Fraction(1000)
    for elapsed, spent in steps:
        now += elapsed
        levels = [fill(level, *size, elapsed) for level, size in zip(levels, sizes, strict=True)]
        if spent:
            meter.spend(float(now), 0, spent)
            levels[0] -= spent
            continue
        passes = all(level >= 1 for level in levels)
        assert (meter.take(float(now)) is None) is passes
        levels = [level - passes for level in levels]


def test_keys_do_not_meet(either: Buckets) -> None:
    assert [taken(either, f"key {index}", Rate(NEVER, 1), 1.0, 2) for index in range(200)] == [1] * 200


def test_an_entry_is_used_again_when_its_bucket_is_full() -> None:
    """A section of one group: there is tolerance for GROUP buckets that are not full, and for any number over time."""
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    for moment in range(10):
        now = moment * 10.0 + 1.0
        assert [taken(found, f"{moment} {index}", Rate(1.0, 2), now, 3) for index in range(GROUP)] == [2] * GROUP
        assert [taken(found, f"{moment} {index}", Rate(1.0, 2), now, 3) for index in range(GROUP)] == [0] * GROUP


def test_a_meter_finds_its_bucket_again_after_another_had_its_entry() -> None:
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    meter = found.meter("mine", [Rate(1.0, 2)])
    assert [meter.take(1.0) is None for _ in range(3)] == [True, True, False]
    for index in range(GROUP):
        taken(found, f"other {index}", Rate(100.0, 1), 50.0, 1)
    assert [meter.take(200.0) is None for _ in range(3)] == [True, True, False]


def test_more_than_there_is_room_for_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    for index in range(GROUP + 5):
        assert taken(found, f"{index}", Rate(100.0 + index, 1), 1.0, 2) == 1
    assert [record.message for record in caplog.records] == [
        "more rate limits are in use than can be counted: the one nearest to full begins anew"
    ]
    assert taken(found, f"{GROUP - 1}", Rate(100.0 + GROUP - 1, 1), 1.0, 1) == 0  # the farthest stayed


def test_what_is_full_makes_room_beside_what_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is said while there is an entry that nobody needs, wherever it stands."""
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    for index in range(GROUP):
        assert taken(found, f"{index}", Rate(1000.0 if index % 2 else 1.0, 1), 1.0, 1) == 1
    for index in range(GROUP // 2):
        assert taken(found, f"new {index}", Rate(1000.0, 1), 10.0, 2) == 1
    assert caplog.records == []
    assert [taken(found, f"{index}", Rate(1000.0, 1), 11.0, 1) for index in range(1, GROUP, 2)] == [0] * (GROUP // 2)


def test_a_sign_beside_buckets_changes_none_of_them() -> None:
    found = Buckets(memoryview(bytearray(GROUP * 16)), None)
    rate, signs = Rate(NEVER, 1), [found.sign(f"sign {index}") for index in range(4)]
    for index in range(8):
        assert taken(found, f"{index}", rate, 1.0, 1) == 1
        if index % 2:
            assert signs[index // 2].put(1.0)
    for turn in range(3):
        assert [taken(found, f"{index}", rate, 2.0, 1) for index in range(8)] == [0] * 8
        assert [sign.put(2.0) for sign in signs] == [False] * 4
        assert [sign.take_down(3.0) for sign in signs] == [True] * 4
        assert [sign.take_down(3.0) for sign in signs] == [False] * 4, turn
        assert [sign.put(3.0) for sign in signs] == [True] * 4


def test_a_bucket_that_fills_faster_than_digits_tell_holds_no_more_than_its_capacity() -> None:
    assert taken(Buckets.local(), "a", Rate(1e-7, 20_000), 86400.0, 20_010) == 20_000


def test_two_mappings_are_one_count(region: Region) -> None:
    first, second = Buckets.of(region), Buckets.of(Region.attach(region.fd))
    assert taken(first, "a", Rate(NEVER, 5), 1.0, 3) == 3
    assert taken(second, "a", Rate(NEVER, 5), 1.0, 5) == 2


def test_of_all_who_put_up_a_sign_one_has_changed_something(region: Region) -> None:
    one, other = Buckets.of(region).sign("lost"), Buckets.of(region).sign("lost")
    assert not one.take_down(1.0)
    assert (one.put(1.0), other.put(1.1), one.put(1.2)) == (True, False, False)
    assert not Buckets.of(region).sign("another").take_down(1.3)
    assert (other.take_down(2.0), one.take_down(2.1)) == (True, False)
    assert one.put(3.0)
    assert other.put(3.0 + STANDS + 1), "nobody has put it up for long"


@pytest.mark.parametrize("sections", [{}, buckets.SECTIONS])
def test_without_locks_each_process_counts_for_itself(
    sections: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    _, region = Commits.create(1, **sections)
    found = Buckets.of(region)
    assert "local" in repr(found) and "counted for each worker" in caplog.text
    assert taken(found, "a", Rate(NEVER, 2), 1.0, 3) == 2
    region.close()


# --- several processes

TAKE_ALL = """
me, capacity = int(sys.argv[2]), int(sys.argv[3])
take = buckets.meter("a", [Rate(1e9, capacity)] * int(sys.argv[4])).take
print("ready", flush=True)
while counts[15] == 0:
    time.sleep(0.0005)
while take(1.0) is None:
    counts[me] += 1
"""


@pytest.mark.parametrize("limits", [1, 3])
def test_processes_together_never_exceed_and_get_all(region: Region, limits: int) -> None:
    capacity = 20_000
    children = [shared_buckets.spawn(region, TAKE_ALL, index, capacity, limits) for index in range(3)]
    counts = region.section(shared_buckets.COUNTS).cast("Q")
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    counts[15] = 1
    assert [child.wait() for child in children] == [0] * 3
    assert sum(counts[:15]) == capacity
    for child in children:
        child.communicate()


def test_takers_that_are_killed_take_nothing_along(region: Region) -> None:
    """Whenever the end comes, the others go on, and what was counted is right but for what the dead could not tell."""
    capacity, kills = 30_000, 4
    counts = region.section(shared_buckets.COUNTS).cast("Q")
    counts[15] = 1
    survivor = shared_buckets.spawn(region, TAKE_ALL, 14, capacity, 1)
    assert survivor.stdout is not None and survivor.stdout.readline() == "ready\n"
    for index in range(kills):
        child = shared_buckets.spawn(region, TAKE_ALL, index, capacity, 1)
        while counts[index] < 200 and child.poll() is None:
            os.sched_yield()
        child.send_signal(signal.SIGKILL)
        child.communicate()
    survivor.communicate(timeout=PATIENCE)
    assert survivor.returncode == 0
    assert capacity - kills <= sum(counts[:15]) <= capacity
