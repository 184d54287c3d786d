"""`controlplane.turns`: jobs one after the other, in slices, with turns of the loop for others in between."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Iterator

import pytest

from controlplane import turns
from tests.fakes.moved_loop import moved


class Clock:
    """Each look at it takes a part of a slice."""

    def __init__(self, part: float) -> None:
        self.now, self._part = 0.0, part * turns.SLICE

    def __call__(self) -> float:
        self.now += self._part
        return self.now


def job(done: list[str], name: str, steps: int) -> Iterator[None]:
    for number in range(steps):
        done.append(f"{name}{number}")
        yield


async def test_a_short_job_is_done_when_start_returns() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))
    future = jobs.start(job(done, "a", 20))
    assert future.done()
    assert (len(done), jobs.slices) == (20, 1)


async def test_a_long_job_lets_others_run_after_every_slice() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.19))  # six steps are a slice
    future = jobs.start(job(done, "a", 50))
    seen = []
    while not future.done():
        await asyncio.sleep(0)
        seen.append(len(done))
    assert jobs.slices == 9
    assert max(after - before for before, after in itertools.pairwise(seen)) == 6
    assert len(seen) >= turns.TURNS * (jobs.slices - 1)


async def test_what_a_slice_made_is_looked_at_before_the_next() -> None:
    """Else all of it at once, whenever Python's own count says so."""
    collected = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.append((phase, info["generation"]))

    before = gc.get_threshold()
    gc.set_threshold(1_000_000)
    gc.callbacks.append(note)
    try:
        jobs = turns.Turns(Clock(0.5))
        await jobs.start(job([], "a", 5))
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    assert collected.count(("start", 1)) == jobs.slices - 1 > 1


async def test_jobs_run_in_order_and_never_two_at_once() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.4))
    futures = [jobs.start(job(done, name, 7)) for name in "abc"]
    await asyncio.gather(*futures)
    assert done == [f"{name}{number}" for name in "abc" for number in range(7)]


async def test_a_job_may_start_another_which_waits_for_its_end() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))

    def outer() -> Iterator[None]:
        jobs.start(job(done, "inner", 1))
        done.append("outer")
        yield
        done.append("outer ends")

    await jobs.start(outer())
    assert done == ["outer", "outer ends", "inner0"]


async def test_who_waits_gets_the_error_and_the_next_job_runs() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.5))

    def failing() -> Iterator[None]:
        yield from job(done, "a", 5)
        raise ValueError("a bug")

    first, second = jobs.start(failing()), jobs.start(job(done, "b", 1))
    with pytest.raises(ValueError, match="a bug"):
        await first
    await second
    assert done[-1] == "b0"


async def test_close_leaves_the_rest_undone() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.5))
    futures = [jobs.start(job(done, name, 9)) for name in "ab"]
    jobs.close()
    await asyncio.sleep(0)
    assert all(future.cancelled() for future in futures)
    assert done == ["a0", "a1"]


async def test_a_job_that_gives_way_ends_its_slice() -> None:
    done: list[str] = []

    def giving() -> turns.Job:
        done.append("made")
        yield turns.GIVE_WAY
        done.append("the rest")

    jobs = turns.Turns(Clock(0.0))
    future = jobs.start(giving())
    asyncio.get_running_loop().call_soon(done.append, "somebody else")
    assert done == ["made"]
    await future
    assert done == ["made", "somebody else", "the rest"]
    assert jobs.slices == 2


def resting(done: list[str], seconds: float) -> Iterator[float | None]:
    done.append("before")
    yield seconds
    done.append("after")


@moved
async def test_a_job_that_pauses_goes_on_after_eight_milliseconds() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))
    future = jobs.start(resting(done, turns.PAUSE))
    await asyncio.sleep(0.0079)
    assert done == ["before"] and not future.done()
    await asyncio.sleep(0.0002)
    assert done == ["before", "after"] and future.done()


@moved
async def test_a_pause_ends_when_the_next_job_comes() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))
    jobs.start(resting(done, turns.PAUSE))
    await asyncio.sleep(0.001)
    await jobs.start(job(done, "next", 1))
    assert done == ["before", "after", "next0"]
    await asyncio.sleep(0.1)
    assert jobs.slices == 2, "the timer of the pause is cancelled"


@moved
async def test_a_job_that_has_others_behind_it_does_not_pause() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))
    futures = [jobs.start(resting(done, turns.GIVE_WAY)), jobs.start(resting(done, turns.PAUSE))]
    futures.append(jobs.start(job(done, "last", 1)))
    for _ in range(4 * turns.TURNS):
        await asyncio.sleep(0)
    assert all(future.done() for future in futures)


@moved
async def test_a_paused_job_is_left_undone_at_the_end() -> None:
    done: list[str] = []
    jobs = turns.Turns(Clock(0.01))
    future = jobs.start(resting(done, turns.PAUSE))
    jobs.close()
    await asyncio.sleep(0.1)
    assert done == ["before"] and future.cancelled()
