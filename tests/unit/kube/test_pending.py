"""Keys that are to be worked on: each once at a time, again when something is new, later when it failed."""

from __future__ import annotations

from controlplane.kube.pending import FIRST_WAIT, LONGEST_WAIT, Pending


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
