"""What goes from under a controller on a real API server: the definition of a kind, a namespace with all that is in it,
its own rights. Each takes along what it was about, and nothing else: the rest is served all the time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.controllers import (
    BASE,
    CRDS,
    GATEWAY_API,
    SHOP,
    Controller,
    Json,
    apply,
    conditions,
    created,
    define,
    get,
    path_of,
    route,
)
from tests.cluster.kube import ApiServer
from tests.cluster.test_cluster_controller import location, metric
from tests.fakes.proxy_process import TIMES
from tests.fakes.tcp_relay import Relay, relaying
from tests.harness.ports import reserve
from tests.harness.processes import running
from tests.harness.waiting import wait_until
from tests.outside.gateway_api.modules import definitions

pytestmark = pytest.mark.needs("go")

NAME = "vanish"
GATEWAY, SET = f"{SHOP}/gateways/{NAME}", f"{SHOP}/listenersets/{NAME}"
SETS = "listenersets.gateway.networking.k8s.io"
SPACE = f"/api/v1/namespaces/{NAME}"
THEIRS = f"{GATEWAY_API}/namespaces/{NAME}/httproutes/{NAME}"
WELL = {"Accepted": "True", "Programmed": "True"}
ANYBODY = {"namespaces": {"from": "All"}}


class Ports:
    """Of the Gateway's own listener, and of that of the set."""

    def __init__(self) -> None:
        self.own, self.of_set = reserve(), reserve()


@pytest.fixture
def ports(server: ApiServer) -> Iterator[Ports]:
    """A Gateway, a ListenerSet, and a route for each."""
    found = Ports()
    listener = {"name": "http", "port": found.own, "protocol": "HTTP", "allowedRoutes": ANYBODY}
    spec: Json = {"gatewayClassName": "gatewright", "listeners": [listener], "allowedListeners": ANYBODY}
    apply(server, GATEWAY, "Gateway", spec)
    route(server, NAME, NAME, "own")
    listener_set(server, found)
    yield found
    for path in (f"{SHOP}/httproutes/{NAME}", f"{SHOP}/httproutes/{NAME}-set", SET, GATEWAY, THEIRS):
        server.request("DELETE", path)


def listener_set(server: ApiServer, ports: Ports) -> None:
    listener = {"name": "more", "port": ports.of_set, "protocol": "HTTP"}
    apply(server, SET, "ListenerSet", {"parentRef": {"name": NAME}, "listeners": [listener]})
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": "set.example"}}
    parent = {"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": NAME}
    spec = {"parentRefs": [parent], "rules": [{"filters": [redirect]}]}
    apply(server, f"{SHOP}/httproutes/{NAME}-set", "HTTPRoute", spec)


@pytest.fixture
def way(server: ApiServer) -> Iterator[Relay]:
    """That of the controller to the API server, so that its watches can be ended."""
    with relaying(server.port) as made:
        yield made


@pytest.fixture
def controller(server: ApiServer, token: str, way: Relay, tmp_path: Path) -> Iterator[Controller]:
    config = server.kubeconfig(token)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{way.port}"
    made = Controller(server, token, tmp_path, "controller", config=config)
    try:
        yield made.await_ready()
    finally:
        made.process.stop()


@pytest.fixture
def served(ports: Ports, controller: Controller, tmp_path: Path) -> Iterator[Ports]:
    """By a proxy."""
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"shop/{NAME}"]
    command += ["--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off", "--workers", "1"]
    with running(tmp_path, "proxy", command, environment=TIMES):
        wait_until(lambda: location(ports.own, NAME) == "http://own.example", controller.process.log)
        wait_until(lambda: location(ports.of_set, "") == "http://set.example", controller.process.log)
        yield ports


def of_gateway(server: ApiServer) -> Json:
    status: Json = get(server, GATEWAY).get("status") or {}
    return status


def test_the_definition_of_listener_sets_takes_these_along_and_nothing_else(
    server: ApiServer, controller: Controller, served: Ports
) -> None:
    wait_until(lambda: of_gateway(server).get("attachedListenerSets") == 1, controller.process.log)
    try:
        assert server.request("DELETE", f"{CRDS}/{SETS}").status == 200
        wait_until(lambda: location(served.of_set, "") is None, controller.process.log)
        wait_until(lambda: of_gateway(server).get("attachedListenerSets") == 0, controller.process.log)
        assert location(served.own, NAME) == "http://own.example"
        route(server, NAME, NAME, "changed")
        wait_until(lambda: location(served.own, NAME) == "http://changed.example", controller.process.log)
        assert metric(controller, 'cluster_unreadable{kind="ListenerSet"}') == 0
    finally:
        wait_until(lambda: server.request("GET", f"{CRDS}/{SETS}").status == 404, "the definition is gone")
        define(server, [each for each in definitions() if each["metadata"]["name"] == SETS])
    listener_set(server, served)
    wait_until(lambda: location(served.of_set, "") == "http://set.example", controller.process.log)


def test_a_namespace_takes_its_own_objects_along(server: ApiServer, controller: Controller, served: Ports) -> None:
    """Nobody removes what is in it here, as the controller of namespaces does: its objects go one after the other."""
    created(server, SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
    redirect = {"type": "RequestRedirect", "requestRedirect": {"hostname": "theirs.example"}}
    match = {"path": {"type": "PathPrefix", "value": "/theirs"}}
    spec = {"parentRefs": [{"name": NAME, "namespace": "shop"}], "rules": [{"matches": [match], "filters": [redirect]}]}
    apply(server, THEIRS, "HTTPRoute", spec)
    wait_until(lambda: location(served.own, "theirs") == "http://theirs.example", controller.process.log)
    wait_until(lambda: of_gateway(server)["listeners"][0]["attachedRoutes"] == 2, controller.process.log)
    server.request("DELETE", SPACE)
    assert server.request("DELETE", THEIRS).status == 200
    wait_until(lambda: location(served.own, "theirs") is None, controller.process.log)
    wait_until(lambda: of_gateway(server)["listeners"][0]["attachedRoutes"] == 1, controller.process.log)
    assert location(served.own, NAME) == "http://own.example"
    assert location(served.of_set, "") == "http://set.example"


def rights() -> list[Json]:
    """What binds the account of the controller to its rights in the whole cluster."""
    files = sorted(BASE.glob("*.yaml"))
    documents = [each for file in files for each in yaml.load_all(file.read_text(), yaml.CSafeLoader)]
    return [each for each in documents if each["kind"] == "ClusterRoleBinding"]


def test_lost_rights_take_nothing_along(server: ApiServer, controller: Controller, served: Ports, way: Relay) -> None:
    """403 to all lists and watches: what was read is served, the page of metrics says what cannot be read, and what
    changed meanwhile comes with the rights."""
    bindings = rights()
    assert bindings
    wait_until(lambda: conditions(of_gateway(server)) == WELL, controller.process.log)
    try:
        for each in bindings:
            assert server.request("DELETE", path_of(each)).status == 200
        way.cut()  # watches that are under way would go on
        for kind in ("httproutes.gateway.networking.k8s.io", "listenersets.gateway.networking.k8s.io", "secrets"):
            wait_until(lambda kind=kind: f"{kind} is forbidden" in controller.process.log(), controller.process.log)  # type: ignore[misc]
        assert metric(controller, 'cluster_unreadable{kind="HTTPRoute"}') == 1
        route(server, NAME, NAME, "later")
        assert location(served.own, NAME) == "http://own.example"
        assert location(served.of_set, "") == "http://set.example"
        assert conditions(of_gateway(server)) == WELL
    finally:
        for each in bindings:
            created(server, path_of(each), each)
    wait_until(lambda: location(served.own, NAME) == "http://later.example", controller.process.log)
    wait_until(lambda: metric(controller, 'cluster_unreadable{kind="Secret"}') == 0, controller.process.log)
    assert location(served.of_set, "") == "http://set.example"
