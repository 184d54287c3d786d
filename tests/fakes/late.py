"""A proxy in memory in whose turns nothing is left of the share: what asks for time in one waits for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dataplane.net.turns import LARGE, SHARE
from dataplane.net.writes import Writes
from tests.fakes.memory_proxy import FakeClient, MemoryProxy

POST: Final = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
PIECE: Final = b"x" * (LARGE + 1)


class Late:
    """A proxy whose loop is turned by hand. Each look at its clock finds the share of a turn used up, but in `turn`."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.now, self.tick = 0.0, SHARE
        self.proxy = MemoryProxy(writes=Writes(self.calls.append, clock=self.clock))
        self.clients: list[FakeClient] = []

    def clock(self) -> float:
        self.now += self.tick
        return self.now

    def client(self, address: str = "192.0.2.9") -> FakeClient:
        self.clients.append(self.proxy.connect((address, 40000)))
        return self.clients[-1]

    def uploads(self, number: int, address: str = "") -> list[FakeClient]:
        found = [self.client(address or f"192.0.2.{1 + each}") for each in range(number)]
        for client in found:
            client.send(POST + b"%d\r\n\r\n" % (10 * len(PIECE)))
        self.end_turns()
        return found

    def begun(self) -> int:
        return self.proxy.context.recorder.active

    def turn(self) -> None:
        """Until those who wait were served, who leave a turn to what filled it."""
        self.tick = 0.0
        number = self.proxy.context.writes.turns.number
        while self.calls and self.proxy.context.writes.turns.number == number:
            calls, self.calls[:] = self.calls[:], []
            for call in calls:
                call()
        self.tick = SHARE

    def end_turns(self) -> None:
        while self.calls:
            self.turn()

    def end(self) -> None:
        for client in self.clients:
            if client.open:
                client.lose()
        self.end_turns()
        assert self.proxy.left() == []
