"""Counts of attached routes change a Gateway's status a thousand times, and are written a few times: soon after the
last change, and never at the cost of anything else in the status."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from controlplane.kube.writing.bursts import (
    ENDS,
    LONGEST,
    LONGEST_OF_COUNTS,
    OVER,
    QUIET,
    Bursts,
    changes,
    only_counts_differ,
)
from controlplane.kube.writing.schedule import Schedule
from controlplane.translate.status.statuses import StatusKey, StatusWrite

KEY: StatusKey = ("Gateway", "shop", "web")
TICK = 0.001
ANSWER = 0.004
"""Seconds until the API server has answered a write."""
MOST = 15
SOON = 0.045 + 2 * ANSWER
"""Seconds: so that counts are right 60 ms after the last change, with the time that it and the write travel."""


def body(attached: int, programmed: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Programmed", "status": programmed}]
    return {"conditions": conditions, "listeners": [{"name": "http", "attachedRoutes": attached}]}


class Clock:
    """A Gateway whose status changes at given times, the schedule, and an API server that answers after a while and
    reports each new version: sooner or later than it answers."""

    def __init__(
        self, answer: Callable[[], float] = lambda: ANSWER, report: Callable[[], float] = lambda: ANSWER / 2
    ) -> None:
        self.schedule = Schedule(lambda: 0.0)
        self.written: list[tuple[float, dict[str, Any]]] = []
        """When a write was sent, and of what."""
        self.refused = 0
        self._answer, self._report = answer, report
        self._version, self._status = 1, dict[str, Any]()
        """Of the object at the API server."""
        self._known: tuple[int, dict[str, Any]] = (1, {})
        """The same, as far as it was reported."""
        self._wanted = dict[str, Any]()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []

    def run(self, changes: Iterable[tuple[float, dict[str, Any]]], until: float = 0.0) -> None:
        """All changes, then until nothing is to be written."""
        for at, wanted in changes:
            self._advance(at)
            self._wanted = wanted
            self._want(at)
        self._advance(until or float("inf"))

    def _want(self, now: float) -> None:
        version, status = self._known
        self.schedule.want(KEY, None if status == self._wanted else StatusWrite(self._wanted, str(version)), now)

    def _advance(self, end: float) -> None:
        """Everything that is due before `end`."""
        while True:
            due = self.schedule.next_due()
            event = self._events[0][0] if self._events else None
            first = min((each for each in (due, event) if each is not None), default=None)
            if first is None or first >= end:
                return
            if first == event:
                heapq.heappop(self._events)[2](first)
            elif (taken := self.schedule.take(first)) is not None:
                self._write(first, *taken)

    def _write(self, now: float, key: StatusKey, write: StatusWrite) -> None:
        self.written.append((now, dict(write.body)))
        if write.resource_version != str(self._version):
            self.refused += 1
            self._later(now + self._answer(), lambda at: self.schedule.conflicted(key, at))
            return
        self._version += 1
        made, self._status = self._version, dict(write.body)
        self._later(now + self._answer(), lambda at: self.schedule.written(key, write, str(made), at))
        self._tell(now)

    def _tell(self, now: float) -> None:
        made = self._version, self._status

        def told(at: float) -> None:
            if made[0] > self._known[0]:  # reports come in order
                self._known = made
                self._want(at)

        self._later(now + self._report(), told)

    def _later(self, at: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at, len(self.written) * 1000 + len(self._events), event))

    def undo(self, at: float) -> None:
        """Somebody else takes away what we wrote."""
        self._advance(at)
        self._version, self._status = self._version + 1, {}
        self._tell(at)


def counted(times: Iterable[float]) -> list[tuple[float, dict[str, Any]]]:
    return [(at, body(number)) for number, at in enumerate(times, 1)]


def spaced(gap: float, count: int) -> list[float]:
    return [number * gap for number in range(count)]


@pytest.mark.parametrize("seconds", [1.0, 3.0, 5.0, 8.0, 12.0, 17.0, 33.0, 60.0, 180.0, 480.0])
def test_a_thousand_routes_cost_fifteen_writes_at_most(seconds: float) -> None:
    clock = Clock()
    clock.run(counted(spaced(seconds / 1000, 1000)))
    assert len(clock.written) <= MOST
    assert clock.written[-1][1] == body(1000)


@pytest.mark.parametrize("seed", range(40))
def test_a_thousand_routes_that_come_unevenly_cost_fifteen_writes_at_most(seed: int) -> None:
    """Pauses of creator, API server and controller of any length below the end of a burst, in the worst places."""
    draw = random.Random(seed)
    often, lasts = draw.choice([0.03, 0.3, 1.0]), draw.choice([17.0, 60.0, 600.0])
    times, now = [], 0.0
    for left in range(1000, 0, -1):
        times.append(now)
        pause = draw.choice([0.0, 0.001, draw.uniform(0.02, ENDS - TICK) if draw.random() < often else 0.002])
        if now + pause < lasts - left * 0.001:
            now += pause
    clock = Clock(lambda: draw.uniform(0.001, 0.2), lambda: draw.uniform(0.001, 0.2))
    clock.run(counted(times))
    assert len(clock.written) <= MOST, [at for at, _ in clock.written]
    assert clock.refused == 0
    assert clock.written[-1][1] == body(1000)


def test_a_burst_of_some_seconds_may_pause_a_few_times_and_its_end_is_written_soon() -> None:
    """Pauses of 60 ms: with each of them the next one has to be longer to be the end."""
    times = [start + each for start in range(5) for each in spaced(0.01, 95)]
    clock = Clock()
    clock.run(counted(times))
    assert len(clock.written) <= MOST
    assert clock.written[-1][0] <= times[-1] + 0.12 + 2 * ANSWER


def test_conditions_that_changed_just_before_do_not_delay_counts() -> None:
    """A Gateway that is created together with its routes: its conditions change a few times first."""
    first = [(number * 0.1, body(0, str(number))) for number in range(8)]
    then = [(0.8 + number * 0.01, body(number, "7")) for number in range(1, 30)]
    clock = Clock()
    clock.run([*first, *then])
    assert clock.written[-1][1] == body(29, "7")
    assert clock.written[-1][0] <= then[-1][0] + QUIET + 2 * ANSWER


def as_made(count: int, seed: int) -> tuple[Clock, float]:
    """A creator that makes one each 8 ms, more or less, with pauses that are longer than the first moment of quiet; and
    when it made the last."""
    draw = random.Random(seed)
    pauses = {draw.randrange(count) for _ in range(count // 200)}
    gaps = (
        draw.gammavariate(3, 0.008 / 3) + (draw.uniform(0.03, 0.1) if each in pauses else 0.0) for each in range(count)
    )
    times = [*itertools.accumulate(gaps)]
    clock = Clock(lambda: draw.uniform(0.003, 0.012), lambda: draw.uniform(0.002, 0.012))
    clock.run(counted(times))
    return clock, times[-1]


@pytest.mark.parametrize("count", [60, 300, 700, 1000])
def test_a_count_is_written_soon_after_a_burst_as_creators_make_it(count: int) -> None:
    """Where many pauses were long it may be later: there is no telling these from the end."""
    late = 0
    for seed in range(10):
        clock, end = as_made(count, seed)
        assert clock.written[-1][1] == body(count)
        assert clock.written[-1][0] <= end + ENDS + 2 * ANSWER
        assert len(clock.written) <= MOST
        late += clock.written[-1][0] > end + SOON
    assert late <= 2


@pytest.mark.parametrize("gap", [0.001, 0.005, 0.02])
@pytest.mark.parametrize("count", [2, 100, 1000])
def test_a_count_is_written_as_soon_as_a_steady_burst_is_over(gap: float, count: int) -> None:
    clock, times = Clock(), spaced(gap, count)
    clock.run(counted(times))
    at, last = clock.written[-1]
    assert last == body(count)
    assert at <= times[-1] + QUIET + 2 * ANSWER


def test_a_burst_without_end_is_written_again_and_again() -> None:
    clock = Clock()
    clock.run(counted(spaced(0.02, 6000)))
    times = [at for at, _ in clock.written]
    assert max(later - sooner for sooner, later in itertools.pairwise(times)) <= LONGEST_OF_COUNTS + 2 * ANSWER + 0.02
    assert len(times) <= 6 * MOST


def in_an_uneven_burst() -> tuple[Schedule, float]:
    """A count changes each 100 ms: the last one waits for a quiet of 120 ms. Also: when that one came."""
    schedule, now, version = Schedule(lambda: 0.0), 0.0, 1
    for number in range(40):
        now = number * 0.1
        while (due := schedule.next_due()) is not None and due <= now:
            if (taken := schedule.take(due)) is not None:
                version += 1
                schedule.written(KEY, taken[1], str(version), due + ANSWER)
        schedule.want(KEY, StatusWrite(body(number), str(version)), now)
    assert schedule.next_due() == pytest.approx(now + 0.12)
    return schedule, now


def test_a_condition_that_changes_again_and_again_in_an_uneven_burst_is_written_after_half_a_second() -> None:
    schedule, now = in_an_uneven_burst()
    dues = []
    for number in range(100):
        schedule.want(KEY, StatusWrite(body(40, str(number)), "9"), now + 0.01 * number)
        dues.append(schedule.next_due())
    assert max(due for due in dues if due is not None) == pytest.approx(now + LONGEST)


def test_conditions_that_are_written_do_not_make_a_burst_longer() -> None:
    """It is over so long after the last count."""
    schedule, now = in_an_uneven_burst()
    taken = schedule.take(now + 0.12)
    assert taken is not None
    schedule.want(KEY, StatusWrite(body(39, "False"), "98"), now + 0.13)
    schedule.written(KEY, taken[1], "98", now + 0.5)
    taken = schedule.take(now + 0.5 + QUIET)
    assert taken == (KEY, StatusWrite(body(39, "False"), "98"))
    schedule.written(KEY, taken[1], "99", now + 0.6)
    later = now + OVER + 0.1
    schedule.want(KEY, StatusWrite(body(40, "False"), "99"), later)
    assert schedule.next_due() == pytest.approx(later + QUIET)


def test_a_condition_does_not_wait_for_the_end_of_a_burst_of_counts() -> None:
    """The refusal of a proxy is in the status within two seconds, whatever else changes."""
    changes = [(at, body(number, "True" if at < 20.0 else "False")) for number, at in enumerate(spaced(0.02, 2000))]
    clock = Clock()
    clock.run(changes)
    shown = next(at for at, each in clock.written if each["conditions"][0]["status"] == "False")
    assert shown <= 20.0 + LONGEST + ANSWER + 0.02


def test_after_a_rest_everything_begins_anew() -> None:
    clock = Clock()
    uneven = [number * 0.03 for number in range(60)]
    later = uneven[-1] + OVER + 0.1
    clock.run(counted([*uneven, later]))
    assert clock.written[-1] == (pytest.approx(later + QUIET), body(61))


def test_changes_that_come_and_go_leave_nothing() -> None:
    """A route that is attached and detached: the status is what is written there already."""
    clock = Clock()
    clock.run([(0.0, body(1))], until=1.0)
    clock.schedule.want(KEY, StatusWrite(body(2), "2"), 1.0)
    clock.schedule.want(KEY, None, 1.01)
    assert (len(clock.schedule), clock.schedule.next_due()) == (0, None)


def test_a_write_that_failed_is_not_a_burst() -> None:
    schedule = Schedule(lambda: 0.0)
    schedule.want(KEY, StatusWrite(body(1), "1"), 0.0)
    assert schedule.take(1.0) is not None
    wait = schedule.failed(KEY, 1.0)
    schedule.want(KEY, StatusWrite(body(2), "1"), 1.01)
    assert schedule.next_due() == 1.0 + wait
    taken = schedule.take(1.0 + wait)
    assert taken == (KEY, StatusWrite(body(2), "1"))
    schedule.want(KEY, StatusWrite(body(3), "1"), 2.0)
    schedule.written(KEY, taken[1], "2", 2.0)
    schedule.want(KEY, StatusWrite(body(4), "2"), 2.01)  # its failures are over: it moves the write again
    assert schedule.next_due() == pytest.approx(2.01 + QUIET)


def test_what_is_remembered_of_bursts_is_bounded_by_the_last_moments() -> None:
    bursts = Bursts()
    for number in range(10_000):
        now = number * 0.01
        bursts.wrote(("Gateway", "shop", str(number)), body(1), now, now, is_count=False)
    assert len(bursts) <= OVER / 0.01 + 2


def test_only_statuses_with_listeners_have_bursts() -> None:
    bursts = Bursts()
    assert bursts.wrote(("HTTPRoute", "shop", "cart"), {"parents": []}, 0.0, 0.0, is_count=False) is None
    assert len(bursts) == 0


def several(*attached: int) -> dict[str, Any]:
    return {"listeners": [{"name": f"l{number}", "attachedRoutes": each} for number, each in enumerate(attached)]}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (body(1), body(2), 1),
        (body(1), body(8), 7),
        (body(8), body(1), 7),
        (several(1, 5), several(4, 3), 3),  # each route may be at both
        (several(1, 5), several(1, 5), 1),  # one came and one went
        ({"listeners": [{"name": "a"}]}, {"listeners": [{"name": "a", "attachedRoutes": 2}]}, 2),
    ],
)
def test_how_many_routes_came_and_went_at_least(one: dict[str, Any], other: dict[str, Any], expected: int) -> None:
    assert changes(one, other) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (body(2), True),
        (body(1, "False"), False),
        ({**body(2), "addresses": []}, False),
        ({**body(2), "listeners": []}, False),
        ({**body(2), "listeners": [{"name": "https", "attachedRoutes": 2}]}, False),
        ({**body(2), "listeners": [{"name": "http", "attachedRoutes": 2, "conditions": []}]}, False),
        ({**body(2), "listeners": [*body(2)["listeners"], {"name": "b", "attachedRoutes": 0}]}, False),
    ],
)
def test_what_is_a_change_of_counts_alone(other: dict[str, Any], expected: bool) -> None:
    assert only_counts_differ(body(1), other) is expected
    assert only_counts_differ(other, body(1)) is expected
