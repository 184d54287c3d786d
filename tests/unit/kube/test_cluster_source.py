"""A cluster as a source of facts keeps the laws of sources, whatever becomes of its watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from controlplane.facts import Fact
from controlplane.kube.access import TOO_LARGE, ApiError
from controlplane.kube.reading import reflector as reflectors
from controlplane.kube.reading.source import WATCHED, ClusterSource
from controlplane.kube.reading.spaces import Spaces
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.selector_text import parsed
from tests.fakes.api_server import ApiServer
from tests.harness.seeds import rolls
from tests.harness.waiting import cancelled

SERVICES, ROUTES = "/api/v1/services", "/apis/gateway.networking.k8s.io/v1/httproutes"
TCP_ROUTES = "/apis/gateway.networking.k8s.io/v1alpha2/tcproutes"


class Sink:
    """What a source told: the world, and how often it came to rest. Asserts that it is called one at a time."""

    def __init__(self) -> None:
        self.world: dict[ObjectKey, Fact] = {}
        self.idles = 0
        self.taken = 0
        self.gone: list[list[str]] = []
        """Of each time that something went: of which kinds that was."""
        self._is_called = False
        self.hold = asyncio.Event()
        self.hold.set()

    async def take(self, facts: Sequence[Fact]) -> None:
        async with self._alone():
            await self.hold.wait()
            self.taken += len(facts)
            self.gone += [found] if (found := sorted(fact.key.kind for fact in facts if fact.model is None)) else []
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
async def following(server: ApiServer, *kinds: str, selector: str = "") -> AsyncIterator[tuple[ClusterSource, Sink]]:
    spaces = Spaces(parsed(selector)) if selector else None
    source, sink = ClusterSource(server, [KINDS[kind] for kind in kinds], lambda: 0.0, spaces), Sink()
    running = asyncio.create_task(source.run(sink))
    try:
        yield source, sink
    finally:
        await cancelled(running)


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


def http_route(name: str) -> dict[str, object]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gw"}]},
    }


def test_every_kind_that_something_reads_is_watched() -> None:
    assert {info.kind for info in WATCHED} == set(KINDS)


POOLS = "/apis/inference.networking.k8s.io/v1/inferencepools"
PODS = "/api/v1/pods"


def pool(name: str) -> dict[str, object]:
    picker = {"name": "picker", "port": {"number": 9002}}
    spec = {
        "selector": {"matchLabels": {"app": "a"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": picker,
    }
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": metadata,
        "spec": spec,
    }


def pod(name: str) -> dict[str, object]:
    ready = {
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True", "reason": "x"}],
        "phase": "Running",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c"}]},
        "status": ready,
    }


async def test_pods_are_read_from_the_first_inference_pool_on() -> None:
    server = ApiServer()
    for path in (SERVICES, POOLS, PODS):
        server.define(path)
    server.put(PODS, pod("first"))
    async with following(server, "Service", "InferencePool", "Pod") as (_, sink):
        await turns(lambda: sink.idles == 1)
        assert ("GET", PODS) not in server.asked
        server.put(POOLS, pool("llama"))
        await turns(lambda: sink.names("Pod") == ["first"])


async def test_pods_are_part_of_the_first_rest_where_there_are_pools() -> None:
    server = ApiServer()
    for path in (SERVICES, POOLS, PODS):
        server.define(path)
    server.put(PODS, pod("first"))
    server.put(POOLS, pool("llama"))
    async with following(server, "Service", "InferencePool", "Pod") as (_, sink):
        await turns(lambda: sink.idles == 1)
        assert (sink.names("InferencePool"), sink.names("Pod")) == (["llama"], ["first"])


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
        assert len(source.problems()) == 1  # HTTPRoutes are not defined


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


@pytest.mark.parametrize("status", [404, 410])
async def test_a_watch_that_is_refused_for_its_age_begins_with_a_list(status: int) -> None:
    """An API server says so in its first line, or with the status of its answer; 404 when the definition is new."""
    server = ApiServer()
    server.define(SERVICES)
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.idles == 1 and ("WATCH", SERVICES) in server.asked)
        server.put(SERVICES, service("a"))
        await turns(lambda: sink.names() == ["a"])
        server.refuse.append(ApiError(status, "Gone", "too old resource version"))
        server.cut()
        await turns(lambda: server.asked.count(("GET", SERVICES)) == 2)
        assert source.reflectors["Service"].relists == 1 and source.problems() == []
        server.put(SERVICES, service("b"))
        await turns(lambda: sink.names() == ["a", "b"])


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
        server.events.clear()
        server.delete(SERVICES, "a")
        server.events.clear()
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


async def test_a_kind_whose_definition_goes_takes_its_objects_along_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "controlplane.kube")
    server = ApiServer()
    server.put(ROUTES, http_route("a"))
    async with following(server, "HTTPRoute") as (_, sink):
        await turns(lambda: sink.names("HTTPRoute") == ["a"])
        assert caplog.messages == []
        server.undefine(ROUTES)
        await turns(lambda: sink.names("HTTPRoute") == [])
        gone = "httproutes are not defined any more: there are none until their definition is back"
        assert caplog.messages == [gone]
        server.put(ROUTES, http_route("b"))
        await turns(lambda: sink.names("HTTPRoute") == ["b"] and len(caplog.messages) > 1)
        assert caplog.messages[1:] == ["httproutes are defined now, and read"]


FORBIDDEN = ApiError(403, "Forbidden", 'forbidden: User "me" cannot get path "/api"')


async def test_who_may_not_ask_for_versions_of_the_core_asks_an_api_server_all_the_same() -> None:
    server = ApiServer()
    server.core = FORBIDDEN
    server.put(ROUTES, http_route("a"))
    async with following(server, "HTTPRoute", "TCPRoute") as (source, sink):
        await turns(lambda: sink.idles == 1 and sink.names("HTTPRoute") == ["a"])
        server.undefine(ROUTES)
        await turns(lambda: sink.names("HTTPRoute") == [])
        assert [each.severity for each in source.problems()] == ["warning"]


@pytest.mark.parametrize(
    ("core", "problem"),
    [
        (ApiError(404, "", "page not found"), "404"),
        (ApiError(503, "", "no backend"), "no backend"),
        (ApiError(403, "", "<html>"), "<html>"),
        (b"{}", "versions of the core"),
        (b'{"kind": "APIVersions", "versions": []}', "versions of the core"),
        (b"<html>", "versions of the core"),
    ],
)
async def test_a_server_that_has_no_kind_at_all_takes_nothing_away(core: bytes | ApiError, problem: str) -> None:
    """Another server at the address, or a proxy before it: what was read stays, also of kinds that may be absent."""
    server = ApiServer()
    server.put(SERVICES, service("a"))
    server.put(ROUTES, http_route("a"))
    async with following(server, "Service", "HTTPRoute") as (source, sink):
        await turns(lambda: sink.idles == 1 and len(sink.world) == 2)
        before, known = server.core, dict(server.objects)
        server.core = core
        server.objects.clear()
        server.cut()
        await turns(lambda: {each.object for each in source.problems()} == {"services", "httproutes"})
        assert any(problem in each.message for each in source.problems())
        assert sink.gone == []
        server.core = before
        server.objects.update(known)
        await turns(lambda: source.problems() == [])
        assert sink.gone == [] and len(sink.world) == 2


async def test_definitions_that_are_not_there_are_named_with_what_installs_them() -> None:
    server = ApiServer()
    async with following(server, "HTTPRoute", "TCPRoute") as (source, sink):
        await turns(lambda: sink.idles == 1)
        (problem,) = source.problems()  # nobody misses TCPRoutes
        assert str(problem).startswith(
            "cluster: warning: does not define httproutes.gateway.networking.k8s.io: install"
        )
        server.define(ROUTES)
        await turns(lambda: source.problems() == [])


async def test_a_kind_of_the_core_is_never_absent() -> None:
    server = ApiServer()
    server.undefine(SERVICES)
    async with following(server, "Service") as (source, sink):
        await turns(lambda: len(source.problems()) == 1)
        assert sink.idles == 0, "a controller that begins here waits"
        server.define(SERVICES)
        server.put(SERVICES, service("a"))
        await turns(lambda: sink.idles == 1 and sink.names() == ["a"])


async def test_what_is_no_list_takes_nothing_away() -> None:
    """A proxy that answers {} to everything."""

    class Empty(ApiServer):
        is_empty = False

        async def read(self, path: str, **query: Any) -> bytes:
            return b"{}" if self.is_empty else await super().read(path, **query)

    server = Empty()
    server.put(SERVICES, service("a"))
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.names() == ["a"])
        server.is_empty = True
        server.forget_history()
        server.version += 1
        server.oldest = server.version
        server.cut()
        await turns(lambda: any("no resourceVersion" in each.message for each in source.problems()))
        assert sink.names() == ["a"]
        server.is_empty = False
        await turns(lambda: source.problems() == [] and sink.names() == ["a"])


async def test_without_the_right_to_list_nothing_is_taken_for_empty() -> None:
    """At the start and later: 403 to the list and to the watch."""

    class Locked(ApiServer):
        is_locked = True

        async def read(self, path: str, **query: Any) -> bytes:
            self._check_right(path)
            return await super().read(path, **query)

        async def lines(self, path: str, **query: Any) -> AsyncIterator[list[bytes]]:
            self._check_right(path)
            async for each in super().lines(path, **query):
                yield each

        def _check_right(self, path: str) -> None:
            if self.is_locked and path == ROUTES:
                raise ApiError(403, "Forbidden", "httproutes is forbidden")

    server = Locked()
    server.put(ROUTES, http_route("a"))
    async with following(server, "HTTPRoute") as (source, sink):
        await turns(lambda: any("httproutes is forbidden" in each.message for each in source.problems()))
        assert sink.idles == 0 and not source.reflectors["HTTPRoute"].listed.is_set()
        server.is_locked = False
        await turns(lambda: sink.idles == 1 and sink.names("HTTPRoute") == ["a"])
        server.is_locked = True
        server.oldest = server.version = server.version + 1
        server.cut()  # it may neither go on nor list anew
        await turns(lambda: any("httproutes is forbidden" in each.message for each in source.problems()))
        assert sink.names("HTTPRoute") == ["a"] and sink.gone == []
        server.is_locked = False
        server.delete(ROUTES, "a")
        await turns(lambda: source.problems() == [] and sink.names("HTTPRoute") == [])


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


async def test_kinds_that_wait_for_each_other_are_one_publication() -> None:
    server = ApiServer()
    for path in (SERVICES, NAMESPACES):
        server.define(path)
    async with following(server, "Service", "Namespace") as (_, sink):
        await turns(lambda: sink.idles == 1 and {("WATCH", SERVICES), ("WATCH", NAMESPACES)} <= {*server.asked})
        sink.hold.clear()
        server.put(SERVICES, service("a"))
        server.put(NAMESPACES, space("shop"))
        for _ in range(50):  # both are read, and the second waits for the first
            await asyncio.sleep(0)
        sink.hold.set()
        await turns(lambda: sink.names() == ["a"] and sink.names("Namespace") == ["shop"])
        for _ in range(50):
            await asyncio.sleep(0)
        assert sink.idles == 2


NAMESPACES = "/api/v1/namespaces"


def space(name: str, **labels: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def inside(name: str, namespace: str, port: int = 80) -> dict[str, object]:
    """The server of the tests knows objects by their names alone."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": port}]}}


async def test_objects_of_other_namespaces_are_not_read() -> None:
    server = ApiServer()
    server.define(SERVICES)
    server.put(NAMESPACES, space("shop", team="edge"))
    server.put(NAMESPACES, space("other"))
    server.put(SERVICES, inside("a", "shop"))
    server.put(SERVICES, inside("b", "other"))
    async with following(server, "Namespace", "Service", selector="team=edge") as (source, sink):
        await turns(lambda: sink.idles >= 1)
        assert sink.names() == ["a"] and len(source.reflectors["Service"]) == 1
        server.put(SERVICES, inside("c", "other"))
        server.put(SERVICES, inside("d", "shop"))
        await turns(lambda: sink.names() == ["a", "d"])
        assert sink.names("Namespace") == ["other", "shop"]


async def test_a_namespace_that_gets_or_loses_the_labels_comes_or_goes_with_its_objects() -> None:
    server = ApiServer()
    server.define(SERVICES)
    server.put(NAMESPACES, space("shop", team="edge"))
    server.put(NAMESPACES, space("late"))
    server.put(SERVICES, inside("a", "shop"))
    server.put(SERVICES, inside("b", "late"))
    async with following(server, "Namespace", "Service", selector="team=edge") as (source, sink):
        await turns(lambda: sink.names() == ["a"] and sink.idles >= 1)
        server.put(NAMESPACES, space("late", team="edge"))
        await turns(lambda: sink.names() == ["a", "b"])
        server.put(NAMESPACES, space("shop"))
        await turns(lambda: sink.names() == ["b"])
        server.delete(NAMESPACES, "late")
        await turns(lambda: sink.names() == [])
        assert server.asked.count(("GET", SERVICES)) == 1  # nothing is listed anew but what is inside
        assert source.problems() == []


async def test_a_namespace_goes_with_all_its_objects_at_once() -> None:
    """Also what others have read of it and could not tell yet: it comes before."""
    server = ApiServer()
    server.define(SERVICES)
    server.define(ROUTES)
    server.put(NAMESPACES, space("shop", team="edge"))
    server.put(SERVICES, inside("a", "shop"))
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": {}}
    server.put(ROUTES, {**route, "metadata": {"name": "r", "namespace": "shop"}})
    async with following(server, "Namespace", "Service", "HTTPRoute", selector="team=edge") as (_, sink):
        await turns(lambda: sink.idles >= 1)
        sink.hold.clear()
        for number in range(3):
            server.put(SERVICES, inside("a", "shop", 81 + number))
            await asyncio.sleep(0)
        server.put(NAMESPACES, space("shop"))
        for _ in range(50):
            await asyncio.sleep(0)
        sink.hold.set()
        await turns(lambda: sink.names() == sink.names("HTTPRoute") == [])
        assert sink.gone == [["HTTPRoute", "Service"]]


class Losing(ApiServer):
    """A namespace loses its label between two pages of what is in it."""

    async def read(self, path: str, **query: Any) -> bytes:
        if "/namespaces/" in path and "continue" in query:
            self.put(NAMESPACES, space("late"))
            for _ in range(50):  # the watch of namespaces reports it meanwhile
                await asyncio.sleep(0)
        return await super().read(path, **query)


async def test_a_namespace_that_loses_the_labels_while_it_is_looked_into_goes_all_the_same() -> None:
    server = Losing()
    server.put(NAMESPACES, space("late"))
    server.define(SERVICES)
    for number in range(600):
        server.put(SERVICES, inside(f"s{number}", "late"))
    async with following(server, "Namespace", "Service", selector="team=edge") as (source, sink):
        await turns(lambda: sink.idles >= 1)
        server.put(NAMESPACES, space("late", team="edge"))
        await turns(lambda: len(sink.names()) == 500)
        await turns(lambda: sink.names() == [])
        assert len(source.reflectors["Service"]) == 0


async def test_random_histories_of_namespaces_end_as_a_fresh_start() -> None:
    """Objects and labels come and go, watches are cut, and the server forgets: what is known is what a new source
    would know."""
    draw, server = rolls("namespaces"), ApiServer()
    server.define(SERVICES)
    for name in ("n0", "n1", "n2"):
        server.put(NAMESPACES, space(name))
    async with following(server, "Namespace", "Service", selector="team=edge") as (_, sink):
        for step in range(400):
            number = draw.randrange(3)
            what = draw.choice(["put", "put", "delete", "label", "unlabel", "gone", "cut", "forget", "wait"])
            if what == "put":
                name = f"s{number}{draw.randrange(3)}"
                server.put(SERVICES, inside(name, f"n{number}", step + 1))
            elif what == "delete" and server.objects[SERVICES]:
                server.delete(SERVICES, draw.choice(sorted(server.objects[SERVICES])))
            elif what in ("label", "unlabel"):
                server.put(NAMESPACES, space(f"n{number}", **({"team": "edge"} if what == "label" else {})))
            elif what == "gone" and f"n{number}" in server.objects[NAMESPACES]:
                server.delete(NAMESPACES, f"n{number}")
            elif what == "cut":
                server.cut()
            elif what == "forget":
                server.forget_history()
                server.cut()
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
        await settled(server, sink)


async def settled(server: ApiServer, sink: Sink) -> None:
    """Ends when a fresh source knows what the sink was told."""
    async with following(server, "Namespace", "Service", selector="team=edge") as (_, fresh):
        await turns(lambda: fresh.idles >= 1)
        await turns(lambda: sink.world == fresh.world)


async def test_what_came_before_an_error_of_a_watch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch that follows goes on behind it."""
    server = ApiServer()
    server.define(SERVICES)
    watched = server.lines
    first = service("a")
    first["metadata"] = {"name": "a", "namespace": "shop", "resourceVersion": "2"}
    chunk = [
        json.dumps({"type": "ADDED", "object": first}).encode(),
        json.dumps({"type": "ERROR", "object": {"message": "etcd leader changed"}}).encode(),
    ]
    begun = 0

    async def lines(path: str, **query: Any) -> AsyncIterator[list[bytes]]:
        nonlocal begun
        begun += 1
        if begun == 1:
            yield chunk
            return
        async for each in watched(path, **query):
            yield each

    monkeypatch.setattr(server, "lines", lines)
    async with following(server, "Service") as (_, sink):
        await turns(lambda: begun > 1)
        await turns(lambda: sink.names() == ["a"])


async def test_pages_that_are_too_large_are_asked_for_with_fewer_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 policies of 1.3 MB of one tenant were more than a page may have, and nobody's policies could be read."""
    server = ApiServer()
    server.define(SERVICES)
    for number in range(700):
        server.put(SERVICES, service(f"s{number:03}"))
    read, limits = server.read, []

    async def bounded(path: str, **query: Any) -> bytes:
        limits.append(query["limit"])
        if query["limit"] > 100:
            raise ApiError(200, TOO_LARGE, "the answer has more than 1 bytes")
        return await read(path, **query)

    monkeypatch.setattr(server, "read", bounded)
    async with following(server, "Service") as (source, sink):
        await turns(lambda: sink.idles == 1)
        assert len(sink.names()) == 700 and source.problems() == []
    assert limits[:3] == [500, 31, 500]


async def test_one_object_that_is_too_large_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ApiServer()
    server.define(SERVICES)

    async def refusing(path: str, **query: Any) -> bytes:
        raise ApiError(200, TOO_LARGE, "the answer has more than 1 bytes")

    monkeypatch.setattr(server, "read", refusing)
    async with following(server, "Service") as (source, _):
        await turns(lambda: bool(source.problems()))
        assert "the answer has more than 1 bytes" in str(source.problems()[0])
