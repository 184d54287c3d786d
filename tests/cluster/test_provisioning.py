"""What Gateways want is made on a real API server, by the controller's own account: and nothing else is touched."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.controllers import (
    GATEWAY_API,
    SHOP,
    Controller,
    apply,
    conditions,
    created,
    get,
    of_namespace,
    path_of,
)
from tests.cluster.kube import ApiServer
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.needs("go")

Json = dict[str, Any]
OURS = "gatewright.dev/v1alpha1"
PARAMETERS = f"/apis/{OURS}/namespaces/shop/gatewayparameters"
PLACES = {
    "ServiceAccount": "/api/v1/namespaces/shop/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/shop/configmaps",
    "Secret": "/api/v1/namespaces/shop/secrets",
    "Service": "/api/v1/namespaces/shop/services",
    "Deployment": "/apis/apps/v1/namespaces/shop/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/shop/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers",
}
PLAIN: Json = {"logging": {"level": "info"}}
USUAL = ("ServiceAccount", "ConfigMap", "Secret", "Service", "Deployment")


class Shop:
    """A Gateway, its parameters of the same name, and what was made for it."""

    def __init__(self, server: ApiServer, controller: Controller, name: str) -> None:
        self.server = server
        self.controller = controller
        self.name = name

    def gateway(self, *ports: int, class_name: str = "gatewright", **spec: Any) -> None:
        listeners = [{"name": f"p{port}", "port": port, "protocol": "HTTP"} for port in ports]
        reference = {"group": "gatewright.dev", "kind": "GatewayParameters", "name": self.name}
        infrastructure = {"infrastructure": {"parametersRef": reference}}
        whole = {"gatewayClassName": class_name, "listeners": listeners, **infrastructure, **spec}
        apply(self.server, f"{SHOP}/gateways/{self.name}", "Gateway", whole)

    def parameters(self, spec: Json) -> None:
        apply(self.server, f"{PARAMETERS}/{self.name}", "GatewayParameters", spec, OURS)

    def path(self, kind: str) -> str:
        return f"{PLACES[kind]}/{self.name}{'-session-key' if kind == 'Secret' else ''}"

    def found(self, kind: str) -> Json | None:
        answer = self.server.request("GET", self.path(kind))
        return answer.body if answer.status == 200 else None

    def body(self, kind: str) -> Json:
        found = self.found(kind)
        assert found is not None, kind
        return found

    @property
    def container(self) -> Json:
        container: Json = self.body("Deployment")["spec"]["template"]["spec"]["containers"][0]
        return container

    @property
    def status(self) -> Json:
        return get(self.server, f"{SHOP}/gateways/{self.name}").get("status") or {}

    def says(self, kind: str, reason: str, text: str = "") -> bool:
        found = [each for each in self.status.get("conditions") or () if each["type"] == kind]
        return any(each["reason"] == reason and text in each["message"] for each in found)

    def waits(self, condition: Any) -> None:
        wait_until(condition, lambda: f"{self.status}\n{self.controller.process.log()[-3000:]}")

    def is_made(self) -> bool:
        return all(self.found(kind) is not None for kind in USUAL)

    def remove(self) -> None:
        self.server.request("DELETE", f"{SHOP}/gateways/{self.name}")
        for kind in PLACES:  # nothing collects garbage here
            self.server.request("DELETE", self.path(kind))
        self.server.request("DELETE", f"{PARAMETERS}/{self.name}")


@pytest.fixture(scope="module")
def controller(server: ApiServer, token: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    folder = tmp_path_factory.mktemp("controller")
    made = Controller(server, token, folder, "controller", "--xds-service-accounts", "--proxy-image-tag", "1.0")
    try:
        yield made.await_ready()
    finally:
        made.process.stop()


@pytest.fixture
def shop(server: ApiServer, controller: Controller, request: pytest.FixtureRequest) -> Iterator[Shop]:
    made = Shop(server, controller, f"p{abs(hash(request.node.name)) % 10**8}")
    made.parameters(PLAIN)
    yield made
    made.remove()


def assign(shop: Shop, *ingress: Json) -> None:
    """As a load balancer does."""
    status = {"status": {"loadBalancer": {"ingress": [*ingress]}}}
    path = f"{shop.path('Service')}/status"
    assert shop.server.request("PATCH", path, status, "application/merge-patch+json").status == 200


def test_a_gateway_has_its_objects_addresses_and_ports(shop: Shop) -> None:
    shop.gateway(80)
    shop.waits(shop.is_made)
    shop.waits(lambda: shop.says("Programmed", "AddressNotAssigned"))
    uid = get(shop.server, f"{SHOP}/gateways/{shop.name}")["metadata"]["uid"]
    for kind in USUAL:
        (owner,) = shop.body(kind)["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["kind"], owner["controller"]) == (uid, "Gateway", True)
    assert len(shop.body("Secret")["data"]["key"]) == 88  # 64 hex digits in base64
    assert "BEGIN CERTIFICATE" in shop.body("ConfigMap")["data"]["xds-ca.crt"]
    assert shop.container["image"] == "ghcr.io/gatewright/gatewright:1.0"
    assign(shop, {"ip": "10.1.2.3"}, {"hostname": "a.example"})
    expected = [{"type": "IPAddress", "value": "10.1.2.3"}, {"type": "Hostname", "value": "a.example"}]
    shop.waits(lambda: shop.status.get("addresses") == expected and shop.says("Programmed", "Pending", "0 proxies"))
    before = shop.body("Deployment")["metadata"]["resourceVersion"]
    shop.gateway(80, 8080)
    shop.waits(lambda: [each["port"] for each in shop.body("Service")["spec"]["ports"]] == [80, 8080])
    assert shop.body("Deployment")["metadata"]["resourceVersion"] == before
    assign(shop)
    shop.waits(lambda: not shop.status.get("addresses") and shop.says("Programmed", "AddressNotAssigned"))


def test_a_restart_writes_nothing_and_what_is_changed_by_others_is_mended(
    shop: Shop, server: ApiServer, token: str, tmp_path: Path
) -> None:
    shop.parameters({"resources": {"requests": {"cpu": "1000m"}}, "podDisruptionBudget": {}, "env": [{"name": "A"}]})
    shop.gateway(80)
    kinds = (*USUAL, "PodDisruptionBudget")
    shop.waits(lambda: all(shop.found(kind) for kind in kinds) and shop.says("Programmed", "AddressNotAssigned"))
    assign(shop, {"ip": "10.1.2.3"})
    shop.waits(lambda: shop.status.get("addresses"))

    def versions() -> list[str]:
        found = [shop.body(kind)["metadata"]["resourceVersion"] for kind in kinds]
        return [*found, get(server, f"{SHOP}/gateways/{shop.name}")["metadata"]["resourceVersion"]]

    before = versions()
    shop.controller.process.signal(signal.SIGSTOP)  # it cannot answer while the other one leads
    second = Controller(server, token, tmp_path, "second", "--xds-service-accounts", "--proxy-image-tag", "1.0")
    try:
        second.await_ready()
        wait_until(lambda: second.leads, second.process.log)
        other = Shop(server, second, f"{shop.name}-other")
        other.parameters(PLAIN)
        other.gateway(80)
        other.waits(other.is_made)  # made behind all that had to be made at the start
        other.remove()
        assert versions() == before
        path, merge = shop.path("Deployment"), "application/merge-patch+json"
        foreign = {"spec": {"replicas": 4, "template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
        server.request("PATCH", path, foreign, merge)
        spec = lambda: shop.body("Deployment")["spec"]  # noqa: E731
        wait_until(lambda: spec()["template"]["spec"]["terminationGracePeriodSeconds"] == 60, second.process.log)
        assert spec()["replicas"] == 4  # that is nobody's but the one's who scales
        server.request("DELETE", shop.path("ConfigMap"))
        wait_until(lambda: shop.found("ConfigMap"), second.process.log)
    finally:
        second.end()
        shop.controller.process.signal(signal.SIGCONT)
        wait_until(lambda: shop.controller.leads)


def test_what_is_no_longer_wanted_goes_and_what_is_not_ours_stays(shop: Shop, server: ApiServer) -> None:
    shop.parameters({"podDisruptionBudget": {}, "horizontalPodAutoscaler": {}})
    labels = {"app.kubernetes.io/managed-by": "gatewright", "gateway.networking.k8s.io/gateway-name": shop.name}
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{shop.name}-x", "labels": labels}}
    place = f"{PLACES['ConfigMap']}/{shop.name}-x"
    assert server.apply(place, foreign).status == 201
    shop.gateway(80)
    shop.waits(lambda: shop.found("PodDisruptionBudget") and shop.found("HorizontalPodAutoscaler") and shop.is_made())
    assert shop.body("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert shop.body("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == shop.name
    shop.parameters({"env": [{"name": "SESSION_KEY", "value": "ab" * 32}]})
    gone = ("PodDisruptionBudget", "HorizontalPodAutoscaler", "Secret")
    shop.waits(lambda: not any(shop.found(kind) for kind in gone))
    # Its class becomes another controller's: what was made for it goes.
    other = {"controllerName": "example.com/other"}
    apply(server, "/apis/gateway.networking.k8s.io/v1/gatewayclasses/other", "GatewayClass", other)
    shop.gateway(80, class_name="other")
    shop.waits(lambda: not any(shop.found(kind) for kind in PLACES))
    assert server.request("GET", place).status == 200
    server.request("DELETE", place)


def test_the_parameters_of_a_class_are_those_that_it_names_and_no_others(shop: Shop, server: ApiServer) -> None:
    """They may be in any namespace. A reference to another kind, to nothing, or without a namespace is refused, and
    what runs stays as it is until the reference is mended."""
    place, far = f"{GATEWAY_API}/gatewayclasses/{shop.name}", f"{shop.name}-far"
    mine = PARAMETERS.replace("/shop/", f"/{far}/")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": far}}
    created(server, f"/api/v1/namespaces/{far}", namespace)
    for path, tag in ((f"{mine}/{shop.name}-class", "far"), (f"{PARAMETERS}/{shop.name}-class", "near")):
        apply(server, path, "GatewayParameters", {"image": {"tag": tag}}, OURS)

    def refers(**reference: str) -> None:
        spec = {"controllerName": "gatewright.dev/controller", "parametersRef": reference}
        apply(server, place, "GatewayClass", spec)

    def of_class() -> Json:
        rows = (get(server, place).get("status") or {}).get("conditions") or ()
        return next((each for each in rows if each["type"] == "Accepted"), {})

    def is_refused(why: str) -> bool:
        return of_class().get("reason") == "InvalidParameters" and why in of_class()["message"]

    right = {"group": "gatewright.dev", "kind": "GatewayParameters", "name": f"{shop.name}-class", "namespace": far}
    refers(**right)
    shop.gateway(80, class_name=shop.name)
    shop.waits(shop.is_made)
    assert shop.container["image"].endswith(":far")
    version = shop.body("Deployment")["metadata"]["resourceVersion"]
    without = {name: value for name, value in right.items() if name != "namespace"}
    for wrong, why in (
        ({"group": "", "kind": "ConfigMap", "name": "x", "namespace": far}, "ConfigMap"),
        ({**right, "group": "other.example"}, "other.example"),
        ({**right, "name": "none"}, f"GatewayParameters {far}/none does not exist"),
        ({**right, "namespace": "none"}, f"GatewayParameters none/{shop.name}-class does not exist"),
        (without, "namespace: is required"),
    ):
        refers(**wrong)
        shop.waits(partial(is_refused, why))
        shop.waits(lambda: shop.says("Accepted", "InvalidParameters"))
        assert shop.body("Deployment")["metadata"]["resourceVersion"] == version
        refers(**right)
        shop.waits(lambda: of_class().get("reason") == "Accepted" and shop.says("Accepted", "Accepted"))
    refers(**{**right, "namespace": "shop"})
    shop.waits(lambda: shop.container["image"].endswith(":near"))
    for path in (place, f"{mine}/{shop.name}-class", f"{PARAMETERS}/{shop.name}-class", f"/api/v1/namespaces/{far}"):
        server.request("DELETE", path)


def test_an_object_of_the_same_name_that_is_not_ours_is_left_alone(shop: Shop, server: ApiServer) -> None:
    spec = {"ports": [{"port": 1234}], "selector": {"mine": "yes"}}
    document = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": shop.name}, "spec": spec}
    assert server.apply(shop.path("Service"), document).status == 201
    shop.gateway(80)
    why = f"Service shop/{shop.name} exists and was not made for this Gateway"
    shop.waits(lambda: shop.says("Programmed", "Invalid", why))
    assert shop.body("Service")["spec"]["selector"] == {"mine": "yes"}
    assert [kind for kind in PLACES if shop.found(kind)] == ["Service"]
    server.request("DELETE", shop.path("Service"))
    shop.waits(lambda: shop.found("Service") and shop.says("Programmed", "AddressNotAssigned"))


def test_no_pod_runs_as_an_account_that_was_there_before_its_gateway(shop: Shop, server: ApiServer) -> None:
    """Whoever may write Gateways alone would have the rights of every account of the namespace."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": shop.name, "labels": {"a": "b"}}}
    assert server.apply(shop.path("ServiceAccount"), account).status == 201
    shop.gateway(80)
    why = f"ServiceAccount shop/{shop.name} exists and was not made for this Gateway"
    shop.waits(lambda: shop.says("Programmed", "Invalid", why))
    assert [kind for kind in PLACES if shop.found(kind)] == ["ServiceAccount"]
    assert "ownerReferences" not in shop.body("ServiceAccount")["metadata"]
    server.request("DELETE", shop.path("ServiceAccount"))
    shop.waits(lambda: shop.is_made() and shop.says("Programmed", "AddressNotAssigned"))


def test_what_the_api_server_refuses_is_told_and_gone_when_it_is_mended(shop: Shop) -> None:
    shop.gateway(80)
    shop.waits(shop.is_made)
    shop.parameters({"deployment": {"spec": {"replicas": -1}}})
    shop.waits(lambda: shop.says("Accepted", "InvalidParameters", f"Deployment shop/{shop.name}"))
    shop.parameters({"deployment": {"spec": {"replcas": 1}}})
    shop.waits(lambda: shop.says("Accepted", "InvalidParameters", "replcas"))
    shop.parameters({"deployment": {"spec": {"replicas": 2}}})
    shop.waits(lambda: shop.says("Accepted", "Accepted") and shop.body("Deployment")["spec"]["replicas"] == 2)


def test_proxies_are_made_where_the_right_to_make_them_is_bound(shop: Shop, server: ApiServer) -> None:
    (binding,) = [each for each in of_namespace("shop") if each["kind"] == "RoleBinding"]
    try:
        assert server.request("DELETE", path_of(binding)).status == 200
        shop.gateway(80)
        hint = "bind the ClusterRole gatewright-provisioner in namespace shop"
        shop.waits(lambda: shop.says("Programmed", "NoResources", hint))
        assert not any(shop.found(kind) for kind in PLACES)
        created(server, path_of(binding), binding)
        shop.waits(lambda: shop.is_made() and shop.says("Programmed", "AddressNotAssigned"))
    finally:
        created(server, path_of(binding), binding)


def test_a_quota_bounds_what_gateways_use_up_and_their_status_says_so(shop: Shop, server: ApiServer) -> None:
    """As docs/sharing.md has it, of node ports: whatever else a Gateway needs is made."""
    path = f"/api/v1/namespaces/shop/resourcequotas/{shop.name}"
    hard = {"services.nodeports": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": shop.name}, "spec": {"hard": hard}}
    created(server, path, quota)
    status = {"status": {"hard": hard, "used": {"services.nodeports": "0"}}}  # which a controller of Kubernetes counts
    try:
        assert server.request("PATCH", f"{path}/status", status, "application/merge-patch+json").status == 200
        shop.gateway(80, 81)
        shop.waits(lambda: shop.says("Programmed", "NoResources", "exceeded quota"))
        assert shop.found("Service") is None and shop.found("Deployment") is not None
    finally:
        server.request("DELETE", path)
    shop.waits(lambda: shop.is_made() and shop.says("Programmed", "AddressNotAssigned"))


def test_null_survives_server_side_apply_and_vanishes_on_the_client_side(shop: Shop, server: ApiServer) -> None:
    overlay: Json = {"deployment": {"spec": {"template": {"spec": {"securityContext": {"sysctls": None}}}}}}
    path = f"{PARAMETERS}/{shop.name}"
    stored = lambda: get(server, path)["spec"]["deployment"]["spec"]["template"]["spec"]  # noqa: E731
    pod = lambda: shop.body("Deployment")["spec"]["template"]["spec"]  # noqa: E731
    shop.gateway(80)
    shop.waits(shop.is_made)
    shop.parameters(overlay)
    assert stored() == {"securityContext": {"sysctls": None}}
    shop.waits(lambda: "sysctls" not in pod()["securityContext"])
    shop.parameters(PLAIN)
    shop.waits(lambda: "sysctls" in pod()["securityContext"])
    # A merge patch, as client-side apply computes one, has no way to say null: it means "remove".
    assert server.request("PATCH", path, {"spec": overlay}, "application/merge-patch+json").status == 200
    assert "sysctls" not in (stored().get("securityContext") or {})
    marker = {"spec": {"deployment": {"metadata": {"labels": {"seen": "yes"}}}}}
    server.request("PATCH", path, marker, "application/merge-patch+json")
    shop.waits(lambda: shop.body("Deployment")["metadata"]["labels"].get("seen") == "yes")
    assert "sysctls" in pod()["securityContext"]


def test_conditions_of_parameters(shop: Shop, server: ApiServer) -> None:
    def accepted() -> str:
        return conditions(get(server, f"{PARAMETERS}/{shop.name}").get("status")).get("Accepted", "")

    shop.waits(lambda: accepted() == "True")
    shop.parameters({"deployment": {"spec": {"template": {"$patch": "never"}}}})
    shop.waits(lambda: accepted() == "False")
