"""Two who write one status differently: each write of ours waits longer, and what is new does not wait for that."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.kube.writing.bursts import LONGEST, QUIET
from controlplane.kube.writing.contests import FIRST_WAIT, LONGEST_WAIT, REMEMBERED, Contests
from controlplane.kube.writing.schedule import Schedule
from controlplane.translate.status.statuses import StatusKey, StatusWrite

KEY: StatusKey = ("HTTPRoute", "shop", "cart")
ANSWER = 0.004


def body(reason: str) -> dict[str, Any]:
    return {"parents": [{"conditions": [{"type": "Accepted", "reason": reason}]}]}


class Fight:
    """A status that we want to be as `ours`, and somebody who writes another one as soon as ours is there."""

    def __init__(self) -> None:
        self.schedule = Schedule(lambda: 0.0)
        self.now = 0.0
        self.version = 1
        self.written: list[float] = []

    def want(self, reason: str) -> None:
        self.schedule.want(KEY, StatusWrite(body(reason), str(self.version)), self.now)

    def round(self) -> None:
        """We write, and it is undone."""
        due = self.schedule.next_due()
        assert due is not None
        taken = self.schedule.take(due)
        assert taken is not None
        self.written.append(due)
        self.version += 1
        self.schedule.written(KEY, taken[1], str(self.version), due + ANSWER)
        self.now, self.version = due + 2 * ANSWER, self.version + 1


def test_writes_that_are_undone_become_rare() -> None:
    fight = Fight()
    while fight.now < 600.0:
        fight.want("Accepted")
        fight.round()
    waits = [round(after - before, 2) for before, after in zip(fight.written, fight.written[1:], strict=False)]
    assert waits[:4] == [0.06, 0.11, 0.21, 0.41] and waits[-1] == pytest.approx(LONGEST_WAIT, abs=0.1)
    assert len(fight.written) < 32, "in ten minutes"


def test_what_is_new_does_not_wait_for_a_contest() -> None:
    fight = Fight()
    for _ in range(12):
        fight.want("Accepted")
        fight.round()
    fight.want("Accepted")
    assert fight.schedule.next_due() == pytest.approx(fight.now + LONGEST_WAIT)
    fight.now += 1.0
    fight.want("NotAllowedByListeners")
    assert fight.schedule.next_due() == pytest.approx(fight.now + QUIET)
    fight.now += QUIET / 2
    fight.want("NoMatchingParent")
    due = fight.schedule.next_due()
    assert due is not None and due <= fight.now + LONGEST
    fight.round()
    fight.want("Accepted")  # what it was before the others is new as well
    assert fight.schedule.next_due() == pytest.approx(fight.now + QUIET)


@pytest.mark.parametrize("rounds", [2, 4, 12])
def test_what_is_new_is_written_soon_however_often_it_changes(rounds: int) -> None:
    """A quiet moment after the last change, and half a second after the first at most."""
    fight = Fight()
    for _ in range(rounds):
        fight.want("Accepted")
        fight.round()
    fight.want("Accepted")
    first, dues = fight.now + 0.01, []
    for number in range(100):
        fight.now = first + 0.01 * number
        fight.want(str(number))
        dues.append(fight.schedule.next_due())
    assert dues[:2] == pytest.approx([first + QUIET, first + 0.01 + QUIET])
    assert dues[-1] == pytest.approx(first + LONGEST)


def test_what_is_undone_while_it_is_written_counts_as_well() -> None:
    fight = Fight()
    waits = []
    fight.want("Accepted")
    for _ in range(6):
        due = fight.schedule.next_due()
        assert due is not None
        waits.append(round(due - fight.now, 3))
        taken = fight.schedule.take(due)
        assert taken is not None
        fight.schedule.want(KEY, None, due + ANSWER)  # reported before the answer
        fight.version += 2
        fight.now = due + ANSWER
        fight.want("Accepted")
        fight.schedule.written(KEY, taken[1], str(fight.version - 1), fight.now)
    assert waits == [0.025, 0.05, 0.1, 0.2, 0.4, 0.8]


def test_a_contest_is_forgotten_and_so_is_what_was_written() -> None:
    contests: Contests[int] = Contests()
    for _ in range(5):
        contests.wrote(1, "a", 0.0)
    assert contests.wait(1, "a", REMEMBERED - 1.0) > 0.5
    assert contests.wait(1, "a", REMEMBERED) == contests.wait(1, "b", 1.0) == contests.wait(2, "a", 1.0) == 0.0
    contests.wrote(1, "a", REMEMBERED - 1.0)
    for number in range(10_000):
        contests.wrote(2 + number, "a", REMEMBERED + number)
    assert len(contests) <= REMEMBERED + 2
    assert contests.wait(1, "a", REMEMBERED + 1.0) == 0.0


def test_what_was_undone_rests_from_when_it_was_written() -> None:
    contests: Contests[int] = Contests()
    contests.wrote(1, "a", 10.0)
    contests.wrote(1, "a", 20.0)
    wait = contests.wait(1, "a", 20.0)
    assert wait == 2 * FIRST_WAIT
    rests = [contests.rest(1, "a", now) for now in (20.0, 20.0 + wait / 4, 20.0 + wait, 30.0)]
    assert rests == pytest.approx([wait, wait * 3 / 4, 0.0, 0.0])
    assert contests.rest(1, "b", 20.0) == contests.rest(2, "a", 20.0) == 0.0
