"""When statuses are written: after a moment of quiet, one at a time, the latest, with the newest version known."""

from __future__ import annotations

import weakref

import pytest

from controlplane.kube.writing.bursts import LONGEST, QUIET
from controlplane.kube.writing.schedule import FIRST_WAIT, LONGEST_WAIT, Schedule
from controlplane.translate.status.statuses import StatusKey, StatusWrite

KEY = ("Gateway", "shop", "web")
OTHER = ("HTTPRoute", "shop", "cart")


def write(number: int, version: str = "1") -> StatusWrite:
    return StatusWrite({"number": number}, version)


def schedule() -> Schedule:
    return Schedule(lambda: 0.0)


def test_a_write_waits_for_quiet() -> None:
    made = schedule()
    made.want(KEY, write(1), 10.0)
    assert made.take(10.0 + QUIET / 2) is None
    made.want(KEY, write(2), 10.0 + QUIET / 2)
    assert made.take(10.0 + QUIET) is None
    assert made.take(10.0 + 1.5 * QUIET) == (KEY, write(2))
    assert made.take(20.0) is None


def test_what_has_been_written_is_done() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    made.written(KEY, write(1), "2", 1.0)
    assert (len(made), made.next_due(), made.take(99.0)) == (0, None, None)


def test_a_burst_is_written_every_half_second() -> None:
    made, now, taken = schedule(), 0.0, 0
    while now < 2.0:
        made.want(KEY, write(int(now * 1000)), now)
        if (due := made.take(now)) is not None:
            taken += 1
            made.written(*due, "1", now)
        now += QUIET / 5
    assert 3 <= taken <= 2.0 / LONGEST + 1


def test_one_write_of_an_object_is_under_way_at_a_time() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.want(OTHER, write(7), 0.0)
    assert [made.take(1.0), made.take(1.0)] == [(KEY, write(1)), (OTHER, write(7))]
    made.want(KEY, write(2), 1.0)
    assert made.take(9.0) is None
    made.written(KEY, write(1), "2", 9.0)
    assert made.take(9.0 + QUIET) == (KEY, write(2, "2"))  # of the version that the first write made


def test_the_version_of_a_newer_fact_counts_over_that_of_our_own_write() -> None:
    made = schedule()
    made.want(KEY, write(1, "1"), 0.0)
    assert made.take(1.0) == (KEY, write(1, "1"))
    made.written(KEY, write(1, "1"), "2", 1.0)
    made.want(KEY, write(2, "5"), 2.0)
    assert made.take(3.0) == (KEY, write(2, "5"))


def test_versions_that_are_reported_late_do_not_bring_back_an_older_one() -> None:
    """Two writes of ours, and only then the report of the first."""
    made = schedule()
    made.want(KEY, write(1, "1"), 0.0)
    made.written(*one(made, 1.0), "2", 1.0)
    made.want(KEY, write(2, "1"), 2.0)
    made.written(*one(made, 3.0), "3", 3.0)
    made.want(KEY, write(3, "1"), 4.0)
    made.want(KEY, write(3, "2"), 4.0)
    assert made.take(5.0) == (KEY, write(3, "3"))


def one(made: Schedule, now: float) -> tuple[StatusKey, StatusWrite]:
    taken = made.take(now)
    assert taken is not None
    return taken


def test_a_write_whose_answer_was_lost_is_done_when_it_is_reported() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    made.want(KEY, None, 1.1)
    assert made.failed(KEY, 1.2) is None
    assert len(made) == 0


def test_what_is_written_already_is_not_written() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.want(KEY, None, 0.0)
    assert made.take(9.0) is None
    assert len(made) == 0


def test_after_a_conflict_the_next_fact_is_waited_for() -> None:
    made = schedule()
    made.want(KEY, write(1, "1"), 0.0)
    made.take(1.0)
    made.conflicted(KEY, 1.0)
    assert (made.take(99.0), made.next_due()) == (None, None)
    made.want(KEY, write(1, "2"), 100.0)
    assert made.next_due() == 100.0 + QUIET
    assert made.take(100.0 + QUIET) == (KEY, write(1, "2"))


def test_after_a_conflict_failures_before_it_are_forgotten() -> None:
    made = schedule()
    made.want(KEY, write(1, "1"), 0.0)
    made.take(1.0)
    wait = made.failed(KEY, 1.0)
    assert wait == FIRST_WAIT
    made.take(1.0 + wait)
    made.conflicted(KEY, 2.0)
    made.want(KEY, write(1, "2"), 3.0)
    made.want(KEY, write(2, "2"), 3.01)
    assert made.next_due() == 3.01 + QUIET  # changes move it again
    made.take(4.0)
    assert made.failed(KEY, 4.0) == FIRST_WAIT


def test_after_a_conflict_a_fact_that_came_meanwhile_counts() -> None:
    """A change of the object that is told before the answer to the write: nothing more would be told."""
    made = schedule()
    made.want(KEY, write(1, "1"), 0.0)
    assert made.take(1.0) == (KEY, write(1, "1"))
    made.want(KEY, write(2, "5"), 1.0)
    made.conflicted(KEY, 1.1)
    assert made.take(1.1 + QUIET) == (KEY, write(2, "5"))


def test_after_a_conflict_nothing_is_left_of_what_is_no_more_wanted() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    made.want(KEY, None, 1.0)
    made.conflicted(KEY, 1.1)
    assert (len(made), made.next_due()) == (0, None)


def test_what_is_no_more_wanted_while_it_is_written_ends_with_its_write() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    made.want(KEY, None, 1.0)
    made.written(KEY, write(1), "2", 2.0)
    assert len(made) == 0


def test_failures_wait_longer_each_time() -> None:
    made, now = schedule(), 0.0
    made.want(KEY, write(1), now)
    waits = []
    for _ in range(12):
        due = made.next_due()
        assert due is not None
        assert made.take(due) == (KEY, write(1))
        wait = made.failed(KEY, due)
        assert wait is not None
        waits.append(wait)
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT


@pytest.mark.parametrize("drawn", [0.0, 0.5, 1.0])
def test_up_to_half_of_a_wait_is_taken_off_at_random(drawn: float) -> None:
    made = Schedule(lambda: drawn)
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    assert made.failed(KEY, 1.0) == pytest.approx(FIRST_WAIT * (1 - drawn / 2))


class Version(str):
    """One of which it can be seen whether it is kept."""


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "conflict"])
def test_nothing_is_kept_of_versions_that_say_nothing_any_more(is_gone: bool) -> None:
    made = schedule()
    made.want(KEY, write(1, "0"), 0.0)
    made.take(1.0)
    version = Version("1")
    kept = weakref.ref(version)
    made.written(KEY, write(1, "0"), version, 1.0)
    if is_gone:
        made.dropped(KEY)
    else:
        made.want(KEY, write(2, "0"), 2.0)
        made.take(3.0)
        made.want(KEY, None, 3.0)
        made.conflicted(KEY, 3.1)
    del version
    assert kept() is None


def test_what_cannot_be_written_is_left_until_it_changes() -> None:
    made = schedule()
    made.want(KEY, write(1), 0.0)
    made.take(1.0)
    made.dropped(KEY)
    assert made.next_due() is None
    made.want(KEY, write(2), 2.0)
    assert made.take(3.0) == (KEY, write(2))


def test_statuses_of_one_namespace_wait_for_one_of_another_at_most() -> None:
    schedule = Schedule(lambda: 0.0)
    for number in range(100):
        schedule.want(("HTTPRoute", "many", f"r{number:03}"), StatusWrite({"a": number}, "1"), 0.0)
    first = schedule.take(1.0)
    schedule.want(("HTTPRoute", "other", "r"), StatusWrite({"a": 0}, "1"), 1.0)
    schedule.want(("HTTPRoute", "many", "r001"), StatusWrite({"a": 1001}, "1"), 1.0)  # not quiet any more
    assert first is not None and first[0][2] == "r000"
    taken = [found[0][1:] for _ in range(3) if (found := schedule.take(3.0)) is not None]
    assert ("other", "r") in taken[:2] and {*taken} == {("many", "r002"), ("other", "r"), ("many", "r003")}
    rest = [found[0][2] for _ in range(200) if (found := schedule.take(3.0)) is not None]
    assert len(rest) == 97 and rest[-1] == "r001" and schedule.next_due() is None
