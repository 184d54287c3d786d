"""Keys that are to be worked on: each once at a time, again when something is new, later when it failed."""

from __future__ import annotations

import pytest

from controlplane.kube.writing.pending import FIRST_WAIT, LONGEST_WAIT, Pending


def test_a_key_is_taken_when_it_is_due_and_once() -> None:
    pending: Pending[str] = Pending(lambda: 0.0)
    pending.want("a", 1.0)
    pending.want("a", 2.0)  # it is due already
    assert (pending.take(0.5), pending.next_due()) == (None, 1.0)
    assert pending.take(1.0) == "a"
    assert pending.take(9.0) is None
    pending.done("a", 9.0)
    assert len(pending) == 0


def test_what_is_new_while_it_is_worked_on_is_looked_at_again() -> None:
    pending: Pending[str] = Pending(lambda: 0.0)
    pending.want("a", 0.0)
    assert pending.take(0.0) == "a"
    pending.want("a", 0.0)
    assert pending.take(1.0) is None  # never twice at once
    pending.done("a", 1.0)
    assert pending.take(1.0) == "a"
    pending.done("a", 1.0)
    assert pending.next_due() is None


def test_pauses_grow_and_something_new_ends_them() -> None:
    pending: Pending[str] = Pending(lambda: 0.0)
    pending.want("a", 0.0)
    now, waits = 0.0, []
    for _ in range(12):
        assert pending.take(now) == "a"
        waits.append(pending.failed("a", now))
        now += waits[-1]
    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT
    assert pending.take(now) == "a"
    pending.failed("a", now)
    pending.want("a", now)
    assert pending.take(now) == "a"
    pending.done("a", now)
    pending.want("a", now)
    assert pending.take(now) == "a"
    assert pending.failed("a", now) == FIRST_WAIT  # success forgot the failures


def test_what_is_due_sooner_is_taken_sooner_and_of_equals_the_first() -> None:
    pending: Pending[str] = Pending(lambda: 0.0)
    for key, due in (("late", 3.0), ("b", 1.0), ("a", 1.0), ("late", 2.0), ("c", 4.0)):
        pending.want(key, due)
    assert len(pending) == 4
    assert [pending.take(2.0) for _ in range(4)] == ["b", "a", "late", None]
    assert pending.next_due() == 4.0


@pytest.mark.parametrize("drawn", [0.0, 0.5, 1.0])
def test_up_to_half_of_a_pause_is_taken_off_at_random(drawn: float) -> None:
    pending: Pending[str] = Pending(lambda: drawn)
    pending.want("a", 0.0)
    pending.take(0.0)
    wait = pending.failed("a", 10.0)
    assert wait == pytest.approx(FIRST_WAIT * (1 - drawn / 2))
    assert pending.next_due() == 10.0 + wait


def test_work_that_goes_well_forgets_failures_also_where_more_is_to_do() -> None:
    pending: Pending[str] = Pending(lambda: 0.0)
    pending.want("a", 0.0)
    for now in (0.0, 1.0):
        assert pending.take(now) == "a"
        pending.failed("a", now)
    assert pending.take(2.0) == "a"
    pending.want("a", 2.0)
    pending.done("a", 2.0)
    assert pending.take(2.0) == "a"
    assert pending.failed("a", 2.0) == FIRST_WAIT


def test_namespaces_take_turns_whatever_was_wanted_first() -> None:
    pending: Pending[str] = Pending(lambda: 0.0, lambda key: key[0])
    for number in range(150):
        pending.want(f"a{number}", 0.0)
    assert pending.take(1.0) == "a0"
    pending.want("b", 1.0)
    pending.want("later", 5.0)
    assert [pending.take(1.0), pending.take(1.0), pending.take(1.0)] == ["a1", "b", "a2"]


def test_a_namespace_has_so_many_under_way_and_others_have_room() -> None:
    pending: Pending[str] = Pending(lambda: 0.0, lambda key: key[0], 2)
    for key in ("a1", "a2", "a3"):
        pending.want(key, 0.0)
    assert [pending.take(1.0) for _ in range(3)] == ["a1", "a2", None]
    assert pending.next_due() is None  # a key that is under way has to be done first
    pending.want("b1", 1.5)
    assert (pending.take(1.0), pending.next_due(), pending.take(2.0)) == (None, 1.5, "b1")
    pending.failed("a1", 2.0)
    assert pending.take(2.0) == "a3"
    pending.done("a2", 2.0)
    assert pending.take(9.0) == "a1"


def test_what_is_wanted_again_while_it_waits_for_its_turn_is_taken_once() -> None:
    pending: Pending[str] = Pending(lambda: 0.0, lambda key: key[0], 1)
    pending.want("a1", 0.0)
    pending.want("a2", 0.0)
    assert pending.take(1.0) == "a1"
    pending.want("a2", 0.5)
    pending.done("a1", 1.0)
    assert [pending.take(1.0), pending.take(1.0)] == ["a2", None]
    pending.done("a2", 1.0)
    assert (len(pending), pending.take(9.0), pending.next_due()) == (0, None, None)
