"""What a lost connection carried ends in turns of the loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from dataplane.net.endings import Endings, end_all
from dataplane.net.turns import SHARE, Turns


class Loop:
    """Turns of a loop by hand, and its thread's CPU time."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.now = 0.0
        self.turns = Turns(self.calls.append, lambda: self.now)
        self.ended: list[str] = []

    def turn(self) -> None:
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()

    def ends(self, name: str, number: int, seconds: float = SHARE / 2) -> list[Callable[[], None]]:
        """So many ends that take so long each."""
        return [partial(self._end, name, seconds) for _ in range(number)]

    def _end(self, name: str, seconds: float) -> None:
        self.now += seconds
        self.ended.append(name)


def test_a_few_end_at_once() -> None:
    loop = Loop()
    end_all(loop.turns, loop.ends("a", 2))
    assert loop.ended == ["a", "a"] and len(loop.turns) == 0


def test_none_are_no_work() -> None:
    loop = Loop()
    end_all(loop.turns, ())
    assert loop.calls == [] and loop.ended == []


def test_many_end_in_turns_of_a_share_each() -> None:
    loop = Loop()
    end_all(loop.turns, loop.ends("a", 7))
    assert len(loop.ended) == 2
    for number in (4, 6, 7):
        loop.turn()
        assert len(loop.ended) == number
    assert len(loop.turns) == 0


def test_connections_that_are_lost_together_have_one_share_of_the_turn_together() -> None:
    loop = Loop()
    for name in ("a", "b", "c"):
        end_all(loop.turns, loop.ends(name, 2), name)
    assert loop.ended == ["a", "a"]
    loop.turn()
    loop.turn()
    assert sorted(loop.ended) == ["a", "a", "b", "b", "c", "c"]


def test_an_error_in_one_keeps_the_others() -> None:
    def fail() -> None:
        raise ValueError("a bug")

    loop = Loop()
    with pytest.raises(ValueError, match="a bug"):
        end_all(loop.turns, [fail, *loop.ends("a", 1)])
    assert loop.ended == []
    loop.turn()
    assert loop.ended == ["a"]


def test_it_says_how_many_are_left() -> None:
    loop = Loop()
    assert repr(Endings(loop.turns, loop.ends("a", 3), "")) == "Endings(3 left)"
