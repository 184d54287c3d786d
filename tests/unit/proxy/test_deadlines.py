"""One timer for all deadlines."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

import pytest

from dataplane.proxy.deadlines import STEP, Deadlines


class Loop:
    """A clock that is moved, with timers."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []

    def call_at(self, at: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self, at, call)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for timer in sorted(self.timers, key=lambda timer: timer.at):
            if timer.at <= self.now:
                self.timers.remove(timer)
                timer.call()


class Timer:
    def __init__(self, loop: Loop, at: float, call: Callable[[], None]) -> None:
        self.loop, self.at, self.call = loop, at, call

    def cancel(self) -> None:
        self.loop.timers.remove(self)


class Sleeper:
    def __init__(self) -> None:
        self.woken: list[float] = []

    def wake(self, now: float) -> None:
        self.woken.append(now)


def test_a_deadline_keeps_nobody_alive() -> None:
    loop, sleeper = Loop(), Sleeper()
    deadlines = Deadlines(lambda: loop.now, loop.call_at)
    deadlines.wake_at(loop.now + 60, sleeper)
    known = ref(sleeper)
    del sleeper
    assert known() is None
    loop.advance(61)
    assert not loop.timers


def test_whoever_asks_is_woken_once_and_not_early() -> None:
    loop, sleeper = Loop(), Sleeper()
    deadlines = Deadlines(lambda: loop.now, loop.call_at)
    deadlines.wake_at(loop.now + 1, sleeper)
    loop.advance(0.99)
    assert not sleeper.woken
    loop.advance(0.01 + STEP)
    loop.advance(10)
    assert len(sleeper.woken) == 1


def test_the_first_moment_of_a_clock_is_one_like_others() -> None:
    """A machine that has just started has one."""
    loop, sleeper = Loop(), Sleeper()
    loop.now = 0.0
    deadlines = Deadlines(lambda: loop.now, loop.call_at)
    deadlines.wake_at(STEP / 2, sleeper)
    loop.advance(STEP)
    assert sleeper.woken == [STEP]


def test_what_was_asked_for_before_the_end_is_forgotten() -> None:
    loop, before, after = Loop(), Sleeper(), Sleeper()
    deadlines = Deadlines(lambda: loop.now, loop.call_at)
    deadlines.wake_at(loop.now + 1, before)
    deadlines.close()
    assert loop.timers == []
    deadlines.wake_at(loop.now + 1, after)
    loop.advance(2)
    deadlines.sweep()
    assert before.woken == [] and after.woken == [loop.now]


def test_a_moment_that_has_passed_comes_with_the_next_step() -> None:
    loop, sleeper = Loop(), Sleeper()
    deadlines = Deadlines(lambda: loop.now, loop.call_at)
    deadlines.wake_at(loop.now + 1, sleeper)
    loop.advance(1 + STEP)
    deadlines.wake_at(loop.now - 50, sleeper)
    loop.advance(2 * STEP)
    assert len(sleeper.woken) == 2


class Failing:
    def wake(self, now: float) -> None:
        raise ValueError(f"at {now}")


class Woken:
    def __init__(self) -> None:
        self.at: list[float] = []

    def wake(self, now: float) -> None:
        self.at.append(now)


def test_a_sleeper_that_fails_keeps_no_other_from_its_deadline(caplog: pytest.LogCaptureFixture) -> None:
    timers = [0.0]
    deadlines = Deadlines(lambda: 10.0, lambda at, _: timers.append(at))
    failing, others = Failing(), [Woken(), Woken()]
    for sleeper in (others[0], failing, others[1]):
        deadlines.wake_at(9.0, sleeper)
    deadlines.wake_at(30.0, others[0])
    deadlines.sweep()
    assert [len(each.at) for each in others] == [1, 1]
    assert timers[-1] == pytest.approx(30.0, abs=1.0)
    assert "a deadline of Failing failed" in caplog.text
