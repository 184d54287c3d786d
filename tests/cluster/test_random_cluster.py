"""Everything is created, changed and deleted in random order, and what can end ends meanwhile: at the end proxies have
what a fresh start gives them, and whoever asked for what nobody touched was always answered."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

import pytest

from tests.cluster.controllers import GATEWAY_API, Controller, apply, created
from tests.cluster.kube import ApiServer
from tests.fakes.proxy_process import TIMES
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import Program, running
from tests.harness.seeds import rolls, times
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.needs("go"), pytest.mark.slow]

SECONDS = 30
SPACE = "random"
CORE, OURS = f"/api/v1/namespaces/{SPACE}", f"/apis/gatewright.dev/v1alpha1/namespaces/{SPACE}"
GATEWAYS = f"{GATEWAY_API}/namespaces/{SPACE}"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{SPACE}/endpointslices"
FEW = 6
"""Objects of a kind."""
Json = dict[str, Any]


def redirect(path: str, host: str) -> Json:
    match = {"path": {"type": "PathPrefix", "value": path}}
    return {"matches": [match], "filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": host}}]}


def http_route(draw: Random, name: str) -> Json:
    """It answers by itself, or leads to a Service that may be there or not."""
    rules: list[Json] = [redirect(f"/{name}", f"{draw.randrange(100)}.example")]
    if draw.random() < 0.5:
        service = {"name": f"service{draw.randrange(FEW)}", "port": 80, "weight": draw.randrange(1, 9)}
        rules.append({"backendRefs": [service]})
    parent: Json = {"name": draw.choice(["stage", "stage", "extra"])}
    if draw.random() < 0.2:
        parent["sectionName"] = draw.choice(["http", "nowhere"])
    host = {"hostnames": [f"{name}.example"]} if draw.random() < 0.5 else {}
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "spec": {"parentRefs": [parent], "rules": rules, **host}}  # fmt: skip


def gateway(draw: Random, name: str, port: int) -> Json:
    listeners = [{"name": "http", "port": port, "protocol": "HTTP"}]
    if draw.random() < 0.5:
        listeners.append(
            {"name": "other", "port": port, "protocol": "HTTP", "hostname": f"{draw.randrange(5)}.example"}
        )
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "spec": {"gatewayClassName": "gatewright", "listeners": listeners}}  # fmt: skip


def service(draw: Random, name: str) -> Json:
    ports = [{"name": "http", "port": 80, "targetPort": draw.randrange(8000, 8010)}]
    return {"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}}


def endpoint_slice(draw: Random, name: str) -> Json:
    endpoints = [{"addresses": [f"10.1.{n}.{draw.randrange(1, 9)}"]} for n in range(draw.randrange(4))]
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080}], "metadata": {"labels": {
                "kubernetes.io/service-name": f"service{name.removeprefix('slice')}"}}}  # fmt: skip


def policy(draw: Random, name: str) -> Json:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": f"route{draw.randrange(FEW)}"}
    traffic: Json = {"timeouts": {"request": f"{draw.randrange(1, 60)}s"}}
    if draw.random() < 0.3:
        reference = {"name": f"secret{draw.randrange(FEW)}"}
        traffic = {"apiKeyAuthentication": {"secretRef": reference}}
    return {"apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayPolicy",
            "spec": {"targetRefs": [target], "traffic": traffic}}  # fmt: skip


def secret(draw: Random, name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "stringData": {"client": f"key-{draw.randrange(10**9)}-long-enough"}}


def config_map(draw: Random, name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": str(draw.random())}}


KINDS: dict[str, tuple[str, Callable[[Random, str], Json]]] = {
    "route": (f"{GATEWAYS}/httproutes", http_route),
    "service": (f"{CORE}/services", service),
    "slice": (SLICES, endpoint_slice),
    "policy": (f"{OURS}/gatewaypolicies", policy),
    "secret": (f"{CORE}/secrets", secret),
    "map": (f"{CORE}/configmaps", config_map),
}


class Stage:
    """What happens to the cluster."""

    def __init__(self, server: ApiServer, draw: Random) -> None:
        self._server, self._draw = server, draw
        self._extra = reserve()
        self.done = 0

    def step(self) -> None:
        draw = self._draw
        kind = draw.choice([*KINDS, "gateway"])
        if kind == "gateway":
            self._change(f"{GATEWAYS}/gateways/extra", gateway(draw, "extra", self._extra))
            return
        path, made = KINDS[kind]
        name = f"{kind}{draw.randrange(FEW)}"
        self._change(f"{path}/{name}", made(draw, name))
        if kind == "route" and draw.random() < 0.2:
            self._write_beside(f"{path}/{name}")

    def _change(self, path: str, document: Json) -> None:
        if self._draw.random() < 0.3:
            answer = self._server.request("DELETE", path)
            assert answer.status in (200, 202, 404), answer.message
        else:
            metadata = {**document.get("metadata", {}), "name": path.rpartition("/")[2]}
            answer = self._server.apply(path, {**document, "metadata": metadata})
            # One that is about to be deleted takes no change.
            assert answer.status in (200, 201, 409), answer.message
        self.done += 1

    def _write_beside(self, path: str) -> None:
        """As another controller does: the next write of ours is refused, and made anew."""
        entry = {"parentRef": {"name": "foreign"}, "controllerName": "example.com/other", "conditions": []}
        found = self._server.request("GET", path)
        if found.status != 200:  # it was to be deleted
            return
        parents = (found.body.get("status") or {}).get("parents") or ()
        others = [each for each in parents if each["controllerName"] != "example.com/other"]
        body = {"status": {"parents": [*others, entry]}}
        self._server.request("PATCH", f"{path}/status", body, "application/merge-patch+json")


@contextmanager
def asking(port: int) -> Iterator[list[object]]:
    """Asks for what nobody touches, again and again; gives what was answered otherwise than it should be."""
    wrong: list[object] = []
    end = threading.Event()

    def ask() -> None:
        while not end.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            try:
                connection.request("GET", "/steady")
                answer = connection.getresponse()
                if (answer.status, answer.headers["location"]) != (302, f"http://steady.example:{port}/steady"):
                    wrong.append((answer.status, answer.headers["location"]))
            except OSError as error:
                wrong.append(error)
            finally:
                connection.close()
            end.wait(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield wrong
    finally:
        end.set()
        thread.join()


def acknowledged(controller: Controller) -> str:
    """The newest state of the Gateway, once a proxy has it."""
    address = f"http://127.0.0.1:{controller.process.port('ADMIN')}/api/status"
    with urlopen(address, timeout=PATIENCE) as page:
        rows = [row for row in json.load(page)["proxies"] if row["gateway"] == f"{SPACE}/stage"]
    return str(rows[0]["acknowledged"]) if rows and rows[0]["wanted"] == rows[0]["acknowledged"] else ""


@contextmanager
def proxy(folder: Path, controller: Controller, name: str, *more: str) -> Iterator[Program]:
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"{SPACE}/stage"]
    command += ["--workers", "1", "--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off", *more]
    with running(folder, name, command, environment=TIMES) as started:
        yield started


@pytest.mark.leaves("the API server that came back, which the fixture of the package ends")
def test_random_changes_end_as_a_fresh_start(server: ApiServer, token: str, tmp_path: Path) -> None:
    draw, port = rolls("random cluster"), reserve()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    created(server, f"/api/v1/namespaces/{SPACE}", namespace)
    listener = {"name": "http", "port": port, "protocol": "HTTP"}
    spec: Json = {"gatewayClassName": "gatewright", "listeners": [listener]}
    apply(server, f"{GATEWAYS}/gateways/stage", "Gateway", spec)
    steady: Json = {"parentRefs": [{"name": "stage"}], "rules": [redirect("/steady", "steady.example")]}
    apply(server, f"{GATEWAYS}/httproutes/steady", "HTTPRoute", steady)
    stage, accidents = Stage(server, draw), Accidents(server, token, tmp_path)
    with ExitStack() as stack:
        stack.callback(accidents.end)
        stack.enter_context(proxy(tmp_path, accidents.controller, "proxy"))
        wait_until(lambda: acknowledged(accidents.controller), accidents.controller.process.log)
        wrong = stack.enter_context(asking(port))
        end = time.monotonic() + times(SECONDS)
        for accident in (accidents.kill, accidents.restart_server, accidents.stop):
            until = time.monotonic() + times(SECONDS) / 4
            while time.monotonic() < until:
                stage.step()
            accident()
        while time.monotonic() < end:
            stage.step()
        fresh = Controller(server, token, tmp_path, "fresh")
        stack.callback(fresh.process.stop)
        fresh.await_ready()
        stack.enter_context(proxy(tmp_path, fresh, "other", "--any-port"))
        wait_until(lambda: same(accidents.controller, fresh), fresh.process.log)
        assert wrong == []
        assert stage.done > SECONDS


def same(one: Controller, two: Controller) -> bool:
    found = acknowledged(one)
    return found != "" and found == acknowledged(two)


class Accidents:
    """The controller, and what happens to it and to its API server."""

    def __init__(self, server: ApiServer, token: str, folder: Path) -> None:
        self._server, self._token, self._folder = server, token, folder
        self._count = 0
        self.controller = self._started()

    def _started(self) -> Controller:
        self._count += 1
        made = Controller(self._server, self._token, self._folder, f"controller{self._count}", socket="controller")
        return made.await_ready()

    def kill(self) -> None:
        self.controller.process.stop(9)
        self.controller = self._started()

    def stop(self) -> None:
        self.controller.end()
        self.controller = self._started()

    def restart_server(self) -> None:
        self._server.restart()

    def end(self) -> None:
        self.controller.process.stop()
