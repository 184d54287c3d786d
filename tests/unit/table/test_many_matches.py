"""Thousands of matches at one place: what is found, what stays when some leave, and that cost grows as their number."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import pytest

from dataplane.table import ranked, regexes
from dataplane.table.applier import Applier
from dataplane.table.regexes import PathRegexes
from dataplane.table.store import Change
from tests.fakes.table_state import TableRun, bind, exchange, gone, listener, match, route, route_key

MATCHES = 64
"""Of one rule, as many as HTTPRoute allows."""


def names(count: int) -> list[str]:
    return [f"r{number:03}" for number in range(count)]


def of_headers(name: str) -> Change:
    return route(name, *(match(prefix="/same", headers={"x": f"{name}-{index}"}) for index in range(MATCHES)))


def of_patterns(name: str) -> Change:
    return route(name, *(match(regex=f"/{name}/{index}/[a-z]+") for index in range(MATCHES)))


@pytest.fixture
def run() -> TableRun:
    table = TableRun()
    table.apply(bind(), listener())
    return table


@pytest.mark.parametrize("seed", range(5))
def test_of_many_routes_with_one_path_each_is_found_until_it_is_removed(run: TableRun, seed: int) -> None:
    chance = random.Random(seed)
    there = names(12)
    run.apply(*map(of_headers, chance.sample(there, len(there))))
    while there:
        for name in there:
            index = chance.randrange(MATCHES)
            assert run.find(path="/same", headers=f"x: {name}-{index}\r\n".encode()) == name
        left = chance.choice(there)
        there.remove(left)
        run.apply(gone(route_key(left)))
        assert run.find(path="/same", headers=f"x: {left}-0\r\n".encode()) is None


def test_of_many_routes_with_equal_conditions_the_oldest_wins(run: TableRun) -> None:
    found = names(2 * ranked.LIMIT + 10)
    chance = random.Random(7)
    run.apply(*(route(name, prefix="/p", headers={"x": "1"}, order=name) for name in chance.sample(found, len(found))))
    for name in found:
        assert run.find(path="/p", headers=b"x: 1\r\n") == name
        run.apply(gone(route_key(name)))
    assert run.find(path="/p", headers=b"x: 1\r\n") is None


def test_a_rule_that_says_the_same_many_times_leaves_nothing_behind(run: TableRun) -> None:
    same = [match(prefix="/p"), match(prefix="/p", method="GET"), match(prefix="/p"), match(regex="/p.*")] * 16
    run.apply(route("keeps", prefix="/p"), route("leaves", *same, order="0"))
    assert run.find(path="/p") == "leaves"
    run.apply(gone(route_key("leaves")))
    assert run.find(path="/p") == "keeps" and run.find(path="/pq") is None


@pytest.mark.parametrize("count", [regexes.FEW, regexes.FEW + 1, MATCHES])
def test_regular_expressions_of_a_rule_are_each_for_the_whole_path(run: TableRun, count: int) -> None:
    run.apply(route("r", *(match(regex=f"/{index}/[a-z]+") for index in range(count))))
    for index in range(count):
        assert run.find(path=f"/{index}/abc") == "r"
        assert run.find(path=f"/{index}/abc/") is None and run.find(path=f"/x/{index}/abc") is None


def test_the_longest_of_the_regular_expressions_that_match_decides(run: TableRun) -> None:
    others = [match(regex=f"/other/{index}") for index in range(10)]
    run.apply(
        route("short", match(regex="/a.*"), *others), route("long", *others, match(regex="/a.*b"), match(regex="/a/b"))
    )
    assert run.find(path="/a/b") == "long" and run.find(path="/a/c") == "short"


def test_a_bad_regular_expression_among_many_is_named(run: TableRun) -> None:
    matches = [match(regex=f"/{index}") for index in range(20)]
    run.apply(route("r", *matches, match(regex="/(a")))
    assert "'/(a': missing )" in run.refused[route_key("r")]


def test_regular_expressions_that_are_too_large_together_are_asked_one_by_one(run: TableRun) -> None:
    run.apply(route("r", *(match(regex=rf"/{index}/\pL{{60}}") for index in range(8))))
    assert run.refused == {}
    assert run.find(path="/7/" + "a" * 60) == "r" and run.find(path="/7/" + "a" * 59) is None


class Silent:
    """A set of RE2 that has no memory left: it finds nothing."""

    def Match(self, path: bytes) -> None:
        return None


def test_a_set_that_finds_nothing_for_want_of_memory_is_not_believed(run: TableRun) -> None:
    run.apply(route("r", *(match(regex=f"/{index}/[a-z]+") for index in range(8))))
    level = run.listeners()["http"].router.any
    assert level is not None and level.regexes is not None
    (known,) = level.regexes.values()
    silent: Any = Silent()
    assert [key for key, _ in PathRegexes(known.entries, silent).matching(b"/3/abc", exchange())] == [b"/3/[a-z]+"]


# What it costs.


def cost(applier: Applier, changes: Iterator[Change]) -> float:
    """CPU seconds of a state."""
    began = thread_time()
    for _ in applier.apply(changes):
        pass
    return thread_time() - began


@pytest.mark.parametrize("made", [of_headers, of_patterns])
def test_adding_and_removing_many_matches_costs_as_their_number(made: Callable[[str], Change]) -> None:
    costs = []
    for count in (40, 160):
        run = TableRun()
        run.apply(bind(), listener())
        changes = [*map(made, names(count))]
        added = cost(run.applier, iter(changes))
        costs.append((added, cost(run.applier, (gone(route_key(name)) for name in names(count)))))
    (added, removed), (more_added, more_removed) = costs
    # Four times as many; what grows with the square costs sixteen times as much.
    assert more_added < 9 * added and more_removed < 9 * removed


def test_thousands_of_regular_expressions_cost_a_request_little(run: TableRun) -> None:
    run.apply(*map(of_patterns, names(100)), route("other", prefix="/other"))
    began = thread_time()
    assert all(run.find(path="/other") == "other" for _ in range(10))
    assert thread_time() - began < 0.060  # one by one: 0.16 s
