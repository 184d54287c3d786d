"""How well endpoints are, as a policy watches it: who may be chosen, what is shown to operators and taken back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.link.evictions import Evictions
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.health import Eviction, Health, Watch, Watched, summary

BACKEND = "backend/a"


class World:
    def __init__(self, rules: Health, count: int = 2) -> None:
        self.now = 100.0
        self.heard: list[tuple[Any, ...]] = []
        events: Any = SimpleNamespace(
            **{name: self._hears(name) for name in ("endpoint_unhealthy", "endpoint_evicted", "endpoint_health")}
        )
        self.watched = Watched()
        self.evictions = Evictions.local()
        self.watch: Any = Watch(BACKEND, rules, self.evictions, lambda: self.now, events, self.watched)
        self.endpoints = tuple(Endpoint(f"192.0.2.{number}", 80) for number in range(count))

    def _hears(self, name: str) -> Any:
        return lambda *said: self.heard.append((name.removeprefix("endpoint_"), *said))

    def answers(self, endpoint: Endpoint, status: int, x: Exchange | None = None) -> None:
        self.watch.answered(endpoint, head(status), x)

    def usable(self, far: tuple[Endpoint, ...] = ()) -> list[str]:
        return [endpoint.address for endpoint in self.watch.usable(self.endpoints, far)]


def head(status: int) -> Any:
    return SimpleNamespace(status=status, block=b"\r\n", low=b"\r\n")


EVICTS = Health(eviction=Eviction(duration=3.0))


def test_when_all_are_evicted_those_farther_away_are_chosen_and_then_all() -> None:
    world = World(EVICTS)
    far = (Endpoint("198.51.100.1", 80),)
    world.answers(world.endpoints[0], 500)
    world.now += 1.0
    world.answers(world.endpoints[1], 500)
    assert world.usable(far) == ["198.51.100.1"] and world.usable(far) == ["198.51.100.1"]
    world.now += 2.0
    assert world.usable(far) == ["192.0.2.0"], "the first that is back"
    world.now -= 2.0
    world.watch.failed(far[0])
    assert world.usable(far) == ["192.0.2.0", "192.0.2.1"]


def test_other_endpoints_are_looked_at_anew() -> None:
    world = World(EVICTS)
    assert world.usable() == ["192.0.2.0", "192.0.2.1"]
    world.endpoints = world.endpoints[1:]
    assert world.usable() == ["192.0.2.1"]
    same = world.watch.usable(world.endpoints)
    assert world.watch.usable(world.endpoints) is same, "and the same ones are not"


def test_what_was_taken_back_is_shown_again_when_it_is_the_same() -> None:
    world = World(Health())
    first = world.endpoints[0]
    world.answers(first, 500)
    world.watched.forget(lambda backend, by: False)
    member = world.watch.member(first)
    member.judged(first, 0.7, world.watch.rules)
    assert [each[3] for each in world.heard if each[0] == "health"] == [30, None, 30]


def test_what_is_shown_is_shown_when_it_changes_and_taken_back_when_it_is_over() -> None:
    world = World(Health())
    first, second = world.endpoints
    world.answers(first, 500)
    assert world.heard[0] == ("health", BACKEND, first.label, 30) and bool(world.watched)
    world.heard.clear()
    for _ in range(40):
        world.answers(first, 200)
    shown = [each[3] for each in world.heard]
    assert shown == sorted(set(shown), reverse=True) and shown[-1] == 0 and not world.watched
    world.heard.clear()
    world.answers(first, 200)
    world.answers(second, 200)
    assert world.heard == []


def test_of_an_endpoint_that_is_gone_nothing_is_shown() -> None:
    world = World(EVICTS)
    first, second = world.endpoints
    world.answers(first, 500)
    world.answers(second, 200)
    world.heard.clear()
    for endpoint in world.endpoints:
        endpoint.close_idle()
    assert world.heard == [("health", BACKEND, first.label, None)] and not world.watched
    world.heard.clear()
    world.answers(first, 500)
    assert world.heard == [("unhealthy", BACKEND, first.label)]


def test_what_rules_have_shown_is_taken_back_with_them() -> None:
    rules, others = Health(), EVICTS
    world = World(rules)
    world.answers(world.endpoints[0], 500)
    world.heard.clear()
    asked: list[tuple[str, Health]] = []

    def is_watched(backend: str, by: Health) -> bool:
        asked.append((backend, by))
        return True

    world.watched.forget(is_watched)
    assert asked == [(BACKEND, rules)] and world.heard == []
    world.watched.forget(lambda backend, by: by is others)
    assert world.heard == [("health", BACKEND, world.endpoints[0].label, None)]
    world.watched.forget(lambda backend, by: False)
    assert len(world.heard) == 1


@pytest.mark.parametrize(
    ("status", "holds", "expected"), [(200, True, True), (500, False, False), (101, True, False), (503, True, True)]
)
def test_a_condition_judges_in_the_place_of_the_status(status: int, holds: bool, expected: bool) -> None:
    asked: list[int] = []

    def condition(x: Exchange) -> bool:
        asked.append(x.status)
        return holds

    world = World(Health(condition))
    world.answers(world.endpoints[0], status)
    assert (("unhealthy", BACKEND, world.endpoints[0].label) in world.heard) is expected
    assert asked == ([] if status == 101 else [status]), "nothing judges a tunnel"


@pytest.mark.parametrize("fails", [False, True])
def test_a_condition_leaves_the_exchange_as_it_was(fails: bool) -> None:
    def condition(x: Exchange) -> bool:
        assert x.status == 503 and x.response is not response
        if fails:
            raise ValueError("a bug")
        return True

    x = Exchange(None, b"GET", b"/", Head(b"\r\n"), 0.0)
    response = x.response
    x.status = 200
    world = World(Health(condition))
    if fails:
        with pytest.raises(ValueError, match="a bug"):
            world.answers(world.endpoints[0], 503, x)
    else:
        world.answers(world.endpoints[0], 503, x)
    assert x.status == 200 and x.response is response


def test_the_page_of_the_operator() -> None:
    world = World(EVICTS, 3)
    first, second, unwatched = world.endpoints
    world.answers(first, 500)
    world.answers(second, 200)
    world.now += 1.0
    found = summary(world.endpoints, world.now)
    assert found == {
        BACKEND: {
            first.label: page(70, 2.0, 1, 1),
            second.label: page(100, 0.0, 0, 0),
        }
    }
    assert summary([unwatched], world.now) == {}
    assert summary([first], world.now + 5.0)[BACKEND][first.label]["evicted_for_seconds"] == 0.0


def page(health: int, seconds: float, evictions: int, failures: int) -> dict[str, float]:
    return {
        "health": health,
        "evicted_for_seconds": seconds,
        "evictions_in_a_row": evictions,
        "failures_in_a_row": failures,
    }
