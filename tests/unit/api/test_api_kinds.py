"""What every kind is, as a text of it is read: its versions, whether it has a namespace, whether it is served."""

from __future__ import annotations

import pytest

from gatewright.api.decode import documents
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.metadata import ObjectKey

CLUSTER_WIDE = {"GatewayClass", "Namespace", "CustomResourceDefinition"}
NOT_SERVED: set[str] = set()
GATEWAY_API, OWN = "gateway.networking.k8s.io", "gatewright.dev"
VERSIONS = {
    "GatewayClass": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1beta1"),
    "Gateway": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1beta1"),
    "HTTPRoute": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1beta1"),
    "BackendTLSPolicy": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1alpha3"),
    "ReferenceGrant": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1beta1"),
    "GRPCRoute": (f"{GATEWAY_API}/v1",),
    "ListenerSet": (f"{GATEWAY_API}/v1",),
    "TLSRoute": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1alpha3", f"{GATEWAY_API}/v1alpha2"),
    "TCPRoute": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1alpha2"),
    "UDPRoute": (f"{GATEWAY_API}/v1", f"{GATEWAY_API}/v1alpha2"),
    "GatewayBackend": (f"{OWN}/v1alpha1",),
    "GatewayParameters": (f"{OWN}/v1alpha1",),
    "GatewayPolicy": (f"{OWN}/v1alpha1",),
    "Service": ("v1",),
    "InferencePool": ("inference.networking.k8s.io/v1",),
    "Pod": ("v1",),
    "Secret": ("v1",),
    "ConfigMap": ("v1",),
    "Namespace": ("v1",),
    "EndpointSlice": ("discovery.k8s.io/v1",),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whether_an_object_has_a_namespace(kind: str) -> None:
    for version in KINDS[kind].api_versions:
        (decoded,) = documents.decode(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n", "x.yaml")
        assert decoded.key == ObjectKey(kind, "" if kind in CLUSTER_WIDE else "default", "a")


def test_versions_and_what_is_served() -> None:
    assert {kind: KINDS[kind].api_versions for kind in VERSIONS} == VERSIONS
    assert {kind for kind, info in KINDS.items() if not info.served} == NOT_SERVED == KINDS.keys() - VERSIONS.keys()


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "[" * 50])
def test_a_bad_pattern_is_a_problem_and_writes_nothing_else(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The library of regular expressions would write into the controller's log."""
    text = f"""\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: a}}
spec: {{rules: [{{matches: [{{path: {{type: RegularExpression, value: "{pattern}"}}}}]}}]}}
"""
    (decoded,) = documents.decode(text, "x.yaml")
    assert any("must be a regular expression in RE2 syntax" in problem.message for problem in decoded.problems)
    assert capfd.readouterr() == ("", "")
