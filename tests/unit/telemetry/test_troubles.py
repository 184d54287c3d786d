"""Endpoints that are not well, as a worker reports them: what an entry says, when it goes, how many there are."""

from __future__ import annotations

from dataplane.link.messages import Trouble
from dataplane.telemetry.troubles import (
    FORGET,
    MOST_BACKENDS,
    MOST_ENDPOINTS,
    PAUSE,
    PAUSE_OF_COUNTS,
    ROWS_OF_PAUSE,
    Troubles,
)

SHOP, CART = "backend/service/default/shop/80", "backend/service/default/cart/80"
ONE, TWO = "10.0.0.1:443", "10.0.0.2:443"
VERIFY = "certificate verify failed"


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.troubles = Troubles(lambda: self.now)

    def fails(self, backend: str = SHOP, endpoint: str = ONE, name: str = "shop.test", reason: str = VERIFY) -> None:
        """A try for which no connection came."""
        self.troubles.connection_failed(endpoint, name, reason)
        self.troubles.try_failed(backend, endpoint)

    def report(self, after: float = 0.0) -> tuple[Trouble, ...] | None:
        self.now += after
        return self.troubles.report()


def test_a_failed_connection_is_reported_with_backend_name_and_reason_and_again_when_it_works() -> None:
    world = World()
    assert world.report() is None
    world.fails()
    assert world.report() == (Trouble(SHOP, ONE, 0, 0.0, "shop.test", VERIFY, 1, 1000.0),)
    assert world.report(PAUSE) is None, "nothing is new"
    world.troubles.connected(ONE, "other.test")
    assert world.report(PAUSE) is None, "another name"
    world.troubles.connected(ONE, "shop.test")
    assert world.report(PAUSE) == ()
    assert world.report(PAUSE) is None


def test_more_failures_of_the_same_kind_are_told_after_a_while_and_another_reason_at_once() -> None:
    world = World()
    world.fails()
    assert world.report() is not None
    for _ in range(4):
        world.fails()
    assert world.report(PAUSE) is None
    found = world.report(PAUSE_OF_COUNTS - PAUSE)
    assert found is not None and found[0].failures == 5
    world.fails(reason="timed out")
    assert world.report(PAUSE / 2) is None, "not so soon after the last one"
    found = world.report(PAUSE / 2)
    assert found is not None and (found[0].failures, found[0].reason) == (6, "timed out")


def test_a_failure_that_no_try_was_judged_by_names_no_backend() -> None:
    world = World()
    world.troubles.connection_failed(ONE, "", "timed out")
    found = world.report()
    assert found is not None and [(each.backend, each.endpoint) for each in found] == [("", ONE)]
    world.fails(CART, ONE, "", "timed out")
    found = world.report(PAUSE_OF_COUNTS)
    assert found is not None and [(each.backend, each.failures) for each in found] == [(CART, 2)]


def test_a_try_that_failed_otherwise_is_none_of_the_connection() -> None:
    world = World()
    world.troubles.try_failed(SHOP, ONE)
    assert world.report() is None


def test_two_backends_of_one_endpoint_are_told_apart() -> None:
    world = World()
    world.fails(SHOP)
    world.fails(CART)
    found = world.report()
    assert found is not None and {each.backend for each in found} == {SHOP, CART}


def test_health_and_evictions() -> None:
    world = World()
    world.troubles.health(SHOP, ONE, 30)
    world.troubles.evicted(SHOP, ONE, 5.0)
    assert world.report() == (Trouble(SHOP, ONE, 30, 1005.0, "", "", 0, 0.0),)
    assert world.report(4.9) is None
    assert world.report(0.1) == (Trouble(SHOP, ONE, 30, 0.0, "", "", 0, 0.0),)
    world.troubles.health(SHOP, ONE, 0)
    assert world.report(PAUSE) == ()


def test_a_healthy_answer_to_an_evicted_endpoint_does_not_end_its_eviction_and_no_policy_does() -> None:
    world = World()
    world.troubles.health(SHOP, ONE, 30)
    world.troubles.evicted(SHOP, ONE, 60.0)
    world.troubles.health(SHOP, ONE, 0)
    assert world.report() == (Trouble(SHOP, ONE, 0, 1060.0, "", "", 0, 0.0),)
    world.troubles.unwatched(SHOP, ONE)
    assert world.report(PAUSE) == ()


def test_one_that_no_policy_watches_any_more_is_evicted_at_no_time() -> None:
    world = World()
    world.now = 0.5  # since the machine started: no moment of the past is late enough to be an end by chance
    world.fails()
    world.troubles.health(SHOP, ONE, 30)
    world.troubles.evicted(SHOP, ONE, 60.0)
    world.troubles.unwatched(SHOP, ONE)
    assert world.report() == (Trouble(SHOP, ONE, 0, 0.0, "shop.test", VERIFY, 1, 0.5),)


def test_a_failure_of_long_ago_is_forgotten() -> None:
    world = World()
    world.fails()
    assert world.report() is not None
    assert world.report(FORGET) is None
    assert world.report(0.1) == ()


def test_endpoints_without_end_take_no_more_room() -> None:
    world = World()
    for number in range(3 * MOST_ENDPOINTS):
        world.fails(endpoint=f"10.0.0.{number}:80")
    for number in range(3 * MOST_BACKENDS):
        world.fails(f"backend/{number}", ONE)
    found = world.report()
    assert found is not None and len(found) == MOST_ENDPOINTS - 1 + MOST_BACKENDS
    assert found[0].endpoint == ONE and found[0].backend.startswith("backend/")
    assert all(len(each.reason) <= 256 for each in found)
    world.fails(reason="x" * 10_000, name="n" * 10_000, endpoint="e" * 10_000)
    assert world.report(PAUSE) is None, "a long list is not sent each second"
    newest = (world.report(PAUSE * len(found) / ROWS_OF_PAUSE - PAUSE) or ())[0]
    assert (len(newest.endpoint), len(newest.server_name), len(newest.reason)) == (256, 256, 256)
    world.troubles.connected("e" * 10_000, "n" * 10_000)
    assert all(each.endpoint[0] != "e" for each in world.report(2 * PAUSE) or ())
