"""Steps that wait: who runs them on, how they end, and that a bug in them ends in an answer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.chain import Chain, Waiting
from dataplane.chain.filter import Filter
from dataplane.chain.reply import Reply
from dataplane.net.turns import Turns
from dataplane.proxy.steps import waiting
from tests.fakes.memory_proxy import Pending

STOP = Reply(403, "Stopped")


class Waiter:
    """An exchange that notes what becomes of it."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.waiting: Any = None
        self.ended = self.replied = False
        self.stopped = -1
        self.events: list[Any] = []
        self.errors: list[Exception] = []
        self.client = SimpleNamespace(address="192.0.2.1")

    def makers(self) -> tuple[str, ...]:
        return (self.client.address,)

    def reply(self, reply: Reply) -> None:
        self.events.append(reply.reason)

    def failed(self, error: Exception) -> None:
        self.events.append(type(error))
        self.errors.append(error)


class Run:
    """An exchange whose first step is `step`; callbacks of the loop wait until `turn`, timers until `late`."""

    def __init__(self, step: Callable[[Pending], Any], then: Callable[[Any, Any], None] | None = None) -> None:
        self.pending = Pending()
        self.soon: list[Callable[[], None]] = []
        timers: list[tuple[float, Callable[[], None]]] = []
        self.timers = timers
        deadlines = SimpleNamespace(call_at=lambda moment, call: timers.append((moment, call)))
        self.now = now = [0.0]
        self.turns = Turns(self.soon.append, lambda: now[0])
        context: Any = SimpleNamespace(
            call_soon=self.soon.append,
            deadlines=deadlines,
            clock=lambda: 5.0,
            writes=SimpleNamespace(turns=self.turns),
        )
        self.x: Any = Waiter(context)
        chain = Chain([Filter("a", request=lambda x: None), Filter("b", request=lambda x: None)])
        go_on = then or (lambda x, context: x.events.append("then"))
        waiting.interrupted(self.x, context, chain, Waiting(0, step(self.pending)), go_on)
        self.steps = self.x.waiting

    def turn(self) -> None:
        soon, self.soon[:] = self.soon[:], []
        for call in soon:
            call()


async def passes(pending: Pending) -> None:
    await pending


async def stops(pending: Pending) -> Reply:
    await pending
    return STOP


async def breaks(pending: Pending) -> None:
    await pending
    raise ZeroDivisionError


@pytest.mark.parametrize(("step", "event"), [(passes, "then"), (stops, "Stopped"), (breaks, ZeroDivisionError)])
def test_what_is_waited_for_runs_the_steps_on(step: Callable[[Pending], Any], event: Any) -> None:
    run = Run(step)
    assert run.x.events == [] and not run.steps.is_over
    run.turn()
    assert run.x.events == [] and not run.steps.is_over
    run.pending.set_result(None)
    assert run.x.events == [event] and run.steps.is_over and run.x.waiting is None


def test_steps_that_end_their_own_exchange_are_cancelled_where_they_wait_next() -> None:
    seen: list[str] = []

    async def step(pending: Pending) -> None:
        await pending
        run.steps.cancel()
        try:
            await Pending()
        finally:
            seen.append("cleaned up")

    run = Run(step)
    run.turn()
    run.pending.set_result(None)
    assert seen == ["cleaned up"] and run.steps.is_over


class Odd:
    """Nothing that a step may await."""

    def __await__(self) -> Any:
        yield "trap"


def test_only_futures_of_env_can_be_awaited() -> None:
    async def step(pending: Pending) -> None:
        await Odd()

    run = Run(step)
    run.turn()
    assert run.x.events == [TypeError] and run.steps.is_over
    assert "futures of Env only, not 'trap'" in str(run.x.errors[0])


async def test_what_needs_a_task_fails_at_once() -> None:
    async def sleeps(pending: Pending) -> None:
        await asyncio.sleep(1000)

    async def foreign(pending: Pending) -> None:
        await asyncio.get_running_loop().create_future()

    async def limits(pending: Pending) -> None:
        async with asyncio.timeout(1000):
            await pending

    async def groups(pending: Pending) -> None:
        async with asyncio.TaskGroup():
            await pending

    current, failed = asyncio.current_task(), []
    for step in (sleeps, foreign, limits, groups):
        run = Run(step)
        asyncio.get_running_loop().call_soon(run.turn)  # where there is no Task
        await asyncio.sleep(0)
        failed += run.x.events
        assert run.steps.is_over
    assert failed == [TypeError, TypeError, RuntimeError, RuntimeError] and current is asyncio.current_task()


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_step_that_goes_on_all_the_same_is_closed(stubborn: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def step(pending: Pending) -> None:
        count = 0
        while count < 3:
            count += 1
            try:
                await Odd()
            except TypeError:
                continue
            except GeneratorExit:
                if not stubborn:
                    raise

    run = Run(step)
    run.turn()
    assert run.x.events == [TypeError] and run.steps.is_over
    assert ("does not end" in caplog.text) == stubborn


def test_a_step_that_swallows_its_cancellation_is_driven_on_and_goes_nowhere() -> None:
    seen: list[str] = []

    async def step(pending: Pending) -> Reply:
        try:
            await pending
        except asyncio.CancelledError:
            await later
        return STOP

    later = Pending()
    run = Run(step)
    run.turn()
    run.steps.cancel()
    run.steps.end_with(lambda x: seen.append("end"), 1.0)
    assert seen == []
    later.set_result(None)
    assert seen == ["end"] and run.steps.is_over and run.x.events == []


def test_an_error_in_the_cleanup_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def step(pending: Pending) -> None:
        try:
            await pending
        finally:
            raise ZeroDivisionError

    run = Run(step)
    run.turn()
    run.steps.cancel()
    assert run.steps.is_over and run.x.events == [] and "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_several_end_with_the_last_of_them(order: tuple[int, int]) -> None:
    ends = [Pending(), Pending()]
    seen: list[str] = []

    async def work(end: Pending) -> None:
        try:
            await Pending()
        finally:
            await end

    run = Run(lambda pending: work(ends[0]))
    run.turn()
    other = waiting.work(run.x, work(ends[1]))
    run.turn()
    both = run.x.waiting
    assert not other.is_over and not both.is_over
    both.cancel()
    both.end_with(lambda x: seen.append("end"), 1.0)
    ends[order[0]].set_result(None)
    assert seen == [] and run.x.waiting is (other if order[0] == 0 else run.steps)
    ends[order[1]].set_result(None)
    assert seen == ["end"] and run.x.waiting is None and both.is_over
    for _, too_late in run.timers:
        too_late()
    assert seen == ["end"]


class Turn:
    """As `asyncio.sleep(0)`."""

    def __await__(self) -> Any:
        yield


def test_a_step_may_wait_for_a_turn_of_the_loop() -> None:
    async def step(pending: Pending) -> None:
        await Turn()

    run = Run(step)
    run.turn()
    assert run.x.events == []
    run.turn()
    assert run.x.events == ["then"]


def test_nothing_is_left_for_the_garbage_collector() -> None:
    gc.disable()
    try:
        run = Run(passes, lambda x, context: None)
        run.turn()
        run.pending.set_result(None)
        x, run.steps = weakref.ref(run.x), None
        del run
        assert x() is None
    finally:
        gc.enable()
