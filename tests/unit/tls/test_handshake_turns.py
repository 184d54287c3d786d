"""Handshakes in turns: who begins many waits for them; others do not."""

from __future__ import annotations

from collections.abc import Callable

from dataplane.net.turns import SHARE, Turns
from dataplane.tls.handshakes import Handshakes


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
