"""The conditional pattern: the first item that holds acts, on request, response and end alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from dataplane.chain.conditional import conditional
from dataplane.chain.filter import Env, Filter, Origin, Refused
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.http.body import BodyBuffer
from gatewright.cel import budget
from tests.fakes.table_state import exchange


class Item(NamedTuple):
    condition: str
    policy: str
    """A name; "none" builds nothing, "bad" is refused."""


class Toy:
    """Policies that note which of them acted, and with what they were built."""

    def __init__(self, *items: tuple[str, str], **options: Any) -> None:
        self.calls: list[str] = []
        self.origins: list[Origin] = []
        self.options = options
        env = Env(lambda: 0.0, lambda: 0.0, origin=Origin("P default/p", "toy", "T default/t", "digest"))
        self.filter = conditional("toy", [Item(*item) for item in items], env, self.build)

    def build(self, policy: str, env: Env) -> Filter | None:
        self.origins.append(env.origin)
        if policy == "bad":
            raise Refused("field: is wrong")
        if policy == "none":
            return None

        def hook(word: str) -> Any:
            return lambda x: self.calls.append(word + policy)

        options = self.options.get(policy, {})
        return Filter("toy", request=hook(""), **{"response": hook("<"), "end": hook("."), **options})

    def run(self, path: str = "/", x: Exchange | None = None) -> list[str]:
        """One exchange through all hooks; what was called."""
        self.calls.clear()
        x = x or exchange(path=path)
        assert self.filter is not None and self.filter.request is not None
        assert self.filter.request(x) is None
        x.path = b"/changed"
        if self.filter.response is not None:
            assert self.filter.response(x) is None
        if self.filter.end is not None:
            self.filter.end(x)
        return self.calls


A, B, REST = ("request.path == '/a'", "a"), ("request.path.startsWith('/')", "b"), ("", "rest")
FAILS = ("request.headers['x-none'] == ''", "fails")
NEVER = ("false", "never")


@pytest.mark.parametrize(
    ("items", "path", "acts"),
    [
        ((A, B), "/a", "a"),
        ((A, B), "/b", "b"),
        ((A, REST), "/b", "rest"),
        ((A,), "/b", ""),
        ((FAILS, A), "/a", "a"),
        ((FAILS,), "/a", ""),
        ((REST,), "/", "rest"),
        ((("1", "number"), REST), "/", "rest"),  # not true is false
        ((NEVER, NEVER, B), "/", "b"),
        (((A[0], "none"), REST), "/a", ""),  # it was chosen, and does nothing
    ],
)
def test_the_first_that_holds(items: tuple[tuple[str, str], ...], path: str, acts: str) -> None:
    assert Toy(*items).run(path) == ([acts, "<" + acts, "." + acts] if acts else [])


def test_the_choice_of_one_exchange_is_not_that_of_another() -> None:
    toy = Toy(A, B)
    assert toy.run("/a")[0] == "a"
    assert toy.run("/b")[0] == "b"


def test_two_in_one_chain_choose_for_themselves() -> None:
    first, second = Toy(A, B), Toy(NEVER, B, A)
    x = exchange(path="/a")
    assert first.filter is not None and second.filter is not None
    for toy in (first, second):
        assert toy.filter is not None and toy.filter.request is not None
        toy.filter.request(x)
    for toy in (second, first):
        assert toy.filter is not None and toy.filter.response is not None
        toy.filter.response(x)
    assert (first.calls, second.calls) == (["a", "<a"], ["b", "<b"])


def test_an_answer_is_passed_on() -> None:
    stop = Reply(403, "Stop")
    toy = Toy(A, a={"response": lambda x: stop})
    x = exchange(path="/a")
    assert toy.filter is not None and toy.filter.request is not None and toy.filter.response is not None
    toy.filter.request(x)
    assert toy.filter.response(x) is stop


def test_each_item_is_a_policy_of_its_own() -> None:
    toy = Toy(A, B)
    assert [origin.target for origin in toy.origins] == ["T default/t?0", "T default/t?1"]
    assert len({origin.key for origin in toy.origins}) == 2
    assert {str(origin) for origin in toy.origins} == {
        "P default/p toy.conditional[0]",
        "P default/p toy.conditional[1]",
    }


def test_it_says_what_its_items_need() -> None:
    toy = Toy(A, B, b={"response_body": 5})
    made = toy.filter
    assert made is not None
    assert (made.response_body, made.silent) == (5, False)
    quiet = Toy(A, a={"silent": True, "response": None, "end": None}).filter
    assert quiet is not None and not quiet.silent and quiet.response is None and quiet.end is None


def test_a_condition_on_the_body_holds_it() -> None:
    toy = Toy(("string(request.body) == 'x'", "a"), a={"silent": True})
    made = toy.filter
    assert made is not None and not made.silent
    x = exchange()
    x.body = b"x"
    assert toy.run(x=x)[0] == "a"


def test_a_body_too_large_to_be_looked_at_is_refused() -> None:
    """Whoever sends it must not choose which policy applies to it, or that none does."""
    made = Toy(("string(request.body) == 'x'", "a")).filter
    assert made is not None and made.request is not None
    x = exchange("POST")
    x.has_body, x.buffer = True, BodyBuffer.of(b"x" * (2 * 1024 * 1024 + 1), lambda: None, lambda: None)
    answer = made.request(x)
    assert isinstance(answer, Reply) and (answer.status, answer.reason) == (413, "BodyTooLarge")


def test_nothing_to_do_is_no_filter() -> None:
    assert Toy(("true", "none")).filter is None


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ((A, ("", "bad")), "conditional[1].policy: field: is wrong"),
        ((A, ("nothing", "b")), "conditional[1].condition: "),
        ((("response.code == 200", "b"),), "conditional[0].condition: "),
    ],
)
def test_refused(items: tuple[tuple[str, str], ...], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        Toy(*items)
    assert reason in str(refused.value)


SLOW = 'request.pathAndQuery.split("&").exists(p, ["a=", "b=", "c=", "d=", "e="].exists(q, p.startsWith(q)))'


def test_a_client_does_not_choose_by_what_costs_too_much_to_look_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its steps; what takes too long is refused before, whatever it is for."""
    monkeypatch.setattr(budget, "MAX_SECONDS", 1000.0)
    toy = Toy((SLOW, "first"), ("", "otherwise"))
    assert toy.run(x=exchange(query="x&a=1"))[0] == "first" and toy.run()[0] == "otherwise"
    assert toy.filter is not None and toy.filter.request is not None
    toy.calls.clear()
    x = exchange(query="&" * 30_000 + "a=1")
    answer = toy.filter.request(x)
    assert isinstance(answer, Reply) and (answer.status, answer.reason) == (503, "PolicyUnusable")
    assert answer.detail == "P default/p toy conditional: a condition costs too much to evaluate"
    assert toy.calls == [] and not toy.filter.silent


def test_one_item_with_an_end_hook_is_enough() -> None:
    toy = Toy(A, B, a={"end": None}, b={"response": None})
    assert toy.run("/a") == ["a", "<a"]
    assert toy.run("/b") == ["b", ".b"]
    assert toy.filter is not None and toy.filter.end is not None
    only = Toy(A, B, a={"end": None, "response": None}, b={"end": None, "response": None})
    assert only.filter is not None and (only.filter.end, only.filter.response) == (None, None)
