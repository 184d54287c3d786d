"""A change's way through one proxy without processes: which binds count as not listening, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from dataplane.agent import journey
from dataplane.agent.journey import Journey
from dataplane.agent.resources import FILE, XDS, Resources
from dataplane.agent.sockets import Difference, Place, Sockets
from dataplane.agent.workers import Verdict, Workers
from dataplane.link.messages import RESOURCE, Record, WantedBind
from dataplane.telemetry.metrics import Metrics
from tests.harness.patience import PATIENCE

WEB = WantedBind("bind/web", 80, ("127.0.0.1",))


class Ports:
    """`Sockets` that open nothing; `busy` places cannot be opened."""

    def __init__(self) -> None:
        self.busy: set[str] = set()
        self._open: set[Place] = set()
        self.logged: list[tuple[str, str]] = []
        """Binds that nobody listens on any more, and whose they were."""

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

    def log_closed(self, place: Place, source: str) -> None:
        assert place not in self._open
        self.logged.append((place.bind, source))

    def listening(self) -> Mapping[str, list[str]]:
        return {place.bind: [place.address] for place in self._open}


class Crew:
    """`Workers` that accept every state; the binds in `deaf` are not accepted on by worker 1."""

    def __init__(self, binds: tuple[WantedBind, ...]) -> None:
        self.binds = binds
        self.deaf: set[str] = set()
        self.waited_for: list[str] = []
        self.refused: dict[str, str] = {}
        self.handed_out: list[str] = []
        self.handed_back: list[str] = []
        self.late: list[int] = []

    async def apply(self, _records: Sequence[Record]) -> Verdict:
        return Verdict(self.refused, self.binds)

    async def open_binds(self, keys: Sequence[str]) -> None:
        self.handed_out += keys

    async def close_binds(self, keys: Sequence[str]) -> None:
        self.handed_back += keys

    def without(self, key: str) -> list[int]:
        return [1] if key in self.deaf else []

    def behind(self) -> list[int]:
        return self.late

    def pending(self) -> list[str]:
        return self.waited_for


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
    way.on_recovery = healed.set
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
    async with asyncio.timeout(PATIENCE):
        await healed.wait()
    trying.cancel()
    assert looks == 3 and way.failures == {}
    assert crew.handed_out == ["bind/web"]  # once: a worker that comes up gets all its sockets by itself


async def test_workers_that_end_again_and_again_are_reported_until_they_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    way, crew, _ = proxy(WEB)
    recovered = asyncio.Event()
    way.on_recovery = recovered.set
    crew.refused, crew.late = {"": "workers 1 hang"}, [1]
    assert await take(way, "bind/web") == {"": "workers 1 hang"}
    monkeypatch.setattr(journey, "TRY_AGAIN", 0.0)
    trying = asyncio.create_task(way.try_again())
    for _ in range(10):
        await asyncio.sleep(0)
    assert way.late and not recovered.is_set()
    crew.late = []
    async with asyncio.timeout(PATIENCE):
        await recovered.wait()
    trying.cancel()
    assert not way.late


async def test_other_changes_leave_a_bind_refused_that_nobody_else_heals() -> None:
    way, crew, _ = proxy(WEB)
    crew.deaf = {"bind/web"}
    await take(way, "bind/web")
    assert "bind/web" in await take(way, "route/a")
    crew.deaf = set()
    assert await take(way, "route/b") == {}


async def test_only_binds_that_change_are_handed_back_and_out() -> None:
    one, two = (WantedBind(f"bind/{name}", port, ("127.0.0.1",)) for name, port in (("one", 1), ("two", 2)))
    way, crew, ports = proxy(one, two)
    await take(way, "route/a")
    assert (crew.handed_out, crew.handed_back) == (["bind/one", "bind/two"], [])
    crew.binds = (one, two._replace(addresses=("127.0.0.1", "127.0.0.2")), WantedBind("bind/new", 3, ("127.0.0.1",)))
    crew.handed_out.clear()
    await take(way, "route/b")
    assert (crew.handed_out, crew.handed_back) == (["bind/new", "bind/two"], ["bind/two"])
    crew.binds = (one,)
    crew.handed_out.clear()
    crew.handed_back.clear()
    await take(way, "route/c")
    assert (crew.handed_out, crew.handed_back) == ([], ["bind/new", "bind/two"])
    assert ports.logged == [("bind/new", "removed"), ("bind/two", "removed"), ("bind/two", "removed")]


async def test_a_proxy_that_refuses_everything_is_not_ready() -> None:
    """It is too old for its control plane, say."""
    way, crew, _ = proxy(WEB)
    crew.refused = {"route/a": "no", "route/b": "no"}
    await take(way, "route/a", "route/b")
    assert way.pending() == ["configuration"]
    assert await take(way, "route/a", "route/b", "route/c") == {"route/a": "no", "route/b": "no"}
    assert way.pending() == []


async def test_a_state_without_anything_is_a_configuration() -> None:
    way, _, _ = proxy()
    assert await take(way) == {} and way.pending() == []


async def test_each_source_hears_what_is_refused_of_its_own() -> None:
    way, crew, _ = proxy(WEB)
    crew.refused = {"route/file": "no"}
    file = [Record(RESOURCE, "route/file", b"")]
    assert await way.take(FILE, file, whole=True) == {"route/file": "no"}
    crew.refused = {"route/file": "no", "route/xds": "nor this", "": "workers hang"}
    assert await take(way, "route/xds") == {"route/xds": "nor this", "": "workers hang"}
    crew.refused = {"route/file": "no", "route/xds": "nor this"}
    assert await way.take(FILE, file, whole=True) == {"route/file": "no"}  # as it is, it was refused
    crew.refused = {"route/xds": "nor this"}
    assert await way.take(FILE, [], whole=True) == {}
    crew.refused = {}
    assert await way.take(XDS, [Record(RESOURCE, "route/xds", b"better")]) == {}
