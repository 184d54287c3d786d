"""The controller on a real API server: what is applied is served, told in statuses, and survives what happens to all
three."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import pytest

from controlplane.kube.leadership import NAME
from controlplane.translate.gateway.class_finalizers import FINALIZER
from tests.cluster.controllers import (
    GATEWAY_API,
    SHOP,
    SYSTEM,
    Controller,
    Json,
    apply,
    conditions,
    gateway,
    get,
    of_route,
    route,
)
from tests.cluster.kube import ApiServer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import Program
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")


@pytest.fixture
def names(server: ApiServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A name for the objects of one test, which are gone after it."""
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    yield name
    for plural in ("httproutes", "gateways"):
        server.request("DELETE", f"{SHOP}/{plural}/{name}")


def test_what_is_applied_is_served_and_told(
    server: ApiServer, controller: Controller, names: str, tmp_path: Path
) -> None:
    port = reserve()
    gateway(server, names, port)
    route(server, names, names, "first")
    wait_until(lambda: of_route(server, names) == {"Accepted": "True", "ResolvedRefs": "True"}, controller.process.log)
    status = wait_until(lambda: attached(server, names), controller.process.log)
    assert conditions(status) == {"Accepted": "True", "Programmed": "False"}  # no proxy is there yet
    proxy = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"shop/{names}"]
    pages = ["--admin", "127.0.0.1:0", "--stats", "127.0.0.1:0", "--readiness", "127.0.0.1:0", "--workers", "1"]
    running = Program(tmp_path, "proxy", [*proxy, *pages])
    try:
        running.await_ready()
        wait_until(lambda: conditions(get(server, f"{SHOP}/gateways/{names}")["status"])["Programmed"] == "True")
        assert location(port, names) == "http://first.example"
        route(server, names, names, "second")
        wait_until(lambda: location(port, names) == "http://second.example")
        wait_until(lambda: is_told(get(server, f"{SHOP}/httproutes/{names}")), controller.process.log)
        server.request("DELETE", f"{SHOP}/httproutes/{names}")
        wait_until(lambda: location(port, names) is None)
    finally:
        running.stop()


def attached(server: ApiServer, name: str) -> Json | None:
    """The status of a Gateway whose listener has a route."""
    status: Json = get(server, f"{SHOP}/gateways/{name}").get("status") or {}
    return status if any(each["attachedRoutes"] for each in status.get("listeners") or ()) else None


def is_told(found: Json) -> bool:
    """Whether the status of a route is about its newest content."""
    told = found["status"]["parents"][0]["conditions"]
    return {each["observedGeneration"] for each in told} == {found["metadata"]["generation"]}


def location(port: int, path: str) -> str | None:
    """Where a request is sent on to, without port and path."""
    command = ["curl", "-s", "-o", os.devnull, "-w", "%{redirect_url}", f"http://127.0.0.1:{port}/{path}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    return found.rpartition("/")[0].rsplit(":", 1)[0] or None


def test_a_mistake_is_told_at_its_object_and_gone_with_it(
    server: ApiServer, controller: Controller, names: str
) -> None:
    gateway(server, names, reserve())
    bad: Json = {"parentRefs": [{"name": names, "sectionName": "nowhere"}]}
    apply(server, f"{SHOP}/httproutes/{names}", "HTTPRoute", bad)
    wait_until(lambda: of_route(server, names).get("Accepted") == "False", controller.process.log)
    route(server, names, names)
    wait_until(lambda: of_route(server, names).get("Accepted") == "True", controller.process.log)
    told = controller.cli("status", f"httproute/shop/{names}")
    assert told.returncode == 0, told.stdout + told.stderr
    with urlopen(f"http://127.0.0.1:{controller.process.port('ADMIN')}/metrics", timeout=PATIENCE) as page:
        metrics = page.read().decode()
    assert "gatewright_controller_leader 1.0" in metrics
    assert 'gatewright_controller_cluster_unreadable{kind="Secret"} 0.0' in metrics
    assert 'gatewright_controller_status_writes_total{outcome="failed"} 0.0' in metrics


def test_what_a_proxy_refuses_is_told_at_its_listener_and_gone_with_the_mend(
    server: ApiServer, controller: Controller, names: str, tmp_path: Path
) -> None:
    """A port that somebody else has: nobody but the proxy can know that. The listener beside it serves meanwhile."""
    port = reserve()
    http = {"name": "http", "port": port, "protocol": "HTTP"}

    def listen(*listeners: Json) -> None:
        spec = {"gatewayClassName": "gatewright", "listeners": [*listeners]}
        apply(server, f"{SHOP}/gateways/{names}", "Gateway", spec)

    def programmed() -> dict[str, tuple[str, str]]:
        """Of each listener, and of the Gateway (""): status and reason for the newest content."""
        found = get(server, f"{SHOP}/gateways/{names}")
        status, newest = found.get("status") or {}, found["metadata"]["generation"]
        rows = [("", status), *((each["name"], each) for each in status.get("listeners") or ())]
        return {
            name: (row["status"], row["reason"])
            for name, holder in rows
            for row in holder["conditions"]
            if row["type"] == "Programmed" and row["observedGeneration"] == newest
        }

    well = {"": ("True", "Programmed"), "http": ("True", "Programmed")}
    listen(http)
    route(server, names, names)
    command = [sys.executable, "-m", "dataplane", "--xds", f"unix:{controller.socket}", "--gateway", f"shop/{names}"]
    pages = ["--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off", "--workers", "1"]
    proxy = Program(tmp_path, "proxy", [*command, *pages])
    try:
        proxy.await_ready()
        wait_until(lambda: programmed() == well, controller.process.log)
        with socket.create_server(("0.0.0.0", 0)) as taken:
            listen(http, {"name": "taken", "port": taken.getsockname()[1], "protocol": "HTTP"})
            refused = ("False", "Rejected")
            wait_until(lambda: programmed().get("taken") == refused, controller.process.log)
            assert programmed() == {"": refused, "http": ("True", "Programmed"), "taken": refused}
            assert location(port, names) == "http://200.example"
            listen(http)
            wait_until(lambda: programmed() == well, controller.process.log)
    finally:
        proxy.stop()


def test_what_others_wrote_into_a_status_stays(server: ApiServer, controller: Controller, names: str) -> None:
    gateway(server, names, reserve())
    route(server, names, names)
    wait_until(lambda: of_route(server, names).get("Accepted") == "True", controller.process.log)
    foreign = {
        "parentRef": {"name": "other"},
        "controllerName": "example.com/other",
        "conditions": [
            {
                "type": "Accepted",
                "status": "False",
                "reason": "Refused",
                "message": "by another one",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    patch = [{"op": "add", "path": "/status/parents/0", "value": foreign}]
    path = f"{SHOP}/httproutes/{names}/status"
    assert server.request("PATCH", path, patch, "application/json-patch+json").status == 200
    route(server, names, names, "changed")

    def told() -> bool:
        found = get(server, f"{SHOP}/httproutes/{names}")
        theirs, ours = found["status"]["parents"]
        assert (theirs["controllerName"], theirs["conditions"]) == ("example.com/other", foreign["conditions"])
        return bool(ours["conditions"][0]["observedGeneration"] == found["metadata"]["generation"])

    wait_until(told, controller.process.log)


def since(server: ApiServer, name: str, version: str) -> list[Json]:
    """A Gateway as it was after each of its changes since a version."""
    query = f"watch=1&timeoutSeconds=1&resourceVersion={version}&fieldSelector=metadata.name%3D{name}"
    return [json.loads(line)["object"] for line in server.lines(f"{SHOP}/gateways?{query}")]


@pytest.mark.slow
def test_a_thousand_routes_are_a_few_writes_of_their_gateway(
    server: ApiServer, controller: Controller, names: str
) -> None:
    """By four clients, while others know the Gateway too; each write is right when it is made, and none is refused.

    Fifteen at most is promised for one burst, however long it takes; on a machine that stops in between it is several
    bursts, of which no number can be promised but that they are few.
    """
    count, moments = 1000, list[float]()
    gateway(server, names, reserve())
    found = wait_until(lambda: is_settled(server, controller, names), controller.process.log)
    local, clients = threading.local(), list[ApiServer]()

    def client() -> ApiServer:
        """A connection of this thread's own."""
        if not hasattr(local, "client"):
            local.client = server.another()
            clients.append(local.client)
        return local.client  # type: ignore[no-any-return]

    def create(number: int) -> None:
        route(client(), f"{names}-{number}", names)
        moments.append(time.monotonic())

    def remove(number: int) -> None:
        client().request("DELETE", f"{SHOP}/httproutes/{names}-{number}")

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(create, range(count)))
        wait_until(lambda: routes_of(get(server, f"{SHOP}/gateways/{names}")) == count, controller.process.log)
        written = since(server, names, found["metadata"]["resourceVersion"])
        is_one_burst = all(b - a < 0.25 for a, b in pairwise(sorted(moments)))
        assert len(written) <= (15 if is_one_burst else count // 10)
        counts = [routes_of(each) for each in written]
        assert counts == sorted(counts)
        assert metric(controller, 'status_writes_total{outcome="conflict"}') == 0
    finally:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(remove, range(count)))
        for each in clients:
            each.hang_up()


def routes_of(found: Json) -> int:
    """That a Gateway says to have."""
    return sum(each["attachedRoutes"] for each in (found.get("status") or {}).get("listeners") or ())


def is_settled(server: ApiServer, controller: Controller, name: str) -> Json | None:
    """A Gateway whose status was written, where nothing else is to be written."""
    found = get(server, f"{SHOP}/gateways/{name}")
    return found if found.get("status", {}).get("listeners") and controller.writes_pending == 0 else None


def test_a_storm_of_others_writes_does_no_harm(server: ApiServer, controller: Controller, names: str) -> None:
    """Another controller writes the same Gateway as fast as it can: annotations and a condition of its own."""
    path, rounds = f"{SHOP}/gateways/{names}", 200
    gateway(server, names, reserve())
    route(server, names, names)
    found = wait_until(lambda: is_settled(server, controller, names), controller.process.log)
    relists = metric(controller, 'cluster_relists_total{kind="Gateway"}')
    other = server.another()
    for number in range(rounds):
        foreign = {"metadata": {"annotations": {"example.com/round": str(number)}}}
        assert other.request("PATCH", path, foreign, "application/merge-patch+json").status == 200
        current = get(other, path)
        condition = {
            "type": "example.com/Round",
            "status": "True",
            "reason": f"R{number}",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
        kept = [each for each in current["status"]["conditions"] if each["type"] != condition["type"]]
        current["status"]["conditions"] = [*kept, condition]
        other.request("PUT", f"{path}/status", current)  # refused where we were faster
        if number % 20 == 0:
            route(other, f"{names}-{number}", names)
    try:
        wait_until(lambda: routes_of(get(server, path)) == 1 + rounds // 20, controller.process.log)
        wait_until(lambda: controller.writes_pending == 0, controller.process.log)
        seen = since(server, names, found["metadata"]["resourceVersion"])
        assert {conditions(each["status"])["Accepted"] for each in seen} == {"True"}  # nothing flaps
        counts = [routes_of(each) for each in seen]
        assert counts == sorted(counts)
        last = {each["type"]: each["reason"] for each in seen[-1]["status"]["conditions"]}
        assert last["example.com/Round"].startswith("R")
        ours = metric(controller, 'status_writes_total{outcome="written"}')
        assert ours <= 4 * (1 + rounds // 20) + rounds // 4  # each route, its Gateway, and not each round of the other
        assert metric(controller, 'cluster_relists_total{kind="Gateway"}') == relists
        assert metric(controller, 'status_writes_total{outcome="failed"}') == 0
    finally:
        other.hang_up()
        for number in range(0, rounds, 20):
            server.request("DELETE", f"{SHOP}/httproutes/{names}-{number}")


def test_a_restart_over_objects_that_did_not_change_writes_nothing(
    server: ApiServer, token: str, names: str, tmp_path: Path
) -> None:
    of_class, its_route = f"{GATEWAY_API}/gatewayclasses/gatewright", f"{SHOP}/httproutes/{names}"
    gateway(server, names, reserve())
    route(server, names, names)  # before a controller looks: for it the class is in use from the start
    first = Controller(server, token, tmp_path, "first").await_ready()
    try:
        wait_until(lambda: of_route(server, names).get("Accepted") == "True", first.process.log)
        wait_until(lambda: conditions(get(server, f"{SHOP}/gateways/{names}").get("status")).get("Accepted") == "True")
        wait_until(lambda: conditions(get(server, of_class).get("status")).get("Accepted") == "True")
        # Written a moment after the statuses; else the other controller would have that to do.
        wait_until(lambda: FINALIZER in get(server, of_class)["metadata"].get("finalizers", ()), first.process.log)
        wait_until(lambda: first.writes_pending == 0, first.process.log)
    finally:
        first.end()
    before = [get(server, path) for path in (of_class, its_route)]
    second = Controller(server, token, tmp_path, "second").await_ready()
    try:
        wait_until(lambda: second.leads, second.process.log)
        other = f"{names}-other"
        route(server, other, names)  # its status is written behind all that had to be written at the start
        wait_until(lambda: of_route(server, other).get("Accepted") == "True", second.process.log)
        server.request("DELETE", f"{SHOP}/httproutes/{other}")
        # Versions included. Not the Gateway: it counts one route more.
        assert [get(server, path) for path in (of_class, its_route)] == before
    finally:
        second.end()


def test_of_two_controllers_one_writes_and_the_other_goes_on_when_it_dies(
    server: ApiServer, token: str, names: str, tmp_path: Path
) -> None:
    one, two = (Controller(server, token, tmp_path, name) for name in ("one", "two"))
    try:
        one.await_ready()
        two.await_ready()
        wait_until(lambda: one.leads or two.leads)
        assert one.leads != two.leads
        leads, follows = (one, two) if one.leads else (two, one)
        gateway(server, names, reserve())
        route(server, names, names)
        wait_until(lambda: of_route(server, names).get("Accepted") == "True", leads.process.log)
        leads.end()  # it gives the Lease back, so that nobody has to wait for it to run out
        wait_until(lambda: follows.leads, follows.process.log)
        holder = get(server, f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{NAME}")["spec"][
            "holderIdentity"
        ]
        assert holder
        apply(server, f"{SHOP}/httproutes/{names}", "HTTPRoute", {"parentRefs": [{"name": names, "sectionName": "no"}]})
        wait_until(lambda: of_route(server, names).get("Accepted") == "False", follows.process.log)
    finally:
        for each in (one, two):
            each.process.stop()


def metric(controller: Controller, name: str) -> float:
    lines = controller.metrics.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"gatewright_controller_{name} "))


@pytest.mark.leaves("the API server that came back, which the fixture of the package ends")
def test_what_the_server_has_forgotten_is_listed_anew(server: ApiServer, controller: Controller, names: str) -> None:
    """The controller sleeps while its watch is cut, a route goes and another one comes, the store is compacted and the
    server restarts: it is answered 410."""
    gateway(server, names, reserve())
    route(server, names, names)
    wait_until(lambda: of_route(server, names).get("Accepted") == "True", controller.process.log)
    assert metric(controller, 'cluster_relists_total{kind="HTTPRoute"}') == 0
    controller.process.signal(signal.SIGSTOP)
    other = f"{names}-other"
    try:
        server.restart()
        server.request("DELETE", f"{SHOP}/httproutes/{names}")
        route(server, other, names)
        server.forget()
        server.restart()
    finally:
        controller.process.signal(signal.SIGCONT)
    try:
        wait_until(lambda: of_route(server, other).get("Accepted") == "True", controller.process.log)
        assert metric(controller, 'cluster_relists_total{kind="HTTPRoute"}') >= 1
        assert controller.cli("status", f"httproute/shop/{names}").returncode != 0
        wait_until(lambda: (attached(server, names) or {})["listeners"][0]["attachedRoutes"] == 1)
        assert metric(controller, 'cluster_unreadable{kind="HTTPRoute"}') == 0
    finally:
        server.request("DELETE", f"{SHOP}/httproutes/{other}")


def test_objects_of_some_namespaces_alone(server: ApiServer, token: str, names: str, tmp_path: Path) -> None:
    """Also when a namespace gets the labels later, or loses them."""
    space = "/api/v1/namespaces/shop"

    def label(value: str | None) -> None:
        body = {"metadata": {"labels": {"read": value}}}
        assert server.request("PATCH", space, body, "application/merge-patch+json").status == 200

    made = Controller(server, token, tmp_path, "some", "--namespace-selector", "read=yes").await_ready()
    try:
        gateway(server, names, reserve())
        route(server, names, names)
        wait_until(lambda: made.leads, made.process.log)
        assert metric(made, "cluster_namespaces") == 0
        assert made.cli("status", f"httproute/shop/{names}").returncode != 0
        label("yes")
        wait_until(lambda: of_route(server, names).get("Accepted") == "True", made.process.log)
        assert metric(made, "cluster_namespaces") == 1
        label(None)
        wait_until(lambda: made.cli("status", f"httproute/shop/{names}").returncode != 0, made.process.log)
        assert of_route(server, names).get("Accepted") == "True"  # what was written stays
    finally:
        label(None)
        made.process.stop()


def test_an_object_nested_without_end_harms_nobody_else(server: ApiServer, controller: Controller) -> None:
    """Whoever may write GatewayParameters may write this: their definition leaves `rawConfig` open."""
    kind = "/apis/gatewright.dev/v1alpha1/namespaces/shop/gatewayparameters"
    deep: Json = {}
    for _ in range(300):
        deep = {"a": deep}
    try:
        apply(server, f"{kind}/deep", "GatewayParameters", {"rawConfig": deep}, "gatewright.dev/v1alpha1")
        apply(server, f"{kind}/plain", "GatewayParameters", {"logging": {"level": "info"}}, "gatewright.dev/v1alpha1")
        for name, expected in (("plain", "True"), ("deep", "False")):
            wait_until(
                lambda: conditions(get(server, f"{kind}/{name}").get("status")).get("Accepted") == expected,  # noqa: B023
                controller.process.log,
            )
        assert metric(controller, 'cluster_unreadable{kind="GatewayParameters"}') == 0
    finally:
        for name in ("deep", "plain"):
            server.request("DELETE", f"{kind}/{name}")


def test_without_a_cluster_the_reason_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    command = [sys.executable, "-m", "controlplane.cli", "controller", "--kubernetes", "--kubeconfig", str(missing)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    assert str(missing) in done.stderr
    assert "--kubeconfig" in done.stderr
    assert "Traceback" not in done.stderr
