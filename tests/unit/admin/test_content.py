"""No secret is on the admin page, wherever its object holds it."""

from __future__ import annotations

from controlplane.admin.content import shown
from gatewright.api.decode import documents
from gatewright.api.schema.metadata import KubeObject


def decoded(text: str) -> KubeObject:
    (found,) = documents.decode(text, "a.yaml")
    assert found.item is not None, [str(each) for each in found.problems]
    return found.item


def test_a_secret_keeps_its_name_alone() -> None:
    content = shown(decoded("{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: YQ==}, stringData: {l: b}}"))
    assert {name for name in content if "ata" in name} == {"metadata"}
    assert content["metadata"]["name"] == "a"


def test_what_a_policy_writes_itself_is_hidden_and_the_rest_is_shown() -> None:
    policy = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}]
  traffic:
    basicAuthentication: {users: ["ann:HASH"], realm: here}
    csrf: {additionalOrigins: ["https://a.example"]}
"""
    content = shown(decoded(policy))
    assert content["spec"]["traffic"]["basicAuthentication"] == {"mode": "Strict", "realm": "here"}
    assert content["spec"]["traffic"]["csrf"] == {"additionalOrigins": ["https://a.example"]}
    assert content["spec"]["targetRefs"][0]["name"] == "a"
    assert "HASH" not in str(content)


def test_keys_in_lists_of_a_backend_are_hidden() -> None:
    backend = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: b}
spec:
  ai:
    groups:
      - providers:
          - {name: one, openai: {}, policies: {auth: {key: TOKEN}}}
"""
    content = shown(decoded(backend))
    assert "TOKEN" not in str(content)
    assert content["spec"]["ai"]["groups"][0]["providers"][0]["name"] == "one"
