"""Handshakes in turns: who begins many waits for them; others do not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from OpenSSL import SSL

from dataplane.net.turns import SHARE, Turns
from dataplane.tls.contexts import accepting, client_context, connecting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.settings import DEFAULT, NOT_ASKED, Identity
from dataplane.tls.transport import TlsTransport
from tests.fakes.certificates import RSA, Authority
from tests.fakes.tls_pair import Inner, Socket


class World:
    """A loop that is moved by hand, and steps that take time."""

    def __init__(self, cost: float) -> None:
        self.now, self.cost = 0.0, cost
        self.calls: list[Callable[[], None]] = []
        self.turns = Turns(self.calls.append, lambda: self.now)
        self.handshakes = Handshakes(self.turns)
        self.taken: list[str] = []

    def turn(self) -> float:
        """One turn of the loop; answers what it took."""
        began, calls = self.now, list(self.calls)
        self.calls.clear()
        for call in calls:
            call()
        return self.now - began

    def add(self, source: str, count: int = 1) -> None:
        for _ in range(count):
            self.handshakes.add(Step(self, source))


class Step:
    def __init__(self, world: World, source: str) -> None:
        self.world, self.source = world, source

    def step(self) -> None:
        self.world.now += self.world.cost
        self.world.taken.append(self.source)


def test_a_handshake_is_taken_at_once_where_nobody_waits() -> None:
    world = World(0.001)
    world.add("a")
    assert world.taken == ["a"] and len(world.handshakes) == 0


def test_200_handshakes_of_one_client_are_spread_over_turns() -> None:
    world = World(0.0015)
    world.add("a", 200)
    longest = [world.now]
    while len(world.handshakes):
        longest.append(world.turn())
    assert len(world.taken) == 200
    assert max(longest) <= SHARE + 2 * 0.0015 < 0.05


def test_a_client_that_comes_behind_200_handshakes_of_another_is_served_next() -> None:
    world = World(0.0015)
    world.add("a", 200)
    world.turn()
    before = len(world.taken)
    world.add("b")
    world.turn()
    assert world.taken.index("b") <= before + 4
    assert world.taken.count("a") < 20


def test_in_each_round_every_client_has_one_step() -> None:
    world = World(0.001)
    world.add("a", 20)
    world.turn()
    world.taken.clear()
    world.add("b", 3)
    world.add("c", 3)
    while len(world.handshakes):
        world.turn()
    assert sorted(world.taken[:3]) == ["a", "b", "c"] and sorted(world.taken[3:6]) == ["a", "b", "c"]
    assert set(world.taken[9:]) == {"a"}


# --- with handshakes of OpenSSL, on the clock of this thread's CPU


class Below(Socket):
    """A transport on which nobody reads."""

    def write(self, data: bytes) -> None:
        self.sent.append(data)


def test_200_real_handshakes_at_once_hold_the_loop_for_moments_only() -> None:
    """Of an RSA key, whose signatures take longest. Another client's handshake, begun last, is among the first done."""
    issued = Authority().issue("shop.example", kind=RSA)
    context = server_context(DEFAULT, [load(Identity(issued.chain, issued.key))])
    hello = client_hello()
    calls: list[Callable[[], None]] = []
    turns = Turns(calls.append)
    handshakes = Handshakes(turns)
    belows: list[Below] = []

    def begin(source: str) -> Below:
        below = Below()
        TlsTransport(accepting(context), Inner(), handshakes, turns, source).start(below, hello)
        belows.append(below)
        return below

    for _ in range(200):
        begin("many")
    other = begin("one")
    assert belows[0].reading and not other.reading, "what waits for its turn is not read"
    longest, when = 0.0, []
    while calls:
        now, began = list(calls), time.thread_time()
        calls.clear()
        for call in now:
            call()
        longest = max(longest, time.thread_time() - began)
        if other.sent and not when:
            when.append(sum(bool(below.sent) for below in belows))
    assert all(below.sent and below.reading for below in belows)
    assert longest < 0.05
    assert when and when[0] < 50


def client_hello() -> bytes:
    client = connecting(client_context(DEFAULT, NOT_ASKED), "shop.example")
    with pytest.raises(SSL.WantReadError):
        client.do_handshake()
    return client.bio_read(65536)
