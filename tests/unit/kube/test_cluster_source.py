"""A cluster as a source of facts keeps the laws of sources, whatever becomes of its watches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from controlplane.facts import Fact
from controlplane.kube import reflector as reflectors
from controlplane.kube.access import ApiError
from controlplane.kube.source import WATCHED, ClusterSource
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey
from tests.fakes.api_server import ApiServer

SERVICES, ROUTES = "/api/v1/services", "/apis/gateway.networking.k8s.io/v1/httproutes"
TCP_ROUTES = "/apis/gateway.networking.k8s.io/v1alpha2/tcproutes"


class Sink:
    """What a source told: the world, and how often it came to rest. Asserts that it is called one at a time."""

    def __init__(self) -> None:
        self.world: dict[ObjectKey, Fact] = {}
        self.idles = 0
        self.taken = 0
        self._is_called = False
        self.hold = asyncio.Event()
        self.hold.set()

    async def take(self, facts: Sequence[Fact]) -> None:
        async with self._alone():
            await self.hold.wait()
            self.taken += len(facts)
            for fact in facts:
                if fact.model is None:
                    self.world.pop(fact.key, None)
                else:
                    self.world[fact.key] = fact

    async def idle(self) -> None:
        async with self._alone():
            await asyncio.sleep(0)
            self.idles += 1

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        assert not self._is_called
        self._is_called = True
        try:
            yield
        finally:
            self._is_called = False

    def names(self, kind: str = "Service") -> list[str]:
        return sorted(key.name for key in self.world if key.kind == kind)


@contextlib.asynccontextmanager
async def following(server: ApiServer, *kinds: str) -> AsyncIterator[tuple[ClusterSource, Sink]]:
    source, sink = ClusterSource(server, [KINDS[kind] for kind in kinds], lambda: 0.0), Sink()
    running = asyncio.create_task(source.run(sink))
    try:
        yield source, sink
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def turns(holds: Callable[[], bool]) -> None:
    """Until it holds; the loop does nothing else than what is tested, so that many turns are enough for anything."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ABSENT", "FIRST_WAIT", "LONGEST_WAIT"):
        monkeypatch.setattr(reflectors, name, 0.0)


def service(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]},
    }


def test_every_kind_that_something_reads_is_watched() -> None:
    assert {info.kind for info in WATCHED} == set(KINDS) - {"InferencePool"}


async def test_the_first_rest_is_when_every_kind_is_listed() -> None:
    server = ApiServer()
    server.define(SERVICES)
    for number in range(1201):
        server.put(SERVICES, service(f"s{number}"))
    async with following(server, "Service", "HTTPRoute") as (source, sink):
        await turns(lambda: sink.idles == 1)
        assert len(sink.names()) == 1201
        assert server.asked.count(("GET", SERVICES)) == 3  # pages of 500
        assert (source.version_of("Service"), source.version_of("HTTPRoute"), source.version_of("Secret")) == (
            "v1",
            "",
            "",
        )
        assert source.problems() == []


async def test_what_changes_is_told() -> None:
    server = ApiServer()
    server.define(SERVICES)
    async with following(server, "Service") as (_, sink):
        await turns(lambda: sink.idles == 1)
        server.put(SERVICES, service("a"))
        await turns(lambda: sink.names() == ["a"] and sink.idles == 2)
        server.delete(SERVICES, "a")
        await turns(lambda: sink.names() == [] and sink.idles == 3)


async def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    server = ApiServer()
    server.define(SERVICES)
    async with following(server, "Service") as (_, sink):
        await turns(lambda: sink.idles == 1)
        server.put(SERVICES, service("a"))
        await turns(lambda: sink.names() == ["a"])
        server.cut()
        server.put(SERVICES, service("b"))
        await turns(lambda: sink.names() == ["a", "b"])
        assert (sink.taken, server.asked.count(("GET", SERVICES))) == (2, 1)  # nothing twice, nothing listed anew


async def test_bookmarks_save_a_quiet_kind_from_being_listed_anew() -> None:
    server = ApiServer()
    server.define(SERVICES)
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.idles == 1)
        server.version += 100
        server.bookmark(SERVICES)
        known = source.reflectors["Service"]
        await turns(lambda: known._known.resource_version == str(server.version))
        server.forget_history()
        server.cut()
        await turns(lambda: server.asked.count(("WATCH", SERVICES)) == 2)
        server.put(SERVICES, service("a"))
        await turns(lambda: sink.names() == ["a"])
        assert known.relists == 0


async def test_a_server_that_forgot_is_asked_for_everything() -> None:
    server = ApiServer()
    server.define(SERVICES)
    server.put(SERVICES, service("a"))
    server.put(SERVICES, service("b"))
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.names() == ["a", "b"])
        server._events.clear()
        server.delete(SERVICES, "a")
        server._events.clear()
        server.forget_history()
        server.cut()
        await turns(lambda: sink.names() == ["b"])
        assert source.reflectors["Service"].relists == 1


async def test_a_kind_that_is_defined_later_is_followed_then() -> None:
    server = ApiServer()
    async with following(server, "TCPRoute") as (source, sink):
        await turns(lambda: sink.idles == 1)
        server.define(TCP_ROUTES)
        await turns(lambda: source.version_of("TCPRoute") == "v1alpha2")  # the newest one that the server has


async def test_a_kind_whose_definition_goes_takes_its_objects_along() -> None:
    server = ApiServer()
    server.define(SERVICES)
    server.put(SERVICES, service("a"))
    async with following(server, "Service") as (_, sink):
        await turns(lambda: sink.names() == ["a"])
        server.undefine(SERVICES)
        await turns(lambda: sink.names() == [])


async def test_trouble_is_told_and_what_was_read_stays() -> None:
    server = ApiServer()
    server.define(SERVICES)
    server.put(SERVICES, service("a"))
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.idles == 1)
        server.refuse.extend([ApiError(403, "Forbidden", "services is forbidden"), OSError("no route to host")])
        server.cut()
        await turns(lambda: any("services is forbidden" in str(each) for each in source.problems()))
        assert sink.names() == ["a"]
        await turns(lambda: source.problems() == [])


async def test_a_slow_sink_is_not_told_more_than_it_takes() -> None:
    server = ApiServer()
    server.define(SERVICES)
    async with following(server, "Service") as (_, sink):
        await turns(lambda: sink.idles == 1)
        sink.hold.clear()
        for number in range(50):
            server.put(SERVICES, service(f"s{number}"))
            await asyncio.sleep(0)
        sink.hold.set()
        await turns(lambda: len(sink.names()) == 50)
        assert sink.idles < 10  # what came meanwhile is one batch
