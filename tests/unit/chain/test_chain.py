"""The order in which hooks run, how an answer ends the descent, how a hook waits."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain import chain as chains
from dataplane.chain.chain import EMPTY, Chain, Waiting, drive
from dataplane.chain.filter import WHOLE, Filter
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
    [([], 0), ([0, 0], 0), ([0, 10, 5], 10), ([10, WHOLE], WHOLE)],
)
def test_body_need_is_the_greatest(needs: list[int], body: int) -> None:
    assert Chain(Filter("f", body=need) for need in needs).body == body


def test_may_wait_and_end_hooks() -> None:
    ended: list[Any] = []
    chain = Chain([Filter("a", end=ended.append), Filter("b", may_wait=True), Filter("c", end=ended.append)])
    for end in chain.end:
        end(exchange())
    assert len(ended) == 2 and chain.may_wait
    assert not Chain([Filter("a")]).may_wait


def test_code_is_compiled_once_per_shape() -> None:
    chains.maker.cache_clear()
    for _ in range(50):
        Script("a", "b", "c")
        Script("a", "b")
        Script("a", "q", "b")
    info = chains.maker.cache_info()
    # down abc, up cba, down ab, up ba, up of a q b
    assert (info.misses, info.hits) == (5, 50 * 6 - 5)


def test_repr_names_the_steps() -> None:
    assert repr(Script("a", "b").chain) == "Chain(a, b)"
