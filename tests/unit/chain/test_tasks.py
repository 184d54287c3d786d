"""Hooks that ask for a Task: all of asyncio is there, and the exchange ends as with any other."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.filter import Env, Filter
from dataplane.chain.reply import Reply
from dataplane.chain.tasks import in_tasks
from dataplane.net.turns import Turns
from dataplane.proxy.steps.waiting import StepFuture, Steps

STOP = Reply(403, "Stopped")


class World:
    """Steps of an exchange on the test's own loop, without a current Task."""

    def __init__(self, hook: Callable[[Any], Any]) -> None:
        loop = asyncio.get_running_loop()
        self.tasks: list[asyncio.Task[None]] = []
        self.seen: list[Any] = []
        self.done = asyncio.Event()
        env = Env(
            clock=loop.time,
            random=lambda: 0.0,
            make_future=lambda: StepFuture(loop=loop),
            call_at=loop.call_at,
            spawn=self._spawn,
        )
        self.hook: Any = in_tasks(Filter("test", hook, hook), env).request
        deadlines = SimpleNamespace(call_at=lambda moment, call: None)
        context = SimpleNamespace(
            call_soon=loop.call_soon,
            deadlines=deadlines,
            clock=loop.time,
            writes=SimpleNamespace(turns=Turns(loop.call_soon)),
        )
        self.x: Any = SimpleNamespace(context=context, waiting=None, ended=False, replied=False)
        self.x.makers = lambda: ("192.0.2.1",)
        self.x.reply = lambda reply: self._note(reply.reason)
        self.x.failed = lambda error: self._note(type(error))

    def begin(self) -> Steps:
        steps = Steps(self.x, self.hook(self.x), lambda x, context: self._note("then"))
        steps.begin()
        return steps

    def _note(self, what: Any) -> None:
        self.seen.append(what)
        self.done.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]


async def limits(x: object) -> None:
    async with asyncio.timeout(1000):
        await asyncio.sleep(0)


async def groups(x: object) -> Reply:
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(asyncio.sleep(0, number)) for number in (1, 2))
    assert (first.result(), second.result()) == (1, 2)
    return STOP


async def fails(x: object) -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


@pytest.mark.parametrize(("hook", "event"), [(limits, "then"), (groups, "Stopped"), (fails, ZeroDivisionError)])
async def test_a_hook_has_a_task(hook: Callable[[Any], Any], event: Any) -> None:
    world = World(hook)
    world.begin()
    await world.done.wait()
    assert world.seen == [event] and len(world.tasks) == 1 and world.x.waiting is None


@pytest.mark.parametrize("answer", [None, STOP])
async def test_a_hook_that_knows_its_answer_has_none(answer: Reply | None) -> None:
    world = World(lambda x: answer)
    assert world.hook(world.x) is answer and world.tasks == []


@pytest.mark.parametrize("swallows", [False, True])
async def test_cancelling_waits_for_the_cleanup_of_the_task(swallows: bool) -> None:
    begun, cleanup, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hook(x: object) -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await cleanup.wait()
            if not swallows:
                raise
        return STOP

    world = World(hook)
    steps = world.begin()
    await begun.wait()
    steps.cancel()
    steps.end_with(lambda x: ended.set(), 1.0)
    await asyncio.sleep(0)
    assert not steps.is_over and not ended.is_set()
    cleanup.set()
    await ended.wait()
    assert steps.is_over and world.seen == [] and world.tasks[0].done()


@pytest.mark.parametrize("turns", [0, 1])
async def test_what_is_cancelled_before_it_has_begun_never_runs(turns: int) -> None:
    """Neither before the steps had their turn, nor before the Task had its own: nobody waits for its end."""
    ended = asyncio.Event()

    async def hook(x: object) -> Reply:
        raise AssertionError("it was cancelled")

    world = World(hook)
    steps = world.begin()
    for _ in range(turns):
        await asyncio.sleep(0)
    assert len(world.tasks) == turns
    with warnings.catch_warnings(record=True) as complaints:
        steps.cancel()
        steps.end_with(lambda x: ended.set(), 1.0)
        await asyncio.sleep(0)
        assert steps.is_over and world.x.waiting is None and world.seen == []
        world.tasks.clear()
        del steps
        gc.collect()
    assert not complaints


async def test_a_task_that_somebody_else_cancels_is_a_failure() -> None:
    world = World(lambda x: asyncio.Event().wait())
    world.begin()
    while not world.tasks:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.tasks[0].cancel()
    await world.done.wait()
    assert world.seen == [RuntimeError]


async def test_without_a_way_to_start_one_the_present_task_has_to_do() -> None:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    hook: Any = in_tasks(Filter("test", groups), env).request
    assert await hook(None) is STOP
    assert in_tasks(Filter("test"), env) == Filter("test")


async def test_time_is_offered_by_env() -> None:
    timers: list[Any] = []

    class Timer:
        def __init__(self, moment: float, call: Callable[[], None]) -> None:
            self.moment, self.call, self.is_cancelled = moment, call, False
            timers.append(self)

        def cancel(self) -> None:
            self.is_cancelled = True

    loop = asyncio.get_running_loop()
    env = Env(lambda: 5.0, lambda: 0.0, make_future=lambda: StepFuture(loop=loop), call_at=Timer)
    sleeping = asyncio.create_task(env.sleep(2))
    await asyncio.sleep(0)
    (timer,) = timers
    assert timer.moment == 7.0 and not sleeping.done()
    timer.call()
    timer.call()
    await sleeping
    assert timer.is_cancelled
    given_up = asyncio.create_task(env.sleep(2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])
    assert timers[1].is_cancelled


def test_where_there_is_no_loop_nothing_waits() -> None:
    env = Env(lambda: 5.0, lambda: 0.0)
    with pytest.raises(RuntimeError, match="no loop"):
        env.make_future()
    with pytest.raises(RuntimeError, match="no loop"):
        env.call_at(6.0, lambda: None)
