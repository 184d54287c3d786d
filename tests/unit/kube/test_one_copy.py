"""Of an object that was read from a cluster one copy is in memory, from the reader to the states of proxies."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator, Iterable
from types import ModuleType
from typing import Any

import pytest

from controlplane.kube.reading import reflector as reflectors
from controlplane.kube.reading.source import ClusterSource
from controlplane.pipeline import Pipeline
from controlplane.snapshot.history import History
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import KubeObject
from tests.fakes.api_server import ApiServer
from tests.harness.waiting import cancelled, until

API = "gateway.networking.k8s.io/v1"
CLASSES, GATEWAYS, ROUTES = (f"/apis/{API}/{each}" for each in ("gatewayclasses", "gateways", "httproutes"))
SECRETS = "/api/v1/secrets"
COUNT = 20
TRANSLATED = 3
"""Bytes with what a route says: its translation, the resource made of it, and the same in the state of a Gateway."""


def put(server: ApiServer, path: str, kind: str, name: str, spec: dict[str, Any], edition: str = "first") -> None:
    """`edition`: the object can be told from an older or newer one by it."""
    metadata = {"name": name, "namespace": "shop", "uid": name, "annotations": {"note": f"{edition} note of {name}."}}
    managed = [{"manager": "kubectl", "fieldsV1": {f"{edition} fields of {name}.": {}}}]
    body = {"metadata": {**metadata, "managedFields": managed}, "spec": spec}
    server.put(path, {"apiVersion": API, "kind": kind, **body})


def route(server: ApiServer, number: int, edition: str = "first") -> None:
    match = {"path": {"type": "Exact", "value": f"/{edition}/path-{number}/"}}
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{edition}-host-{number}.example"}}
    spec = {"parentRefs": [{"name": "web"}], "rules": [{"matches": [match], "filters": [redirect]}]}
    put(server, ROUTES, "HTTPRoute", f"route-{number}", spec, edition)


@contextlib.asynccontextmanager
async def controller(server: ApiServer) -> AsyncIterator[tuple[Pipeline, ClusterSource]]:
    pipeline = Pipeline()
    source = ClusterSource(server, [KINDS[each] for each in ("GatewayClass", "Gateway", "HTTPRoute")], lambda: 0.0)
    running = asyncio.create_task(source.run(pipeline))
    try:
        await pipeline.ready.wait()
        yield pipeline, source
    finally:
        pipeline.close()
        await cancelled(running)


def held(*roots: object, beside: object) -> list[Any]:
    """All that these keep alive, but for `beside`, types, modules, and older states, which have bounds of their own."""
    passed = {id(vars(each)) for each in [*sys.modules.values()] if isinstance(each, ModuleType)} | {id(beside)}
    found: dict[int, Any] = {}
    rest: list[Any] = [*roots]
    while rest:
        each = rest.pop()
        if id(each) not in found and id(each) not in passed and not isinstance(each, type | ModuleType | History):
            found[id(each)] = each
            rest += gc.get_referents(each)
    return [*found.values()]


def texts(objects: Iterable[Any], part: str) -> int:
    return sum(isinstance(each, str) and part in each for each in objects)


def pieces(objects: Iterable[Any], part: str) -> int:
    """JSON, or messages of the wire."""
    return sum(isinstance(each, bytes | bytearray) and part.encode() in each for each in objects)


def wrong(objects: list[Any], edition: str) -> list[str]:
    """What is kept more than once, or not at all."""
    found = ["raw objects"] if any(isinstance(each, dict) and "parentRefs" in each for each in objects) else []
    for number in range(COUNT):
        name = f"route-{number}"
        models = sum(isinstance(each, KubeObject) and each.metadata.name == name for each in objects)
        host, note, fields = (
            f"{edition}-host-{number}.example",
            f"{edition} note of {name}.",
            f"{edition} fields of {name}.",
        )
        counts = {
            "models": (models, 1),
            "names": (texts(objects, host), 1),
            "notes": (texts(objects, note), 1),
            "translations": (pieces(objects, host), TRANSLATED),
            "answers": (pieces(objects, note), 0),
            "fields of managers": (texts(objects, fields) + pieces(objects, fields), 0),
        }
        found += [f"{count} {what} of {name}" for what, (count, right) in counts.items() if count != right]
    return found


async def test_one_copy_of_each_object_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed, edited while it was watched, and listed anew because the watch was too old."""
    monkeypatch.setattr(reflectors, "FIRST_WAIT", 0.0)
    server = ApiServer()
    put(server, CLASSES, "GatewayClass", "gatewright", {"controllerName": "gatewright.dev/controller"})
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    put(server, GATEWAYS, "Gateway", "web", {"gatewayClassName": "gatewright", "listeners": [listener]})
    for number in range(COUNT):
        route(server, number)
    async with controller(server) as (pipeline, source):

        def everything() -> list[Any]:
            return held(pipeline, source, beside=server)

        async def are_as(edition: str) -> None:
            await until(lambda: not wrong(everything(), edition), lambda: "; ".join(wrong(everything(), edition)))

        await are_as("first")
        for number in range(COUNT):
            route(server, number, "second")
        await are_as("second")
        server.forget_history()
        server.cut()
        for number in range(COUNT):
            route(server, number, "third")
        server.forget_history()
        await are_as("third")
        assert source.reflectors["HTTPRoute"].relists >= 1
        left = everything()
        for each in ("first note of route", "second note of route", "first-host", "second-host"):
            assert texts(left, each) == pieces(left, each) == 0
