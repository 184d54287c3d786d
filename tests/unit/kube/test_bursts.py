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
    QUIETS,
    Burst,
    Bursts,
    changes,
    only_counts_differ,
)
from controlplane.kube.writing.schedule import LATE, SECOND_LOOK, Schedule
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


LONGEST_WAITS = [
    (1.4, 100, 4, LONGEST),
    (1.5, 100, 4, 1.1544),  # 10 writes for 900 changes that may take 450 seconds, each wait 1.77 times as long
    (20.0, 400, 8, LONGEST_OF_COUNTS),
    (90.0, 500, 8, 15.0),  # 6 writes for 90 seconds more
    (60.0, 100, 8, 25.715),  # 6 writes for 450 seconds, each wait 1.43 times as long
    (2.0, 990, 3, LONGEST),
    (2.0, 990, 14, 10 * ENDS),  # the last write, after all that can come
    (90.0, 1500, 23, LONGEST_OF_COUNTS),  # the second thousand is as the first
]


@pytest.mark.parametrize(("lasted", "changes", "writes", "expected"), LONGEST_WAITS)
def test_how_long_a_count_waits_at_most(lasted: float, changes: int, writes: int, expected: float) -> None:
    burst = Burst(100.0, 100.0 + lasted, body(1), changes, writes=writes)
    assert burst.longest(100.0 + lasted) == pytest.approx(expected, rel=1e-3)


MOMENTS = [
    # 11 writes are left, and of these one is for a second half that lasts as long as the first: a hundred tenths
    (10.0, 500, 3, 10, QUIETS[0]),
    (10.0, 500, 3, 11, QUIETS[1]),
    # three are for nine times as long: 64 tenths
    (10.0, 100, 3, 6, QUIETS[0]),
    (10.0, 100, 3, 7, QUIETS[1]),
    # none is for a fifth that is left, with a fourth of the pauses: four times 121 tenths
    (10.0, 800, 3, 48, QUIETS[0]),
    (10.0, 800, 3, 49, QUIETS[1]),
    # of ten two are for the first 1.5 seconds and two for the rest: 36 tenths
    (0.6, 100, 4, 3, QUIETS[0]),
    (0.6, 100, 4, 4, QUIETS[1]),
    # one to spare, none to spare, and the last but one
    (10.0, 500, 12, 0, QUIETS[0]),
    (10.0, 250, 12, 0, QUIETS[-1]),
    (10.0, 500, 13, 0, ENDS),
]


@pytest.mark.parametrize(("lasted", "changes", "writes", "pauses", "expected"), MOMENTS)
def test_how_long_a_moment_of_quiet_is(lasted: float, changes: int, writes: int, pauses: int, expected: float) -> None:
    """By the pauses that were longer than the shortest."""
    burst = Burst(100.0, 100.0 + lasted, body(1), changes, [pauses] + [0] * (len(QUIETS) - 1), writes)
    assert burst.quiet(100.0 + lasted) == expected


@pytest.mark.parametrize(
    ("pause", "longer_than"),
    [(0.02, 0), (0.03, 1), (0.04, 2), (0.05, 3), (0.1, 4), (0.2, 5), (0.3, 6), *zip(QUIETS, itertools.count(1))],
)
def test_how_many_moments_a_pause_was_as_long_as(pause: float, longer_than: int) -> None:
    burst = Burst(-1.0, 0.0, body(1))
    burst.note(pause)
    assert burst.pauses == [1] * longer_than + [0] * (len(QUIETS) - longer_than)


def test_the_writes_that_are_left_of_a_thousand_are_for_its_end() -> None:
    """With a hundred pauses there is no telling the end before that."""

    def quiet(changes: int) -> float:
        return Burst(0.0, 20.0, body(1), changes, [100] * len(QUIETS), writes=9).quiet(20.0)

    assert [quiet(changes) for changes in (500, 900, 999, 1000)] == [ENDS, ENDS, QUIET, QUIET]
    assert Burst(0.0, 20.0, body(1), 1000, writes=14).longest(20.0) == 0.0, "the last one, whatever follows"


def test_a_creator_that_pauses_for_a_second_goes_on_with_what_is_left() -> None:
    draw = random.Random(1)
    gaps = [0.8 if number in (300, 600, 900) else draw.expovariate(1 / 0.018) for number in range(1000)]
    times = [*itertools.accumulate(gaps)]
    clock = Clock(lambda: draw.uniform(0.01, 0.2), lambda: draw.uniform(0.01, 0.2))
    clock.run(counted(times))
    assert len(clock.written) <= MOST
    assert clock.written[-1][1] == body(1000)


@pytest.mark.parametrize("report", [0.001, 0.003, 0.010, 0.050, 0.3])
def test_it_makes_no_difference_when_a_write_is_reported_back(report: float) -> None:
    """A real API server reports a version before it answers the write that made it, or after."""
    clock = Clock(report=lambda: report)
    clock.run(counted(spaced(0.01, 1000)))
    assert len(clock.written) <= 10
    assert clock.refused == 0
    assert clock.written[-1][0] <= 9.99 + QUIET + 2 * ANSWER


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


def test_changes_that_were_not_read_yet_are_waited_for() -> None:
    """The loop did something else when a moment of quiet was over: whatever came meanwhile is read behind that."""
    schedule = Schedule(lambda: 0.0)
    schedule.want(KEY, StatusWrite(body(1), "1"), 0.0)
    late = QUIET + 0.2
    assert schedule.take(late) is None
    schedule.want(KEY, StatusWrite(body(9), "1"), late + 0.001)
    due = schedule.next_due()
    assert due == pytest.approx(late + 0.001 + QUIET)
    assert schedule.take(due) == (KEY, StatusWrite(body(9), "1"))


def test_a_moment_that_is_hardly_late_is_believed() -> None:
    schedule = Schedule(lambda: 0.0)
    schedule.want(KEY, StatusWrite(body(1), "1"), 0.0)
    assert schedule.take(QUIET + LATE) == (KEY, StatusWrite(body(1), "1"))


def test_quiet_is_believed_the_second_time() -> None:
    schedule = Schedule(lambda: 0.0)
    schedule.want(KEY, StatusWrite(body(1), "1"), 0.0)
    assert schedule.take(QUIET + 0.2) is None
    assert schedule.take(QUIET + 0.2 + SECOND_LOOK + 0.1) == (KEY, StatusWrite(body(1), "1"))


def test_what_has_waited_as_long_as_it_may_is_not_looked_at_twice() -> None:
    schedule = Schedule(lambda: 0.0)
    schedule.want(KEY, StatusWrite(body(1), "1"), 0.0)
    assert schedule.take(LONGEST + 0.1) == (KEY, StatusWrite(body(1), "1"))


def test_what_somebody_takes_away_while_it_is_written_is_written_again() -> None:
    """The report of that comes before the answer to the write."""
    clock = Clock(answer=lambda: 0.2, report=lambda: 0.001)
    clock.run([(0.0, body(1))], until=QUIET + 0.05)
    clock.undo(QUIET + 0.05)
    clock.run([])
    assert [each for _, each in clock.written] == [body(1), body(1)]
    assert clock.refused == 0


def test_pauses_that_are_just_too_long_each_time_do_not_get_past_it() -> None:
    """Whoever knows how long is waited pauses a bit longer after each change."""
    clock, times, now = Clock(), [], 0.0
    for pause in itertools.chain((each + 0.01 for each in (*[QUIET] * 5, *QUIETS)), itertools.repeat(0.3)):
        if now > 17.0:
            break
        times.append(now)
        now += pause
    clock.run(counted(times))
    assert len(clock.written) <= MOST


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


def test_two_pauses_in_a_burst_do_not_delay_its_end() -> None:
    times = [
        *spaced(0.004, 50),
        *(0.3 + each for each in spaced(0.004, 50)),
        *(0.6 + each for each in spaced(0.004, 9)),
    ]
    clock = Clock()
    clock.run(counted(times))
    assert clock.written[-1][0] <= times[-1] + QUIET + 2 * ANSWER


def test_what_is_wanted_is_written_half_a_second_later_at_first() -> None:
    clock = Clock()
    clock.run(counted(spaced(0.005, 300)))
    assert [round(at, 1) for at, _ in clock.written[:3]] == [0.5, 1.0, 1.5]


def test_a_burst_without_end_is_written_again_and_again() -> None:
    clock = Clock()
    clock.run(counted(spaced(0.02, 6000)))
    times = [at for at, _ in clock.written]
    assert max(later - sooner for sooner, later in itertools.pairwise(times)) <= LONGEST_OF_COUNTS + 2 * ANSWER + 0.02
    assert len(times) <= 6 * MOST


def test_a_burst_that_was_slow_and_goes_on_without_end_is_written_again_when_a_thousand_are_over() -> None:
    """A wait that was right for half a thousand in four minutes is too long for what comes then."""
    slow = spaced(0.48, 480)
    times = [*slow, *(slow[-1] + 0.02 + each for each in spaced(0.02, 6000))]
    clock = Clock()
    clock.run(counted(times))
    written = [at for at, _ in clock.written]
    thousandth = times[1000]
    later = [at for at in written if at > thousandth]
    assert sum(at <= thousandth for at in written) <= MOST
    assert later[0] <= thousandth + LONGEST_OF_COUNTS + 1.0
    assert max(after - before for before, after in itertools.pairwise(later)) <= 2 * LONGEST_OF_COUNTS
    assert len(written) <= 6 * MOST + MOST


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


def test_a_condition_that_changes_in_an_uneven_burst_waits_for_a_short_quiet() -> None:
    schedule, now = in_an_uneven_burst()
    schedule.want(KEY, StatusWrite(body(40, "False"), "9"), now + 0.01)
    assert schedule.next_due() == pytest.approx(now + 0.01 + QUIET)
    schedule.want(KEY, StatusWrite(body(41, "False"), "9"), now + 0.02)  # nor do counts delay it from then on
    assert schedule.next_due() == pytest.approx(now + 0.02 + QUIET)


def test_a_condition_that_changes_again_and_again_in_an_uneven_burst_is_written_after_half_a_second() -> None:
    schedule, now = in_an_uneven_burst()
    dues = []
    for number in range(100):
        schedule.want(KEY, StatusWrite(body(40, str(number)), "9"), now + 0.01 * number)
        dues.append(schedule.next_due())
    assert max(due for due in dues if due is not None) == pytest.approx(now + LONGEST)


@pytest.mark.parametrize(("wanted", "quiet"), [(body(41), 0.225), (body(39, "False"), QUIET)])
def test_what_changes_after_a_write_in_an_uneven_burst(wanted: dict[str, Any], quiet: float) -> None:
    """Counts wait longer, as the moment before was not the end; a condition does not."""
    schedule, now = in_an_uneven_burst()
    taken = schedule.take(now + 0.12)
    assert taken is not None
    schedule.written(KEY, taken[1], "99", now + 0.13)
    schedule.want(KEY, StatusWrite(wanted, "99"), now + 0.2)
    assert schedule.next_due() == pytest.approx(now + 0.2 + quiet)


@pytest.mark.parametrize("wanted", [body(39), body(50)])
def test_a_count_that_somebody_kept_from_being_written_waits_for_a_short_quiet(wanted: dict[str, Any]) -> None:
    """Whatever else the object has now, it is no change of counts alone."""
    schedule, now = in_an_uneven_burst()
    assert schedule.take(now + 0.12) is not None
    schedule.conflicted(KEY, now + 0.13)
    schedule.want(KEY, StatusWrite(wanted, "somebody's"), now + 0.2)
    assert schedule.next_due() == pytest.approx(now + 0.2 + QUIET)


def test_a_count_that_changed_while_somebody_else_wrote_waits_for_a_short_quiet() -> None:
    schedule, now = in_an_uneven_burst()
    assert schedule.take(now + 0.12) is not None
    schedule.want(KEY, StatusWrite(body(41), "somebody's"), now + 0.13)
    schedule.conflicted(KEY, now + 0.2)
    assert schedule.next_due() == pytest.approx(now + 0.2 + QUIET)


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


def test_a_condition_that_changes_while_counts_are_written_does_not_wait_either() -> None:
    answer = 0.3
    clock = Clock(lambda: answer)
    clock.run([(at, body(number, str(int(at / 2)))) for number, at in enumerate(spaced(0.02, 1000))])
    for number in range(1, 10):
        shown = next(at for at, each in clock.written if each["conditions"][0]["status"] == str(number))
        assert shown <= 2 * number + LONGEST + 2 * answer + 0.04


def test_a_write_during_which_counts_changed_was_early() -> None:
    """A slow API server: two such, and the moment of quiet becomes longer."""
    clock = Clock(lambda: 0.05)
    clock.run(counted([0.0, 0.05, 0.125, 0.2]))
    assert [at for at, _ in clock.written] == pytest.approx([0.025, 0.1, 0.275])
    assert clock.written[-1][1] == body(4)


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


def test_a_thousand_routes_are_a_thousand_however_many_come_at_a_time() -> None:
    """A busy controller reads several at once; then there is as little left of a thousand."""
    burst = Burst(0.0, 0.0, body(1))
    for number in range(1, 100):
        burst.note(number * 0.1, 10)
    assert (burst.changes, burst.longest(10.0)) == (991, Burst(0.0, 0.0, body(1), changes=991).longest(10.0))


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
