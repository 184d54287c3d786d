"""Which sockets a worker is handed, and when, without processes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from dataplane.agent.process import WorkerProcess, by_command
from dataplane.agent.resources import Resources
from dataplane.agent.sockets import Sockets
from dataplane.agent.workers import Pace, Workers
from dataplane.link import messages
from dataplane.settings import Drain, SessionKey, WorkerSettings
from dataplane.telemetry.metrics import Metrics
from tests.harness.patience import PATIENCE


class Ports:
    """One socket for each bind and worker; the descriptor is its number."""

    binds: Sequence[str] = ("bind/a", "bind/b")

    def of_worker(self, _index: int) -> list[tuple[str, int]]:
        return [(key, number) for number, key in enumerate(self.binds)]

    def of_bind(self, bind: str, _index: int) -> list[int]:
        return [number for number, key in enumerate(self.binds) if key == bind]


@dataclasses.dataclass(eq=False)
class Life:
    """A `WorkerProcess` that notes what it is told."""

    index: int = 0
    prepared: int = 0
    accepts: bool = False
    is_late: bool = False
    is_condemned: bool = False
    opened: set[str] = dataclasses.field(default_factory=set)
    told: list[Any] = dataclasses.field(default_factory=list)

    def send(self, message: Any, _fd: int = -1) -> None:
        self.told.append(message)

    def obey(self) -> None:
        """Do what was told so far."""
        for message in self.told:
            if isinstance(message, messages.OpenBind):
                assert message.key not in self.opened, "the same socket twice"
                self.opened.add(message.key)
            else:
                self.opened.discard(message.key)
        self.told.clear()


@pytest.fixture
def proxy() -> Iterator[Callable[[], Workers]]:
    made: list[Workers] = []

    def make() -> Workers:
        settings = WorkerSettings("", "test", 1, "text", "off", {}, Drain(0.0, 1.0), SessionKey(bytes(32)))
        resources, sockets = Resources(), cast(Sockets, Ports())
        made.append(Workers(settings, by_command([]), resources, sockets, Metrics.in_memory(), Pace(state=10.0)))
        return made[-1]

    yield make
    while made:
        made.pop().close()


def born(room: Workers) -> Life:
    life = Life()
    room.slots[0].life = cast(WorkerProcess, life)
    room._heard(cast(WorkerProcess, life))
    return life


async def test_a_worker_gets_all_sockets_when_it_has_caught_up(proxy: Callable[[], Workers]) -> None:
    room = proxy()
    room.number = 3
    life = born(room)
    assert life.told == [] and room.without("bind/a") == [0]
    life.prepared = 3
    room._heard(cast(WorkerProcess, life))
    life.obey()
    assert life.opened == {"bind/a", "bind/b"} and room.without("bind/a") == []


async def test_a_worker_that_is_born_while_a_bind_is_handed_back_gets_it_once(proxy: Callable[[], Workers]) -> None:
    """A bind of which an address comes or goes is closed and handed out anew."""
    room = proxy()
    born(room).obey()
    closing = asyncio.create_task(room.close_binds(["bind/a"]))
    await asyncio.sleep(0)
    room.slots[0].life = None  # it died before it did
    life = born(room)
    life.obey()
    async with asyncio.timeout(PATIENCE):
        await closing
    opening = asyncio.create_task(room.open_binds(["bind/a"]))
    await asyncio.sleep(0)
    life.obey()
    room._heard(cast(WorkerProcess, life))
    async with asyncio.timeout(PATIENCE):
        await opening
    assert life.opened == {"bind/a", "bind/b"}
