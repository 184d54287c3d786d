"""The order in which hooks run, how an answer ends the descent, how a hook waits."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.chain import EMPTY, Chain, Waiting, drive
from dataplane.chain.filter import BUFFER_LIMIT, WHOLE, Filter
from dataplane.chain.reply import Reply
from tests.fakes.table_state import exchange

STOP = Reply(403, "Stopped")


class Later:
    """An awaitable that is done at once."""

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def __await__(self) -> Any:
        return self.result
        yield


class Script:
    """Filters that note their calls; `answers` by name: what a request hook (or "<name") answers."""

    def __init__(self, *names: str, silent: str = "", **answers: Any) -> None:
        self.calls: list[str] = []
        self.answers = answers
        self.chain = Chain(self._filter(name, name in silent) for name in names)

    def _filter(self, name: str, silent: bool) -> Filter:
        def request(x: Any) -> Any:
            self.calls.append(name)
            return self.answers.get(name)

        def response(x: Any) -> Any:
            self.calls.append("<" + name)
            return self.answers.get("after_" + name)

        hooks = {"q": {"request": request}, "p": {"response": response}}.get(
            name[0], {"request": request, "response": response}
        )
        return Filter(name, silent=silent, **hooks)  # type: ignore[arg-type]


def test_hooks_run_down_and_up() -> None:
    script = Script("a", "q", "p", "b")
    x = exchange()
    assert script.chain.request is not None and script.chain.response is not None
    assert script.chain.request(x) is None and script.chain.response(x) is None
    assert script.calls == ["a", "q", "b", "<b", "<p", "<a"]
    assert x.stopped == -1


@pytest.mark.parametrize("names", [("p", "q"), ("q", "p"), ("p", "q", "p2"), ("q",)])
def test_the_only_step_of_its_kind_runs_wherever_it_stands(names: tuple[str, ...]) -> None:
    for silent in ("", "q"):
        script = Script(*names, silent=silent)
        assert script.chain.request is not None
        assert script.chain.request(exchange()) is None and script.calls == ["q"]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17])
def test_steps_without_a_hook_are_passed_over(count: int) -> None:
    chain = Chain([Filter(f"f{number}") for number in range(count)])
    assert (chain.request, chain.response) == (None, None)
    assert len(chain.request_hooks) == count and not any(chain.request_hooks)


def test_a_reply_ends_the_descent() -> None:
    script = Script("a", "b", "c", b=STOP)
    x = exchange()
    assert script.chain.request is not None
    assert script.chain.request(x) is STOP
    assert (script.calls, x.stopped) == (["a", "b"], 1)


async def test_a_hook_that_waits_is_driven_on() -> None:
    script = Script("a", "p", "b", "c", a=Later())
    x = exchange()
    assert script.chain.request is not None
    waiting = script.chain.request(x)
    assert isinstance(waiting, Waiting) and waiting.index == 0 and script.calls == ["a"]
    assert await drive(x, script.chain, waiting) is None
    assert (script.calls, x.stopped) == (["a", "b", "c"], -1)


async def test_a_hook_may_answer_after_waiting() -> None:
    script = Script("a", "b", "c", a=Later(STOP))
    x = exchange()
    assert script.chain.request is not None
    waiting = script.chain.request(x)
    assert isinstance(waiting, Waiting)
    assert await drive(x, script.chain, waiting) is STOP
    assert (script.calls, x.stopped) == (["a"], 0)


async def test_a_later_hook_may_wait_or_answer_too() -> None:
    script = Script("a", "b", "c", "d", a=Later(), b=Later(), c=STOP)
    x = exchange()
    assert script.chain.request is not None
    waiting = script.chain.request(x)
    assert isinstance(waiting, Waiting)
    assert await drive(x, script.chain, waiting) is STOP
    assert (script.calls, x.stopped) == (["a", "b", "c"], 2)


def test_a_response_hook_that_waits_is_handed_over() -> None:
    later = Later()
    script = Script("a", "b", "c", after_b=later)
    assert script.chain.response is not None
    waiting = script.chain.response(exchange())
    assert isinstance(waiting, Waiting) and (waiting.index, waiting.awaitable) == (1, later)
    assert script.calls == ["<c", "<b"]


def test_what_nobody_needs_costs_nothing() -> None:
    assert EMPTY.request is None and EMPTY.response is None and EMPTY.end == ()
    assert Script("q").chain.response is None
    assert Script("p").chain.request is None


def test_a_single_silent_hook_is_the_function() -> None:
    script = Script("a", silent="a")
    assert script.chain.request is script.chain.request_hooks[0]
    assert script.chain.response is script.chain.response_hooks[0]


def test_silent_hooks_among_others() -> None:
    script = Script("a", "b", "c", silent="ac", b=STOP)
    assert script.chain.request is not None
    assert script.chain.request(exchange()) is STOP
    assert script.calls == ["a", "b"]


@pytest.mark.parametrize(
    ("needs", "body"),
    [([], 0), ([0, 0], 0), ([0, 10, 5], 10), ([10, WHOLE], BUFFER_LIMIT), ([10, BUFFER_LIMIT + 1], BUFFER_LIMIT + 1)],
)
def test_the_largest_need_of_a_response_body_counts(needs: list[int], body: int) -> None:
    assert Chain(Filter("f", response_body=need) for need in needs).response_body == body


def test_end_hooks() -> None:
    ended: list[Any] = []
    chain = Chain([Filter("a", end=ended.append), Filter("b"), Filter("c", end=ended.append)])
    for end in chain.end:
        end(exchange())
    assert len(ended) == 2


def test_repr_names_the_steps() -> None:
    assert repr(Script("a", "b").chain) == "Chain(a, b)"
