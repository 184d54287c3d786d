"""Thousands of requests that are lost in one moment: others wait for no more than the law says, and each one ends.

What dozens of connections of HTTP/2 carry, 100 requests each, ends because the clients go away, reset all streams or
break a rule of the protocol, or because their endpoint goes.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from dataplane.http.h2.frames import DATA, RST_STREAM
from dataplane.net.turns import Turns
from dataplane.upstream.h2.shared_connection import SharedConnection
from tests.fakes.h2_wire import OPENING, frame
from tests.harness import yardstick
from tests.hostile.peers import Peer
from tests.hostile.streams import CANCEL, HUNDRED, PLAIN, TO_H2
from tests.hostile.world import HOSTILE_PEER, POLITE_PEER, Polite, Wire, World

MANY: Final = 60
FEW: Final = 30
"""Connections, as many as an endpoint of HTTP/2 has streams for at most."""
STREAMS: Final = 100
LIMIT: Final = 0.050
"""As `test_hostile_streams`: CPU seconds, on the machine of the yardstick."""
TRIES: Final = 3
TURNS: Final = 400

RESETS: Final = b"".join(frame(RST_STREAM, 0, 1 + 2 * each, CANCEL) for each in range(STREAMS))
NO_STREAM: Final = frame(DATA, 0, 0, b"x")


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.fixture(autouse=True)
def no_garbage_is_collected() -> Iterator[None]:
    """As in `world.measure`."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Lost:
    """A worker with so many requests under way, whose endpoint says nothing but what its protocol begins with."""

    def __init__(self, config: str, connections: int) -> None:
        self.world, self.polite = World(config), Polite()
        self.mine = self.world.connect(self.polite, POLITE_PEER)
        self.world.endpoints[9001] = lambda: Peer(iter((OPENING,) if config == TO_H2 else ()))
        self.hostile = [self.world.connect(Peer(iter((HUNDRED,))), HOSTILE_PEER) for _ in range(connections)]
        self.turns_until(lambda: self.active == connections * STREAMS and not self.world.proxy.context.writes.turns)
        self.world.turn(self.mine)
        self.world.meter.longest = 0.0

    @property
    def active(self) -> int:
        return self.world.proxy.context.recorder.active - (not self.polite.served)

    def turns_until(self, done: Callable[[], bool]) -> int:
        for number in range(TURNS):
            if done():
                return number
            self.world.turn(self.mine)
        raise AssertionError(f"{self.active} requests are under way after {TURNS} turns")

    def shared(self) -> list[Wire]:
        return [wire for wire in self.world.wires if isinstance(wire.protocol, SharedConnection)]


def _leave(lost: Lost) -> None:
    for wire in lost.hostile:
        lost.world.meter.run(wire.lose)


def _send(what: bytes) -> Callable[[Lost], None]:
    def all_send(lost: Lost) -> None:
        for wire in lost.hostile:
            lost.world.meter.run(wire.protocol.data_received, what)

    return all_send


def _lose_endpoint(lost: Lost) -> None:
    found = lost.shared()
    assert found
    for wire in found:
        lost.world.meter.run(wire.lose)


HOW: Final[dict[str, tuple[str, int, Callable[[Lost], None]]]] = {
    "clients leave": (PLAIN, MANY, _leave),
    "clients leave, endpoint of HTTP/2": (TO_H2, MANY, _leave),
    "clients reset all streams": (PLAIN, MANY, _send(RESETS)),
    "clients break a rule": (PLAIN, MANY, _send(NO_STREAM)),
    "the endpoint of HTTP/2 leaves": (TO_H2, FEW, _lose_endpoint),
}


def _longest(config: str, connections: int, lose: Callable[[Lost], None]) -> float:
    lost = Lost(config, connections)
    lose(lost)
    lost.turns_until(lambda: lost.active <= 0 and not lost.world.proxy.context.writes.turns)
    for wire in lost.hostile:
        if wire.open:
            wire.lose()
    assert lost.world.left() == []
    return lost.world.meter.longest


@pytest.mark.parametrize("how", HOW)
def test_requests_that_are_lost_together_keep_nobody_waiting(how: str) -> None:
    least = min_of_tries(lambda: _longest(*HOW[how]))
    assert least <= LIMIT or least <= LIMIT * max(1.0, yardstick.measure() / yardstick.REFERENCE)


def test_without_shares_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "is_spent", lambda self: False)
    assert _longest(*HOW["the endpoint of HTTP/2 leaves"]) > LIMIT


def min_of_tries(measured: Callable[[], float]) -> float:
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, measured())
        if least <= LIMIT:
            break
    return least
