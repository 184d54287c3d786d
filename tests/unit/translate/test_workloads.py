"""Which endpoints are workloads of a mesh, read from Pods as Istio marks them."""

from __future__ import annotations

import pytest

from controlplane.facts import Fact
from controlplane.translate.backend.workloads import asks_for_pods
from gatewright.api.objects.gateway_parameters import GatewayParameters
from gatewright.api.schema import metadata
from gatewright.wire.v1 import backend_pb2
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World

OBJECTS = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all, namespace: default}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{name: app, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: default}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-1, namespace: default, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]
ports: [{port: 8080}]
"""
)
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, %s}
spec: {serviceAccountName: %s}
status: {podIP: 10.0.0.1, conditions: [{type: Ready, status: "%s"}]}
"""
REDIRECTED = "annotations: {ambient.istio.io/redirection: enabled}"


class Endpoints(World):
    """Workloads by address, as the proxies of the Gateway have them."""

    def __init__(self, *objects: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.put("\n---\n".join((OBJECTS, *objects)))

    def seen(self) -> dict[str, str]:
        batches, self.batches[:] = [*self.batches], []
        for batch in batches:
            for _, url, _, data in batch:
                if url.endswith(".Endpoint") and data is not None:
                    message = backend_pb2.Endpoint.FromString(data)
                    self.found[message.address] = message.workload
        return self.found


MARKS = [
    (REDIRECTED, "default/app"),
    ("labels: {networking.istio.io/tunnel: http}", "default/app"),
    ('labels: {networking.istio.io/tunnel: "x, http"}', "default/app"),
    ("labels: {networking.istio.io/tunnel: https}", ""),
    ("annotations: {ambient.istio.io/redirection: disabled}", ""),
    ("labels: {istio.io/dataplane-mode: ambient}", ""),
    ("labels: {}", ""),
]


@pytest.mark.parametrize(("marks", "workload"), MARKS)
def test_a_pod_that_takes_tunnels_makes_its_address_a_workload(marks: str, workload: str) -> None:
    world = Endpoints(POD % ("app-1", marks, "app", "True"))
    assert world.seen() == {"10.0.0.1": workload, "10.0.0.2": ""}


def test_a_slice_may_name_a_pod_of_another_namespace() -> None:
    pod = (POD % ("app-1", REDIRECTED, "app", "True")).replace("namespace: default", "namespace: other")
    assert Endpoints(pod).seen()["10.0.0.1"] == "other/app"


def test_without_pods_no_address_is_a_workload() -> None:
    assert Endpoints().seen() == {"10.0.0.1": "", "10.0.0.2": ""}


def test_a_pod_that_joins_and_leaves_changes_its_endpoint() -> None:
    world = Endpoints()
    world.seen()
    world.put(POD % ("app-1", REDIRECTED, "app", "True"))
    assert world.seen()["10.0.0.1"] == "default/app"
    world.put(POD % ("app-1", "labels: {}", "app", "True"))
    assert world.seen()["10.0.0.1"] == ""


def test_of_two_pods_at_an_address_the_one_that_is_ready_counts() -> None:
    ended, ready = POD % ("a", REDIRECTED, "a-former", "False"), POD % ("b", REDIRECTED, "present", "True")
    assert Endpoints(ended, ready).seen()["10.0.0.1"] == "default/present"


def test_a_pod_without_an_account_runs_as_the_default_one() -> None:
    assert Endpoints((POD % ("a", REDIRECTED, "x", "True")).replace("{serviceAccountName: x}", "{}")).seen()[
        "10.0.0.1"
    ] == ("default/default")


ASKED = [({"enabled": True}, True), ({"enabled": False}, False), ({"network": "n"}, False), (None, False)]


@pytest.mark.parametrize(("istio", "asked"), ASKED)
def test_pods_are_asked_for_where_a_mesh_is_switched_on(istio: object, asked: bool) -> None:
    body = {
        "apiVersion": "gatewright.dev/v1alpha1",
        "kind": "GatewayParameters",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {} if istio is None else {"istio": istio},
    }
    model = GatewayParameters.model_validate(body)
    assert asks_for_pods(Fact(metadata.ObjectKey("GatewayParameters", "b", "a"), model)) is asked
