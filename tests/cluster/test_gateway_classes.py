"""GatewayClasses on a real API server: one in use is kept, and one that went all the same takes no Gateway along, also
where the controller starts after it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.kube.access import JSON_PATCH
from controlplane.translate.gateway.class_finalizers import FINALIZER
from controlplane.translate.status import claims
from tests.cluster.controllers import GATEWAY_API, SHOP, Controller, apply, conditions, get, route
from tests.cluster.kube import ApiServer
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import running
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

Json = dict[str, Any]
NAME = "kept"
CLASS, OTHER = f"{GATEWAY_API}/gatewayclasses/{NAME}", f"{GATEWAY_API}/gatewayclasses/{NAME}-other"
GATEWAY = f"{SHOP}/gateways/{NAME}"
OURS, THEIRS = "gatewright.dev/controller", "example.com/other"


def gateway(server: ApiServer, port: int, class_name: str = NAME) -> None:
    listener = {"name": "http", "port": port, "protocol": "HTTP"}
    apply(server, GATEWAY, "Gateway", {"gatewayClassName": class_name, "listeners": [listener]})


def finalizers(server: ApiServer, path: str = CLASS) -> list[str]:
    return list(get(server, path).get("metadata", {}).get("finalizers", ()))


def is_gone(server: ApiServer, path: str) -> bool:
    return server.request("GET", path).status == 404


def force(server: ApiServer, path: str) -> None:
    """It goes, whoever uses it: the finalizers by hand, as somebody in a hurry does it."""
    server.request("DELETE", path)
    server.request("PATCH", path, [{"op": "add", "path": "/metadata/finalizers", "value": []}], JSON_PATCH)
    wait_until(lambda: is_gone(server, path), path)


@pytest.fixture
def clean(server: ApiServer) -> Iterator[ApiServer]:
    yield server
    for path in (f"{SHOP}/httproutes/{NAME}", GATEWAY):
        server.request("DELETE", path)
    for path in (CLASS, OTHER):
        if not is_gone(server, path):
            force(server, path)


def test_a_class_in_use_is_kept_until_it_is_not(clean: ApiServer, controller: Controller) -> None:
    apply(clean, CLASS, "GatewayClass", {"controllerName": OURS})
    apply(clean, OTHER, "GatewayClass", {"controllerName": THEIRS})
    gateway(clean, 8080, f"{NAME}-other")
    wait_until(lambda: conditions(get(clean, CLASS).get("status")).get("Accepted") == "True", controller.process.log)
    assert finalizers(clean) == [], "nobody uses it"
    gateway(clean, 8080)
    wait_until(lambda: finalizers(clean) == [FINALIZER], controller.process.log)
    assert finalizers(clean, OTHER) == [], "it is somebody else's"
    clean.request("DELETE", CLASS)
    assert get(clean, CLASS)["metadata"]["deletionTimestamp"]
    route(clean, NAME, NAME)
    wait_until(lambda: attached(clean) == 1, controller.process.log)
    clean.request("DELETE", GATEWAY)
    wait_until(lambda: is_gone(clean, CLASS), controller.process.log)
    assert 'kind="GatewayClass"} 0.0' in controller.metrics


def attached(server: ApiServer) -> int:
    listeners = (get(server, GATEWAY).get("status") or {}).get("listeners") or [{"attachedRoutes": 0}]
    return int(listeners[0]["attachedRoutes"])


def location(port: int) -> str:
    """Where a request is sent on to."""
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", f"http://127.0.0.1:{port}/{NAME}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    return found.rpartition("/")[0].rsplit(":", 1)[0]


def accepted(server: ApiServer) -> str:
    rows = (get(server, GATEWAY).get("status") or {}).get("conditions") or ()
    return next((f"{row['status']} {row['message']}" for row in rows if row["type"] == "Accepted"), "")


def claim(server: ApiServer) -> str:
    return claims.claimed(get(server, GATEWAY).get("status")) or ""


def test_a_controller_that_starts_while_the_class_is_gone_goes_on_with_its_gateways(
    clean: ApiServer, token: str, tmp_path: Path
) -> None:
    port = reserve()
    apply(clean, CLASS, "GatewayClass", {"controllerName": OURS})
    gateway(clean, port)
    route(clean, NAME, NAME, "first")
    first = Controller(clean, token, tmp_path, "first", socket="controller").await_ready()
    proxy = [sys.executable, "-m", "dataplane", "--xds", f"unix:{first.socket}", "--gateway", f"shop/{NAME}"]
    proxy += ["--admin", "127.0.0.1:0", "--stats", "off", "--readiness", "off", "--workers", "1"]
    with running(tmp_path, "proxy", proxy):
        wait_until(lambda: location(port) == "302 http://first.example", first.process.log)
        wait_until(lambda: claim(clean) and finalizers(clean), first.process.log)
        first.end()
        force(clean, CLASS)
        second = Controller(clean, token, tmp_path, "second", socket="controller").await_ready()
        try:
            wait_until(lambda: accepted(clean).startswith(f"True GatewayClass {NAME} is gone"), second.process.log)
            route(clean, NAME, NAME, "second")
            wait_until(lambda: location(port) == "302 http://second.example", second.process.log)
            apply(clean, CLASS, "GatewayClass", {"controllerName": OURS})
            wait_until(lambda: accepted(clean) == "True ", second.process.log)
            wait_until(lambda: finalizers(clean) == [FINALIZER], second.process.log)
            assert location(port) == "302 http://second.example"
            force(clean, CLASS)
            apply(clean, CLASS, "GatewayClass", {"controllerName": THEIRS})
            wait_until(lambda: location(port) == "", second.process.log)
            wait_until(lambda: not claim(clean), second.process.log)
        finally:
            second.end()
