"""What is decoded of Kubernetes' own kinds: what something reads, with the verdict of the models, and nothing else."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from controlplane.facts import Fact, Invalid
from controlplane.kube.reading.events import Failed
from controlplane.kube.reading.known import Known
from controlplane.kube.reading.needed import NEEDED
from controlplane.translate.backend.workloads import REDIRECTION
from gatewright.api.objects.config_map import ConfigMap
from gatewright.api.objects.custom_resource_definition import CustomResourceDefinition
from gatewright.api.objects.endpoint_slice import EndpointSlice
from gatewright.api.objects.kinds import KINDS
from gatewright.api.objects.pod import Pod
from gatewright.api.objects.secret import Secret
from gatewright.api.objects.service import Service

Json = dict[str, Any]
PATH = "gatewright.dev/mcp-path"
RELEASE = "gateway.networking.k8s.io/bundle-version"

METADATA: Json = {
    "name": "a",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "labels": {"team": "edge"},
    "annotations": {PATH: "/tools", RELEASE: "v1.7.0", "example.com/note": "x" * 1000},
    "managedFields": [{"manager": "m"}],
    "ownerReferences": [{"kind": "Service", "name": "a", "uid": "v"}],
}
ENDPOINT: Json = {
    "addresses": ["10.0.0.1"],
    "conditions": {"ready": True, "serving": True, "terminating": False},
    "targetRef": {"kind": "Pod", "name": "p"},
    "nodeName": "node",
    "zone": "z1",
    "hints": {"forZones": [{"name": "z1"}], "forNodes": [{"name": "n"}]},
}
CONTENT: dict[str, Json] = {
    "Service": {
        "spec": {
            "ports": [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "h2c"}],
            "type": "ClusterIP",
            "selector": {"app": "a"},
            "clusterIP": "10.96.0.1",
            "somethingNew": {"x": [1]},
        }
    },
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [ENDPOINT, {"addresses": ["10.0.0.2"], "conditions": {}, "hints": None}],
        "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
    },
    "Pod": {
        "spec": {"serviceAccountName": "app", "containers": [{"name": "x", "image": "y" * 1000}]},
        "status": {
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}],
        },
    },
    "Secret": {"type": "Opaque", "data": {"key": "dmFsdWU="}},
    "ConfigMap": {"data": {"ca.crt": "PEM", "ca.crl": "LIST", "index.html": "x" * 1000}, "binaryData": {"b": "AAAA"}},
    "Namespace": {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
    "CustomResourceDefinition": {
        "spec": {"group": "gateway.networking.k8s.io", "versions": [{"schema": {"x": 1}}], "names": {"kind": "K"}}
    },
}


def known(kind: str) -> Known:
    made = Known(KINDS[kind])
    made.list_begins()
    return made


def taken(kind: str, content: Json, metadata: Json = METADATA) -> Fact:
    shown = {**metadata, "namespace": metadata["namespace"]} if KINDS[kind].namespaced else {**metadata}
    if not KINDS[kind].namespaced:
        shown.pop("namespace")
    (fact,) = known(kind).page([json.dumps({"metadata": shown, **content}).encode()], "v1")
    return fact


@pytest.mark.parametrize("kind", NEEDED)
def test_an_object_is_there_with_what_something_reads(kind: str) -> None:
    fact = taken(kind, CONTENT[kind])
    assert fact.acts is not None and fact.invalid is None
    assert fact.previous is None  # no status of it is ours
    metadata = fact.acts.metadata
    assert (metadata.name, metadata.labels) == ("a", {"team": "edge"})
    assert metadata.annotations == {PATH: "/tools", RELEASE: "v1.7.0"}
    assert (metadata.uid, metadata.resource_version) == ("", "")


def test_of_each_kind_what_it_is_read_for() -> None:
    service, endpoints, secret, ca, definition = (
        taken(kind, CONTENT[kind]).acts
        for kind in ("Service", "EndpointSlice", "Secret", "ConfigMap", "CustomResourceDefinition")
    )
    assert isinstance(service, Service) and isinstance(endpoints, EndpointSlice) and isinstance(secret, Secret)
    assert isinstance(ca, ConfigMap) and isinstance(definition, CustomResourceDefinition)
    (port,) = service.spec.ports
    assert (port.name, port.port, port.target_port, port.protocol, port.app_protocol) == (
        "web",
        80,
        "http",
        "TCP",
        "h2c",
    )
    assert (service.spec.type, service.spec.selector, service.spec.cluster_ip) == ("ClusterIP", {}, None)
    one, other = endpoints.endpoints
    assert (one.addresses, one.ready, one.target_ref, one.node_name) == (("10.0.0.1",), True, None, None)
    assert one.hints is not None and [zone.name for zone in one.hints.for_zones] == ["z1"]
    assert (other.addresses, other.ready, other.hints) == (("10.0.0.2",), True, None)
    assert [(each.name, each.port, each.protocol) for each in endpoints.ports] == [("web", 8080, "TCP")]
    assert secret.values() == {"key": b"value"} and "value" not in repr(secret)
    assert ca.data == {"ca.crt": "PEM", "ca.crl": "LIST"} and ca.binary_data == {}
    assert definition.spec.group == "gateway.networking.k8s.io"


def test_of_a_pod_where_it_is_and_as_whom_it_runs() -> None:
    marks = {**METADATA, "annotations": {REDIRECTION: "enabled", "example.com/note": "x"}}
    pod = taken("Pod", CONTENT["Pod"], marks).acts
    assert isinstance(pod, Pod)
    assert (pod.spec.service_account_name, pod.state.pod_ip, pod.is_ready) == ("app", "10.0.0.1", True)
    assert pod.metadata.annotations == {REDIRECTION: "enabled"}


def test_lists_that_are_null_are_empty() -> None:
    """As written by clients in Go that leave them so."""
    found = taken("EndpointSlice", {"addressType": "IPv4", "endpoints": None, "ports": None}).acts
    assert isinstance(found, EndpointSlice)
    assert (found.endpoints, found.ports) == ((), ())


WRONG: list[tuple[str, Json, str]] = [
    ("EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}]}, "must be an IPv4 address"),
    ("EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": []}]}, "endpoints[0].addresses"),
    ("EndpointSlice", {"addressType": 4}, "addressType"),
    ("Service", {"spec": {"ports": [{"port": 70000}]}}, "spec.ports[0].port"),
    ("Service", {"spec": []}, "spec"),
    ("Secret", {"data": {"key": "?"}}, "must be base64"),
    ("ConfigMap", {"data": {"ca.crt": 1}}, "must be a string"),
]


@pytest.mark.parametrize(("kind", "content", "reason"), WRONG)
def test_what_is_wrong_is_said_as_of_any_object(kind: str, content: Json, reason: str) -> None:
    known_, good = known(kind), CONTENT[kind]
    (first,) = known_.page([json.dumps({"metadata": METADATA, **good}).encode()], "v1")
    event = {"type": "MODIFIED", "object": {"apiVersion": KINDS[kind].api_versions[0], "kind": kind}}
    event["object"] |= {"metadata": METADATA, **content}  # type: ignore[operator]
    (fact,) = known_.events([json.dumps(event).encode()])
    assert isinstance(fact.model, Invalid)
    assert any(reason in each for each in fact.model.reasons), fact.model.reasons
    assert fact.model.last_good == first.model


def test_a_change_of_what_nobody_reads_is_none() -> None:
    other = {
        **METADATA,
        "resourceVersion": "8",
        "annotations": {"example.com/note": "y", PATH: "/tools", RELEASE: "v1.7.0"},
    }
    moved = {**CONTENT["EndpointSlice"], "endpoints": [{**ENDPOINT, "nodeName": "other"}, {"addresses": ["10.0.0.2"]}]}
    before = taken("EndpointSlice", CONTENT["EndpointSlice"])
    assert taken("EndpointSlice", moved, other) == before


def test_a_page_that_cannot_be_read_is_trouble_and_no_crash() -> None:
    for raw in (b"{", b"[]", b'{"metadata": []}', b'{"metadata": {"name": 1}}', b"\xff"):
        with pytest.raises(Failed, match="cannot be read"):
            known("Service").page([raw], "v1")


def slices(count: int, endpoints: int) -> list[bytes]:
    made = []
    for number in range(count):
        labels = {"kubernetes.io/service-name": f"service{number}", "app": f"service{number}"}
        metadata = {**METADATA, "name": f"slice{number}", "labels": labels}
        rows = [{**ENDPOINT, "addresses": [f"10.0.{number % 250}.{each}"]} for each in range(endpoints)]
        made.append(json.dumps({"metadata": metadata, **CONTENT["EndpointSlice"], "endpoints": rows}).encode())
    return made


def test_the_memory_of_endpoints_is_bounded() -> None:
    """10,000 slices of ten endpoints take less than 120 MiB: everything decoded they took 260. A share of them here."""
    raw, followed = slices(500, 10), known("EndpointSlice")
    followed.page(raw[:1], "v1")  # what is made once
    tracemalloc.start()
    try:
        facts = followed.page(raw, "v1")
        taken_up = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(facts) == 500
    assert taken_up / 500 < 12.5 * 1024
