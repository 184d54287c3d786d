"""Buckets for each key: what a key gets, whatever places keys lose, and what several processes count together."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.link import keyed, locks, tables
from dataplane.link.buckets import DIRECTORY, GROUP, TABLES, Buckets, Rate
from dataplane.link.keyed import Limit
from dataplane.link.shared import Region
from dataplane.link.tables import IDLE, WAYS
from tests.fakes import shared_buckets

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")

NEVER = 1e9
Ask = Callable[[float, str], bool]


def small(groups: int = 1) -> Buckets:
    """Tables of so many groups."""
    size = DIRECTORY + TABLES * groups * WAYS * 16
    return Buckets(memoryview(bytearray(GROUP * 16)), None, memoryview(bytearray(size)))


def asker(buckets: Buckets, rate: Rate, target: str = "r", policy: str = "p") -> Ask:
    take = keyed.meter_of(buckets, target, policy, [Limit(rate, 0)]).take
    return lambda now, key: take(now, [key.encode()]) is None


def got(ask: Ask, now: float, key: str, tries: int) -> int:
    return sum(ask(now, key) for _ in range(tries))


@pytest.fixture
def region() -> Iterator[Region]:
    with shared_buckets.shared() as made:
        yield made


@pytest.fixture(params=["local", "shared"])
def either(request: pytest.FixtureRequest, region: Region) -> Buckets:
    return Buckets.local() if request.param == "local" else Buckets.of(region)


def test_each_key_has_a_bucket_that_fills_all_the_time(either: Buckets) -> None:
    ask = asker(either, Rate(interval=0.5, capacity=3))
    assert [got(ask, 100.0, key, 5) for key in "ab"] == [3, 3]
    assert got(ask, 100.49, "a", 1) == 0
    assert [got(ask, 100.5, key, 2) for key in "ab"] == [1, 1]
    assert got(ask, 101.25, "a", 3) == 1
    assert [got(ask, 900.0, key, 5) for key in "ab"] == [3, 3]


def test_a_refusal_says_when_each_is_full(either: Buckets) -> None:
    limits = [Limit(Rate(2.0, 1), 0), Limit(Rate(1.0, 5)), Limit(Rate(3.0, 2), 1)]
    take = keyed.meter_of(either, "r", "p", limits).take
    assert take(10.0, [b"a", b"b"]) is None
    assert take(10.5, [b"a", b"b"]) == pytest.approx([1.5, 0.5, 2.5])
    assert take(10.5, [b"c", b"b"]) is None
    assert take(10.5, [b"d", b"b"]) == pytest.approx([0.0, 1.5, 5.5])
    assert take(12.0, [b"a", b"c"]) is None


# --- the law


class Exact:
    """For each key a bucket, in a memory without end. It is only shown what was granted."""

    def __init__(self, interval: float, capacity: int) -> None:
        self.interval, self.capacity = interval, capacity
        self.known: dict[str, tuple[float, float]] = {}

    def level(self, now: float, key: str) -> float:
        level, last = self.known.get(key, (float(self.capacity), now))
        return min(float(self.capacity), level + (now - last) / self.interval)

    def take(self, now: float, key: str) -> None:
        self.known[key] = self.level(now, key) - 1, now


PAUSES = st.sampled_from([0.0, 0.0, 0.0, 0.125, 1.0, 8.0, 100.0])
STEPS = st.lists(st.tuples(PAUSES, st.integers(0, 3 * WAYS), st.integers(1, 4)), max_size=120)
"""A pause; then keys from this number on, so many of them, or one of them again and again."""


@given(
    capacity=st.integers(1, 4),
    interval=st.sampled_from([0.5, 1.0, 4.0]),
    steps=STEPS,
    crowds=st.lists(st.integers(0, 5 * WAYS), max_size=4),
)
@example(capacity=1, interval=4.0, steps=[(0.0, 0, 1), (0.0, 0, 1), (0.125, 0, 4)] * 9, crowds=[1, 70, 140])
def test_no_key_gets_more_than_its_own_bucket_would_grant(
    capacity: int, interval: float, steps: list[tuple[float, int, int]], crowds: list[int]
) -> None:
    """Whatever is granted, an exact bucket has it: so in no time a key gets more than a burst and what the time gives.
    Between the steps come crowds of invented keys, which take all places of the one group."""
    ask, exact, now = asker(small(), Rate(interval, capacity)), Exact(interval, capacity), 1000.0
    for number, (pause, first, count) in enumerate(steps):
        now += pause
        keys = [f"{first}"] * count if first % 2 else [f"{first + more}" for more in range(count)]
        if number < 3 * len(crowds) and number % 3 == 1:
            keys += [f"crowd {key}" for key in range(crowds[number // 3])]
        for key in keys:
            if ask(now, key):
                assert exact.level(now, key) >= 0.998, f"{key} at {now}"
                exact.take(now, key)


def test_who_drives_his_bucket_out_with_invented_keys_gains_nothing() -> None:
    """Cycled for an hour: one burst, and then what the rate gives."""
    ask = asker(small(), Rate(interval=36.0, capacity=10))
    granted, invented = 0, 0
    for second in range(3600):
        now = 5000.0 + second
        for _ in range(WAYS * 2 if second % 60 == 0 else 0):
            invented += 1
            ask(now, f"invented {invented}")
        granted += got(ask, now, "mine", 3)
    assert granted <= 10 + 100


def test_all_keys_together_get_what_the_places_fill() -> None:
    """Who invents keys without end does not get past the limit without end: the table as a whole is one."""
    ask = asker(small(), Rate(interval=10.0, capacity=2))
    granted = sum(ask(1000.0 + step / 100, f"{step}") for step in range(100 * 100))
    assert granted <= WAYS * (2 + 100 / 10)


def test_in_groups_with_room_every_key_has_its_share_whole() -> None:
    """Up to the last place; a key that is full again needs none."""
    ask = asker(small(), Rate(interval=10.0, capacity=3))
    for turn in range(5):
        now = 1000.0 + turn * 50.0
        keys = [f"{turn} {number}" for number in range(WAYS)]
        assert [got(ask, now, key, 4) for key in keys] == [3] * WAYS
        assert [got(ask, now + 10.0, key, 2) for key in keys] == [1] * WAYS
        assert [got(ask, now + 20.0, key, 2) for key in keys] == [1] * WAYS


def test_a_key_too_many_begins_with_the_level_of_the_one_that_is_nearest_to_full() -> None:
    ask = asker(small(), Rate(interval=10.0, capacity=3))
    for number in range(WAYS):
        got(ask, 1000.0, f"{number}", 2 if number == 7 else 3)
    assert [got(ask, 1000.0, key, 2) for key in ("new", "7", "newer")] == [1, 0, 0]
    assert [got(ask, 1010.0, key, 2) for key in ("new", "0")] == [1, 1]


# --- places


def test_keys_are_told_apart_by_a_secret_that_each_proxy_makes() -> None:
    """Who knows the program cannot say which keys share a group."""
    places = [
        tables.placing(tables.Tables(buckets).secret(), "r")(b"key") for buckets in (small(), small()) for _ in range(2)
    ]
    assert places[0] == places[1] != places[2] == places[3]
    assert places[0][0] != places[2][0]


def test_a_secret_that_has_a_zero_in_it_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter((b"\0" + bytes(range(15)), b"another 16 bytes"))
    monkeypatch.setattr(tables.os, "urandom", lambda size: next(drawn))  # type: ignore[attr-defined]  # the module's own
    buckets = small()
    assert [tables.Tables(buckets).secret() for _ in range(2)] == [b"\0" + bytes(range(15))] * 2


def test_a_key_of_each_target_is_its_own_in_one_table() -> None:
    buckets = small()
    one, other, again = (asker(buckets, Rate(NEVER, 2), target) for target in ("r", "s", "r"))
    assert [got(one, 1.0, "a", 1), got(other, 1.0, "a", 3), got(again, 1.0, "a", 3)] == [1, 2, 1]
    assert sum(1 for word in buckets.tables()[:DIRECTORY].cast("Q")[2::3] if word) == 1


def test_policies_do_not_take_places_from_each_other() -> None:
    """However many keys one of them has."""
    buckets = small()
    crowded, quiet = asker(buckets, Rate(100.0, 1), policy="p"), asker(buckets, Rate(100.0, 2), policy="q")
    for number in range(10 * WAYS):
        crowded(1.0, f"{number}")
    assert [got(quiet, 1.0, f"{number}", 3) for number in range(WAYS // 2)] == [2] * (WAYS // 2)


def test_a_part_of_two_digests_is_no_digest() -> None:
    """Bytes across two places look like a third one's digest."""
    found = tables.Tables(small())
    table = tables.Table(found, "p", Rate(NEVER, 1))
    assert table.is_there(1.0)
    first, second, third = 0x1111111122222222, 0x3333333344444444, 0x4444444411111111
    at = table.find((first, 0, 0), 1.0), table.find((second, 0, 1), 1.0)
    for word in at:
        table.moments[word] = 99.0
    across = table.find((third, 0, 0), 1.0)
    assert across not in at and table.moments[across] == 1.0
    assert [table.find((tag, 0, 5), 1.0) for tag in (first, second, third)] == [*at, across]


# --- more policies than tables


def test_a_table_is_another_s_when_its_buckets_are_full() -> None:
    """Whoever had it finds another one, and has lost nothing."""
    buckets, rate = small(), Rate(1.0, 5)
    first = asker(buckets, rate, policy="first")
    assert got(first, 1000.0, "a", 9) == 5
    for number in range(3 * TABLES):
        now = 1000.0 + number
        assert got(asker(buckets, rate, policy=f"{number}"), now, "a", 9) == 5
    assert got(first, 1000.0 + 3 * TABLES, "a", 9) == 5
    owners = buckets.tables()[:DIRECTORY].cast("Q")[2::3]
    assert sum(1 for word in owners if word) < 12  # tables that are full again are used before new ones


def test_a_table_is_given_away_two_seconds_after_its_last_bucket_is_full() -> None:
    """Of each table by its own time: one second for uses that were not noted, and one to be sure."""
    found = tables.Tables(small())
    spans = {1: 50.0, 2: NEVER, 3: 5.0, 4: 20.0}
    assert [found.claim(owner, span, 1000.0) for owner, span in spans.items()] == [0, 1, 2, 3]
    assert [found.claim(owner, 1.0, 1000.0) for owner in spans] == [0, 1, 2, 3], "whoever has one keeps it"
    assert [found.claim(11, NEVER, 1007.0), found.claim(12, NEVER, 1007.5)] == [4, 2]
    assert [found.claim(owner, NEVER, 1052.5) for owner in (13, 14, 15)] == [0, 3, 5]
    assert [found.claim(owner, NEVER, 1052.5) for owner in (2, 11, 12)] == [1, 4, 2]


def test_who_gets_a_table_gets_it_empty() -> None:
    """Also one whose buckets were not full again, and no other table is touched."""
    buckets = small()
    asks = [asker(buckets, Rate(NEVER, 2), policy=f"{number}") for number in range(TABLES)]
    for ask in asks:
        assert [got(ask, 1000.0, f"{key}", 3) for key in range(WAYS)] == [2] * WAYS
    late = 1001.0 + IDLE
    for ask in asks[:7] + asks[8:]:
        assert not ask(late, "0")
    heir = asker(buckets, Rate(NEVER, 2), target="s", policy="heir")
    assert [got(heir, late, f"new {key}", 3) for key in range(WAYS)] == [2] * WAYS
    assert [ask(late, "1") for ask in asks[:7] + asks[8:]] == [False] * (TABLES - 1)


def test_a_table_that_was_used_within_the_last_minute_is_nobody_elses() -> None:
    found = tables.Tables(small())
    for owner in range(1, TABLES + 1):
        found.claim(owner, NEVER, 1000.0 + owner / 1024)
    assert found.claim(999, NEVER, 1000.0 + 1 / 1024 + IDLE) == -1
    assert found.claim(999, NEVER, 1000.0 + 2 / 1024 + IDLE) == 0


def test_a_use_is_noted_once_in_a_second() -> None:
    found = tables.Tables(small())
    table = tables.Table(found, "p", Rate(1.0, 5))
    noted = []
    for now in (1000.0, 1000.5, 1001.0, 1001.25, 1001.5, 1003.0):
        assert table.is_there(now)
        noted.append(table.moments[table.owner + 1])
    assert noted == [1000.0, 1000.0, 1000.0, 1001.25, 1001.25, 1003.0]
    assert table.moments[table.owner + 2] == 5.0, "the time in which its buckets fill"
    other = tables.Table(found, "q", Rate(10.0, 6))
    assert other.is_there(1003.0) and other.moments[other.owner + 2] == 60.0


@pytest.mark.parametrize("beside", [[], [Limit(Rate(NEVER, 99))]], ids=["alone", "beside another"])
def test_the_last_moment_at_which_a_key_has_a_token(beside: list[Limit]) -> None:
    rate = Rate(1.0, 1)
    for is_taken in (True, False):
        buckets = small()
        take = keyed.meter_of(buckets, "r", "p", [Limit(rate, 0), *beside]).take
        assert take(0.0, [b"a"]) is None
        moments = buckets.tables().cast("d")
        (at,) = [at for at in range(DIRECTORY // 8, len(moments)) if moments[at] == 1.0]
        moments[at] = rate.tolerance if is_taken else math.nextafter(rate.tolerance, 1.0)
        assert (take(0.0, [b"a"]) is None) is is_taken


def test_more_policies_than_tables_count_keys_together(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody loses what is in use; who has none is limited as if there were no key, and the log says so."""
    buckets, rate = small(), Rate(NEVER, 2)
    asks = [asker(buckets, rate, target=f"{number}", policy=f"{number}") for number in range(TABLES + 1)]
    assert [got(ask, 1000.0, "a", 3) for ask in asks] == [2] * (TABLES + 1)
    assert "more than 128 policies" in caplog.text
    assert got(asks[-1], 1000.0, "b", 3) == 0
    limits = [Limit(rate, 0), Limit(rate)]
    take = keyed.meter_of(buckets, "last", "last", limits).take
    assert [take(1000.0, [key]) is None for key in (b"a", b"b", b"c")] == [True, True, False]
    assert [got(ask, 1000.0, "a", 3) for ask in asks] == [0] * (TABLES + 1)

    late = 1000.0 + IDLE + 2
    for ask in asks[1:-1]:
        ask(late, "a")
    assert got(asks[-1], late, "b", 3) == 2  # the table of the first, which nobody has used for longest
    assert [got(ask, late, "a", 1) for ask in asks[1:-1]] == [0] * (TABLES - 1)
    assert got(asks[0], late, "a", 9) == 2  # none is left: its keys together, as the page says


# --- locks


class Guard:
    """A lock that notes when it is held; `late`: it was taken over."""

    def __init__(self, held: list[int], number: int) -> None:
        self.index, self.number, self.held = 0, number, held
        self.word = memoryview(bytearray(8)).cast("Q")
        self.taken = 0

    def try_take(self, _blocking: bool) -> bool:
        return False

    def wait(self) -> None:
        assert self.number not in self.held
        assert not self.held or self.held[-1] < self.number, "out of order: two workers could wait for each other"
        self.held.append(self.number)
        self.word[0] = os.getpid()
        self.taken += 1

    def give(self) -> None:
        self.held.remove(self.number)

    def late(self) -> None:
        raise AssertionError("nobody took it over")


class Guards:
    def __init__(self, count: int) -> None:
        self.held: list[int] = []
        self.made = [Guard(self.held, number) for number in range(count)]

    def __len__(self) -> int:
        return len(self.made)

    def __getitem__(self, number: int) -> Guard:
        return self.made[number]


@pytest.mark.parametrize("count", [8, 32])
@pytest.mark.parametrize(
    "limits",
    [
        [Limit(Rate(1.0, 9), 0)],
        [Limit(Rate(1.0, 9), 0), Limit(Rate(1.0, 9), 1)],
        [Limit(Rate(1.0, 9), 0), Limit(Rate(1.0, 9)), Limit(Rate(1.0, 9), 1)],
    ],
)
def test_whatever_touches_a_bucket_holds_its_lock(limits: list[Limit], count: int) -> None:
    guards = Guards(count)
    keyed_section = memoryview(bytearray(DIRECTORY + TABLES * 2 * count * WAYS * 16))
    buckets = Buckets(memoryview(bytearray(GROUP * 16)), cast(locks.Locks, guards), keyed_section)
    take = keyed.meter_of(buckets, "r", "p", limits).take
    groups, size = 2 * count, WAYS * 16
    places = [keyed_section[at : at + size] for at in range(DIRECTORY, DIRECTORY + 2 * groups * size, size)]
    for number in range(50 * count):
        before = [bytes(place) for place in places] if number % 20 == 0 else []
        taken = [guard.taken for guard in guards.made]
        take(1000.0, [b"%d" % number, b"%d" % (number * 7)])
        assert guards.held == []
        changed = {at % groups % count for at, was in enumerate(before) if was != places[at]}
        assert changed <= {guard.number for guard in guards.made if guard.taken != taken[guard.number]}
    assert all(guard.taken for guard in guards.made)  # keys are spread over the locks


# --- several processes

TAKE_ALL = """
from dataplane.link import keyed
me, keys, capacity = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
limits = [keyed.Limit(Rate(1e9, capacity), 0)]
if int(sys.argv[5]):
    limits += [keyed.Limit(Rate(1e9, 1_000_000)), keyed.Limit(Rate(1e9, capacity * keys), 1)]
take = keyed.meter_of(buckets, "r", "p", limits).take
print("ready", flush=True)
while counts[15] == 0:
    time.sleep(0.0005)
for turn in range(capacity + 1):
    for key in range(keys):
        counts[me] += take(1.0, [b"%d" % key, b"x"]) is None
"""


@pytest.mark.parametrize("several", [0, 1])
def test_processes_together_never_exceed_and_get_all(region: Region, several: int) -> None:
    keys, capacity = 50, 60
    children = [shared_buckets.spawn(region, TAKE_ALL, index, keys, capacity, several) for index in range(3)]
    counts = region.section(shared_buckets.COUNTS).cast("Q")
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    counts[15] = 1
    assert [child.wait() for child in children] == [0] * 3
    assert sum(counts[:15]) == keys * capacity
    for child in children:
        child.communicate()


# --- many


@pytest.mark.slow
def test_a_hundred_thousand_keys_have_their_share_each() -> None:
    """None begins with less, none gets more, in turns and in random order, and a noisy one harms nobody."""
    buckets, rate, keys = Buckets.local(), Rate(interval=1.0, capacity=2), 100_000
    ask, granted = asker(buckets, rate), Counter[int]()
    for turn in range(3):
        for number in range(keys):
            key = (number * 7919 + turn) % keys
            granted[key] += ask(1000.0 + turn / 10, f"198.51.{key}")
            if number % 10 == 0:
                granted[-1] += ask(1000.0 + turn / 10, "noisy")
    assert granted.pop(-1) == 2
    assert set(granted.values()) == {2}
    assert [got(ask, 1001.2, f"198.51.{key}", 2) for key in range(0, keys, 997)] == [1] * 101
