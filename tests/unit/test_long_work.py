"""Long work in short turns: what runs when, what comes out, and what is left."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Generator

import pytest

from gatewright import turns


class Clock:
    """Every look is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def counted(seen: list[int]) -> str:
    for number in turns.paced(range(6)):
        seen.append(number)
    return "done"


def run(work: object, seconds: float) -> tuple[list[int], object]:
    """How much was seen at each turn, and what came out."""
    seen: list[int] = []
    generator = turns.in_turns(lambda: counted(seen), seconds, Clock())
    lengths = []
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return lengths, end.value
        lengths.append(len(seen))


def test_without_turns_a_pause_does_nothing() -> None:
    assert counted([]) == "done"


def test_others_run_between_two_turns() -> None:
    assert run(counted, 0.0) == ([0, 1, 2, 3, 4, 5], "done")


def test_a_turn_lasts_as_long_as_was_said() -> None:
    assert run(counted, 100.0) == ([], "done")


def test_work_within_its_time_is_done_and_other_work_is_given_up() -> None:
    seen: list[int] = []
    with turns.Within(100.0, Clock()):
        assert counted(seen) == "done"
    with pytest.raises(turns.OverTurn), turns.Within(2.0, Clock()):
        counted(seen)
    assert len(seen) == 7
    assert counted(seen) == "done"  # outside, there are no turns any more


def test_what_the_work_raises_comes_out_and_leaves_no_cycle() -> None:
    def fails() -> None:
        turns.pause()
        raise ValueError("no")

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no"):
            for _ in turns.in_turns(fails, 0.0, Clock()):
                pass
        assert threading.active_count() == len(threading.enumerate())
    finally:
        gc.enable()


def test_work_that_is_not_wanted_any_more_ends_at_its_pause() -> None:
    seen: list[int] = []
    ended = []

    def work() -> None:
        try:
            counted(seen)
        finally:
            ended.append(True)

    before = threading.active_count()
    generator = turns.in_turns(work, 0.0, Clock())
    next(generator)
    next(generator)
    generator.close()
    assert (seen, ended, threading.active_count()) == ([0], [True], before)


def test_work_that_is_closed_before_it_began_never_begins() -> None:
    generator = turns.in_turns(lambda: pytest.fail("begun"), 0.0, Clock())
    generator.close()


async def test_a_task_that_is_made_in_a_turn_has_no_turn_of_its_own() -> None:
    """Keys of tokens are fetched by such ones."""

    async def later() -> None:
        turns.pause()

    with turns.Within(0.0, lambda: 0.0):
        task = asyncio.create_task(later())
        with pytest.raises(turns.OverTurn):
            turns.pause()
    await task


def test_work_that_yields_is_done_at_once_and_raises_what_it_does() -> None:
    def work(fails: bool) -> Generator[None, None, int]:
        for _ in range(3):
            yield
        if fails:
            raise ValueError("x")
        return 7

    async def waits() -> int:
        await asyncio.sleep(0)
        return 8

    assert (turns.at_once(work(fails=False)), turns.at_once(waits().__await__())) == (7, 8)
    with pytest.raises(ValueError, match="x"):
        turns.at_once(work(fails=True))
