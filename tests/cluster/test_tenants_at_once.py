"""While one tenant writes much, another's edits are published, its proxies get their state, and the Lease is kept: on
a real API server. Bounds are processor time of the controller's event loop, which is what others wait for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.kube import lease
from tests.cluster.controllers import (
    GATEWAY_API,
    SHOP,
    SYSTEM,
    Controller,
    bundle,
    get,
    provisioned_in,
    proxy,
    token_of,
)
from tests.cluster.kube import ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

Json = dict[str, Any]
OURS = "gatewright.dev/v1alpha1"
MANY = f"{GATEWAY_API}/namespaces/many"
POLICIES = f"/apis/{OURS}/namespaces/many/gatewaypolicies"
BACKENDS = f"/apis/{OURS}/namespaces/many/gatewaybackends"
SERVICES = "/api/v1/namespaces/many/services"
LEASE = f"{lease.API}/namespaces/{SYSTEM}/leases/gatewright"

EDIT = 0.5
"""Seconds until an edit of another tenant is published."""
PROXY = 2.0
"""Seconds until a new proxy of another tenant serves its state."""


class Tenants:
    """ "shop" edits a route of its Gateway and starts a proxy, while "many" writes much."""

    def __init__(self, server: ApiServer, controller: Controller, folder: Path) -> None:
        self.server, self.controller, self.folder = server, controller, folder
        self._edits = 0

    def make(self, path: str, kind: str, name: str, spec: Json, version: str = OURS, **metadata: Any) -> None:
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        answer = self.server.request("POST", path, body)
        assert answer.status == 201, answer.message

    def computed(self) -> float:
        """Seconds of the thread with the event loop."""
        pid = self.controller.process.process.pid
        fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def patch(self, path: str, body: Json) -> None:
        assert self.server.request("PATCH", path, body, "application/merge-patch+json").status == 200

    def edit(self) -> float:
        """Seconds of the event loop until an edit of the route is published."""
        self._edits += 1
        log = self.controller.process.log
        published, began = log().count("shop/web: version "), self.computed()
        self.patch(f"{SHOP}/httproutes/web", {"spec": {"hostnames": [f"edit-{self._edits}.example"]}})
        wait_until(lambda: log().count("shop/web: version ") > published, log)
        return self.computed() - began

    def another_proxy(self, token: str) -> float:
        """Seconds of the event loop until a proxy that is started now serves."""
        began, acks = self.computed(), self.controller.acks
        with proxy(self.folder, self.controller, bundle(self.server), token, f"proxy-{self._edits}") as started:
            started.await_ready()
            wait_until(lambda: self.controller.acks > acks, self.controller.process.log)
            return self.computed() - began

    def held(self) -> tuple[str, int]:
        """Who holds the Lease, and how often that changed."""
        spec = get(self.server, LEASE)["spec"]
        return spec["holderIdentity"], spec["leaseTransitions"]

    def renewed(self) -> str:
        return str(get(self.server, LEASE)["spec"]["renewTime"])

    def assert_undisturbed(self, write: Callable[[int], None], count: int) -> None:
        """`write` is called so often by the tenant that writes much, and the other one works all the while."""
        before, renewed, edits = self.held(), self.renewed(), [self.edit()]
        for number in range(count):
            write(number)
            if number % max(1, count // 10) == 0:
                edits.append(self.edit())
        started = self.another_proxy(token_of(self.server, "web"))
        edits += [self.edit() for _ in range(3)]
        wait_until(lambda: self.renewed() != renewed, self.controller.process.log)
        assert self.held() == before and "leads no more" not in self.controller.process.log()
        assert max(edits) < EDIT and started < PROXY


@pytest.fixture
def many(server: ApiServer) -> Iterator[None]:
    provisioned_in(server, "many")
    yield
    for path in (POLICIES, BACKENDS, f"{MANY}/gateways", SERVICES):
        assert server.request("DELETE", path).status == 200


@pytest.fixture
def tenants(
    server: ApiServer, token: str, shop: str, many: None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Tenants]:
    options = getattr(request, "param", ("--no-provisioning",))
    made = Controller(server, token, tmp_path, "controller", "--xds-service-accounts", *options)
    try:
        made.await_ready()
        wait_until(lambda: made.leads, made.process.log)
        yield Tenants(server, made, tmp_path)
    finally:
        made.process.stop()


def expressions(number: int, size: int = 1_300_000) -> list[str]:
    """Of 16 KB each, none of which was there before."""
    texts = []
    for text in range(size // 16_000):
        parts = [f"request.headers['x-{number}-{text}-{part}'] == 'v{part}'" for part in range(350)]
        texts.append(" || ".join(parts)[:15_900].rpartition(" || ")[0])
    return texts


def test_fresh_expressions(tenants: Tenants) -> None:
    """14 policies of 1.3 MB delayed others by 7 s, 40 by 37 s, and the Lease was lost."""

    def write(number: int) -> None:
        target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}
        policy = {"action": "Allow", "policy": {"matchExpressions": expressions(number)}}
        spec = {"targetRefs": [target], "traffic": {"authorization": policy}}
        tenants.make(POLICIES, "GatewayPolicy", f"p{number}", spec)

    tenants.assert_undisturbed(write, 20)


def test_selectors_over_many_services(tenants: Tenants) -> None:
    """Of 2,000 each label edit took 50 s."""
    for number in range(1000):
        ports = {"ports": [{"port": 80, "appProtocol": "gatewright.dev/mcp"}]}
        tenants.make(SERVICES, "Service", f"s{number:04}", ports, "v1", labels={"app": f"a{number}"})
    for number in range(100):
        targets = []
        for target in range(32):
            rule = {"key": "app", "operator": "NotIn", "values": [f"{number}-{target}"]}
            selector = {"namespaces": {}, "services": {"matchExpressions": [rule]}}
            targets.append({"name": f"t{target}", "selector": selector})
        tenants.make(BACKENDS, "GatewayBackend", f"b{number}", {"mcp": {"targets": targets}})

    def write(number: int) -> None:
        tenants.patch(f"{SERVICES}/s{number:04}", {"metadata": {"labels": {"edit": f"e{number}"}}})

    tenants.assert_undisturbed(write, 100)


@pytest.mark.parametrize("tenants", [()], ids=[""], indirect=True)
def test_many_gateways_to_provision(tenants: Tenants) -> None:
    """150 Gateways delayed another's by 12 s: it waited for all of them."""

    def write(number: int) -> None:
        listener = {"name": "http", "port": 80, "protocol": "HTTP"}
        spec = {"gatewayClassName": "gatewright", "listeners": [listener]}
        tenants.make(f"{MANY}/gateways", "Gateway", f"g{number:03}", spec, "gateway.networking.k8s.io/v1")

    for number in range(150):
        write(number)
    listener = {"name": "http", "port": 80, "protocol": "HTTP"}
    spec = {"gatewayClassName": "gatewright", "listeners": [listener]}
    tenants.make(f"{SHOP}/gateways", "Gateway", "last", spec, "gateway.networking.k8s.io/v1")
    try:
        log = tenants.controller.process.log
        wait_until(lambda: "Deployment shop/last was applied" in log(), log)
        wait_until(lambda: log().count("Deployment many/g") == 150, log)
        after = log().partition("Deployment shop/last was applied")[2]
        assert after.count("Deployment many/g") > 50
        tenants.assert_undisturbed(lambda number: write(150 + number), 30)
    finally:
        tenants.server.request("DELETE", f"{SHOP}/gateways/last")
