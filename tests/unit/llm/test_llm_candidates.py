"""Which provider is next (llm/candidates): groups in their order, equal ones by health, evicted ones last."""

from __future__ import annotations

from random import Random

from dataplane.http.heads import Head
from dataplane.llm.candidates import Candidates, Standing, Unknown
from dataplane.llm.refusals import seconds

GROUPS = (("a", "b"), ("c",), ("d",))


def order(standings: dict[str, Standing | None], seed: int = 1) -> str:
    candidates = Candidates(GROUPS, lambda name: standings.get(name, Standing()), Random(seed).random)
    found = ""
    while (taken := candidates.take()) is not None:
        found += taken
    return found


def unwell() -> Standing:
    score = Unknown()
    score.health = score.share = 0.05
    return Standing(score)


def test_groups_come_in_their_order_each_once() -> None:
    assert {order({}, seed) for seed in range(20)} == {"abcd", "bacd"}


def test_of_equal_ones_the_healthy_one_comes_first_most_times() -> None:
    first = [order({"a": unwell()}, seed)[0] for seed in range(200)]
    assert 0 < first.count("a") < 30


def test_evicted_ones_come_when_all_that_are_left_are() -> None:
    assert order({"a": Standing(is_evicted=True), "c": Standing(is_evicted=True)}) == "bdac"


def test_who_cannot_be_sent_anything_never_comes() -> None:
    assert order({"b": None, "d": None}) == "ac"
    assert order(dict.fromkeys("abcd")) == ""


def test_a_new_round_begins_with_all() -> None:
    candidates = Candidates((("a",),), lambda name: Standing(), Random(1).random)
    assert (candidates.take(), candidates.take()) == ("a", None)
    candidates.again()
    assert candidates.take() == "a"


# --- how long a provider wants to be left alone

NOW = 1_700_000_000.0
WAITS = {
    "retry-after: 7": 7.0,
    "retry-after: 1.5": 1.5,
    "retry-after-ms: 250\r\nretry-after: 9": 0.25,
    "retry-after: Tue, 14 Nov 2023 22:13:50 GMT": 30.0,
    "retry-after: Tue, 14 Nov 2023 22:13:10 GMT": 0.0,
    "retry-after: soon": None,
    "retry-after: -3": None,
    "retry-after: 99999999999": None,
    "retry-after: \u0664": None,
    "x-a: b": None,
}


def test_answers_say_how_long_in_all_known_forms() -> None:
    assert {text: seconds(Head(f"\r\n{text}\r\n".encode()), NOW) for text in WAITS} == WAITS
