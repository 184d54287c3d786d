"""Steps that wait: who runs them on, how they end, and that a bug in them ends in an answer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.chain import Chain, Waiting
from dataplane.chain.filter import Filter
from dataplane.chain.reply import Reply
from dataplane.proxy import waiting
from tests.fakes.memory_proxy import Pending

STOP = Reply(403, "Stopped")


class Down:
    """Notes what becomes of its exchange."""

    def __init__(self) -> None:
        self.waiting: Any = None
        self.events: list[Any] = []

    def reply(self, x: Any, reply: Reply) -> None:
        self.events.append(reply.reason)

    def failed(self, x: Any, error: Exception) -> None:
        self.events.append(type(error))


class Run:
    """An exchange whose first step is `step`; callbacks of the loop wait until `turn`."""

    def __init__(self, step: Callable[[Pending], Any], then: Callable[[Any, Any], None] | None = None) -> None:
        self.down, self.pending = Down(), Pending()
        self.x: Any = SimpleNamespace(down=self.down, ended=False, replied=False, stopped=-1)
        self.soon: list[Callable[[], None]] = []
        context: Any = SimpleNamespace(call_soon=self.soon.append)
        chain = Chain([Filter("a", request=lambda x: None), Filter("b", request=lambda x: None)])
        go_on = then or (lambda x, context: self.down.events.append("then"))
        waiting.interrupted(self.x, context, chain, Waiting(0, step(self.pending)), go_on)
        self.steps = self.down.waiting

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
    assert run.down.events == [] and not run.steps.is_over
    run.turn()
    assert run.down.events == [] and not run.steps.is_over
    run.pending.set_result(None)
    assert run.down.events == [event] and run.steps.is_over and run.down.waiting is None


def test_a_bug_behind_the_steps_ends_in_an_answer() -> None:
    def breaks_too(x: Any, context: Any) -> None:
        raise ZeroDivisionError

    run = Run(passes, breaks_too)
    run.turn()
    run.pending.set_result(None)
    assert run.down.events == [ZeroDivisionError]


@pytest.mark.parametrize("state", ["ended", "replied"])
def test_an_exchange_that_was_answered_meanwhile_goes_nowhere(state: str) -> None:
    run = Run(passes)
    run.turn()
    setattr(run.x, state, True)
    run.pending.set_result(None)
    assert run.down.events == [] and run.steps.is_over


def test_cancelled_steps_let_go_of_what_they_hold_and_are_not_run_on() -> None:
    let_go = []

    async def step(pending: Pending) -> None:
        try:
            await pending
        finally:
            let_go.append(True)

    run = Run(step)
    run.turn()
    run.steps.cancel()
    assert let_go == [True] and run.steps.is_over
    run.pending.set_result(None)
    run.steps.cancel()
    assert run.down.events == []


def test_steps_that_end_their_own_exchange_are_not_cancelled_by_it() -> None:
    run = Run(lambda pending: cancels(pending, lambda: run.steps.cancel()))
    run.turn()
    run.pending.set_result(None)
    assert run.down.events == ["then"]


async def cancels(pending: Pending, cancel: Callable[[], None]) -> None:
    await pending
    cancel()


class Turn:
    """As `asyncio.sleep(0)`."""

    def __await__(self) -> Any:
        yield


def test_a_step_may_wait_for_a_turn_of_the_loop() -> None:
    async def step(pending: Pending) -> None:
        await Turn()

    run = Run(step)
    run.turn()
    assert run.down.events == []
    run.turn()
    assert run.down.events == ["then"]


def test_nothing_is_left_for_the_garbage_collector() -> None:
    gc.disable()
    try:
        run = Run(passes, lambda x, context: None)
        run.turn()
        run.pending.set_result(None)
        down, run.steps = weakref.ref(run.down), None
        del run
        assert down() is None
    finally:
        gc.enable()
