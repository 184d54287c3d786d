"""A change's way through one proxy without processes: which binds count as not listening, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from dataplane.agent import journey
from dataplane.agent.journey import Journey
from dataplane.agent.resources import XDS, Resources
from dataplane.agent.sockets import Difference, Place, Sockets
from dataplane.agent.workers import Verdict, Workers
from dataplane.link.messages import RESOURCE, Record, WantedBind
from dataplane.telemetry.metrics import Metrics

WEB = WantedBind("bind/web", 80, ("127.0.0.1",))


class Ports:
    """`Sockets` that open nothing; `busy` places cannot be opened."""

    def __init__(self) -> None:
        self.busy: set[str] = set()
        self._open: set[Place] = set()

    def difference(self, wanted: Sequence[WantedBind]) -> Difference:
        places = {Place(bind.key, address, bind.port) for bind in wanted for address in bind.addresses}
        return Difference(tuple(sorted(self._open - places)), tuple(sorted(places - self._open)))

    def open(self, place: Place, _source: str) -> str:
        if place.bind in self.busy:
            return "it is in use"
        self._open.add(place)
        return ""

    def close(self, place: Place) -> None:
        self._open.discard(place)

    def log_closed(self, *_: Any) -> None:
        """Nobody reads it here."""

    def listening(self) -> Mapping[str, list[str]]:
        return {place.bind: [place.address] for place in self._open}


class Crew:
    """`Workers` that accept every state; the binds in `deaf` are not accepted on by worker 1."""

    def __init__(self, binds: tuple[WantedBind, ...]) -> None:
        self.binds = binds
        self.deaf: set[str] = set()
        self.handed_out: list[str] = []

    async def apply(self, _records: Sequence[Record]) -> Verdict:
        return Verdict({}, self.binds)

    async def open_binds(self, keys: Sequence[str]) -> None:
        self.handed_out += keys

    async def close_binds(self, _keys: Sequence[str]) -> None:
        """All of them do."""

    def without(self, key: str) -> list[int]:
        return [1] if key in self.deaf else []

    def pending(self) -> list[str]:
        return []


def proxy(*binds: WantedBind) -> tuple[Journey, Crew, Ports]:
    crew, ports = Crew(binds), Ports()
    return Journey(Resources(), cast(Workers, crew), cast(Sockets, ports), Metrics.in_memory()), crew, ports


async def take(way: Journey, *keys: str) -> Mapping[str, str]:
    return await way.take(XDS, [Record(RESOURCE, key, b"") for key in keys])


async def test_a_bind_that_a_worker_does_not_listen_on_is_refused_until_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way, crew, _ = proxy(WEB)
    healed = asyncio.Event()
    way.on_healing = healed.set
    crew.deaf = {"bind/web"}
    assert await take(way, "bind/web") == {"bind/web": "workers [1] do not listen"}

    looks = 0

    def looked(key: str) -> list[int]:
        nonlocal looks
        looks += 1
        return [1] if looks < 3 else []

    monkeypatch.setattr(crew, "without", looked)
    monkeypatch.setattr(journey, "TRY_AGAIN", 0.0)
    trying = asyncio.create_task(way.try_again())
    async with asyncio.timeout(10):
        await healed.wait()
    trying.cancel()
    assert looks == 3 and way.failures == {}
    assert crew.handed_out == ["bind/web"]  # once: a worker that comes up gets all its sockets by itself


async def test_other_changes_leave_a_bind_refused_that_nobody_else_heals() -> None:
    way, crew, _ = proxy(WEB)
    crew.deaf = {"bind/web"}
    await take(way, "bind/web")
    assert "bind/web" in await take(way, "route/a")
    crew.deaf = set()
    assert await take(way, "route/b") == {}


async def test_a_worker_that_is_away_for_a_moment_fails_no_bind_that_listened() -> None:
    way, crew, _ = proxy(WEB)
    assert await take(way, "bind/web") == {}
    crew.deaf = {"bind/web"}
    assert await take(way, "route/a") == {}


async def test_a_port_in_use_is_opened_when_it_is_free() -> None:
    way, crew, ports = proxy(WEB)
    ports.busy = {"bind/web"}
    assert await take(way, "bind/web") == {"bind/web": "it is in use"}
    assert crew.handed_out == []
    ports.busy = set()
    assert await take(way, "route/a") == {}
    assert crew.handed_out == ["bind/web"]
