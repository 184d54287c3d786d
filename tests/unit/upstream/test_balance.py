"""Power of two choices."""

from __future__ import annotations

import random
from collections import Counter

from dataplane.upstream import balance
from dataplane.upstream.endpoint import Endpoint


def endpoints(count: int) -> list[Endpoint]:
    return [Endpoint(f"192.0.2.{number}", 80) for number in range(count)]


def test_one_endpoint_needs_no_draw() -> None:
    (only,) = endpoints(1)
    assert balance.choose([only], lambda: 1 / 0) is only


def test_where_all_are_well_the_two_draws_decide_and_no_clock_is_read() -> None:
    """Each request asks: what health and slow start cost is for those that have a share below the whole."""
    one, other = endpoints(2)
    draws = iter((0.0, 0.0))
    assert balance.choose([one, other], lambda: next(draws), lambda: 1 / 0) is one
    assert next(draws, None) is None


def test_the_less_busy_of_two_is_taken(dice: random.Random) -> None:
    one, other = endpoints(2)
    one.pending = 1
    assert {balance.choose([one, other], dice.random) for _ in range(50)} == {other}


def test_the_slower_of_two_is_left(dice: random.Random) -> None:
    one, other = endpoints(2)
    for _ in range(50):
        balance.observe(one, 0.5)
        balance.observe(other, 0.005)
    assert balance.choose([one, other], dice.random) is other


def test_equal_endpoints_share_alike_and_the_two_drawn_differ(dice: random.Random) -> None:
    """800 of 5000 where 1000 are meant: seven standard deviations, no seed gets there."""
    draw = dice.random
    many = endpoints(5)
    counts = Counter(balance.choose(many, draw).address for _ in range(5000))
    assert len(counts) == 5
    assert min(counts.values()) > 800
    many[0].pending = 10
    assert all(balance.choose(many, draw) is not many[0] for _ in range(1000))


def test_latency_follows_what_is_observed() -> None:
    (endpoint,) = endpoints(1)
    for _ in range(100):
        balance.observe(endpoint, 0.2)
    assert abs(endpoint.latency - 0.2) < 0.001


def test_labels() -> None:
    assert Endpoint("192.0.2.1", 80).label == "192.0.2.1:80"
    assert Endpoint("2001:db8::1", 80).label == "[2001:db8::1]:80"
    assert Endpoint("", 0, "/run/a.sock").label == "unix:/run/a.sock"


def test_endpoints_that_all_fail_share_alike(dice: random.Random) -> None:
    many = endpoints(4)
    for each in many:
        for _ in range(20):
            balance.judge(each, False)
    counts = Counter(balance.choose(many, dice.random).address for _ in range(4000))
    assert len(counts) == 4 and min(counts.values()) > 700


def test_slow_start(dice: random.Random) -> None:
    """A new endpoint looks best, because nobody has waited for it yet; its part grows with time all the same."""
    one, other = endpoints(2)
    balance.observe(other, 5.0)
    balance.warm_up(one)
    now = 100.0

    def part() -> float:
        return sum(balance.choose([one, other], dice.random, lambda: now) is one for _ in range(4000)) / 4000

    parts = []
    for moment in (100.0, 102.5, 105.0, 107.5):
        now = moment
        parts.append(part())
    for found, meant in zip(parts, (0.05, 0.25, 0.5, 0.75), strict=True):
        assert abs(found - meant) < 0.05  # seven standard deviations
    now = 110.0
    assert part() == 1.0 and one.share == 1.0


def test_the_time_of_a_slow_start_begins_with_the_first_look() -> None:
    (one,) = endpoints(1)
    balance.warm_up(one)
    assert balance.share(one, 500.0) == balance.LEAST_SHARE
    assert balance.share(one, 505.0) == 0.5
    balance.judge(one, False)
    assert balance.share(one, 505.0) == 0.35
    assert balance.share(one, 510.0) == 0.7 == one.share
