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
