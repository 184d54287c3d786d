"""MCP backends and agents as an object and in the standalone file: the same words mean the same to a proxy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.standalone import standalone
from gatewright.wire.v1 import resource_pb2
from tests.unit.translate.test_program import CLASS, GATEWAY, world

DOCS = Path(__file__).resolve().parents[3] / "docs"
OBJECT = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools, namespace: default, generation: 1}
spec: %s
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tools, namespace: default, generation: 1}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: tools}]}]
---
"""
FILE = """
binds:
- port: 80
  listeners:
  - name: http
    routes:
    - name: tools
      backends: [%s]
"""
ONE = "{name: one, static: {host: a.example, port: 8000}}"
TWO = (
    "{name: two, static: {host: b.example, port: 443, path: /v2/mcp, policies: {tls: {}, http: {requestTimeout: 3s}}}}"
)


def plain(resources: list[resource_pb2.Resource]) -> list[dict[str, Any]]:
    """Backends, each with those that it leads to in place of their keys. The policies of a target stay with it."""
    by_key = {each.key: each for each in resources}
    found = []
    for each in resources:
        if not each.HasField("backend"):
            continue
        backend: dict[str, Any] = MessageToDict(each.backend, preserving_proto_field_name=True)
        for target in backend.get("mcp", {}).get("targets", ()):
            target["backend"] = MessageToDict(by_key[target["backend"]].backend.static)
        found.append(backend)
    return sorted(found, key=str)


def of_object(spec: str) -> list[dict[str, Any]]:
    made = world(CLASS, GATEWAY, OBJECT % spec)
    kinds = {key: data for key, data in made.resources.items() if not key[1].endswith(".Endpoint")}
    return plain([resource_pb2.Resource.FromString(data) for data in kinds.values()])


def of_file(backend: str) -> list[dict[str, Any]]:
    loaded = standalone.load(FILE % backend, "config.yaml")
    assert not loaded.problems, loaded.problems
    return plain(list(loaded.resources))


@pytest.mark.parametrize(
    "spec",
    [
        f"{{mcp: {{targets: [{ONE}]}}}}",
        f"{{mcp: {{targets: [{ONE}, {TWO}]}}}}",
        f"{{mcp: {{targets: [{ONE}, {TWO}], failureMode: FailOpen, sessionRouting: Stateless}}}}",
        f"{{mcp: {{targets: [{ONE}]}}, policies: {{http: {{requestTimeout: 9s}}}}}}",
        "{a2a: {host: agent.example, port: 8080}}",
        "{a2a: {host: agent.example, port: 8443}, policies: {tls: {sni: other.example}}}",
    ],
)
def test_both_forms_are_equal(spec: str) -> None:
    found = of_object(spec)
    assert found and found == of_file(spec)


# --- the examples of the pages


def blocks(page: str) -> list[str]:
    """The YAML of a page that is a whole file: of objects, or of a proxy alone."""
    found = re.findall(r"^```yaml\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return [each for each in found if each.startswith(("apiVersion:", "binds:"))]


def loaded(text: str) -> list[resource_pb2.Resource]:
    made = standalone.load(text, "config.yaml")
    assert not made.problems, made.problems
    return list(made.resources)


def read(*objects: str) -> list[resource_pb2.Resource]:
    texts = [
        re.sub(r"metadata: {name: ([\w-]+)[^}]*}", r"metadata: {name: \1, namespace: default, generation: 1}", each)
        for each in objects
    ]
    made = world(CLASS, GATEWAY, "\n---\n".join(texts))
    return [
        resource_pb2.Resource.FromString(data)
        for key, data in made.resources.items()
        if not key[1].endswith(".Endpoint")
    ]


ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: NAME}]}]
"""


def test_the_two_examples_of_the_page_are_equal() -> None:  # those of docs/mcp: rules/test_mcp_pages
    whole = blocks("a2a.md")
    (of_objects,) = [each for each in whole if each.startswith("apiVersion:")]
    of_files = [each for each in whole if each.startswith("binds:")]
    found = plain(read(of_objects, ROUTE.replace("NAME", "greeter")))
    assert found and plain(loaded(of_files[0])) == found


def rules(resources: list[resource_pb2.Resource]) -> list[Any]:
    """What policies say of MCP calls, wherever they stand."""
    found: list[Any] = []

    def walk(value: Any) -> None:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            if name == "backend_mcp":
                found.append(each)
            elif isinstance(each, dict | list):
                walk(each)

    for each in resources:
        walk(MessageToDict(each, preserving_proto_field_name=True))
    return found


def test_the_two_examples_of_the_policy_are_equal() -> None:
    of_objects, of_file = blocks("policies/backend_mcp.md")
    backend = OBJECT.partition("---")[0] % f"{{mcp: {{targets: [{ONE}]}}}}"
    found = rules(read(of_objects, backend, ROUTE.replace("NAME", "tools")))
    assert len(found) == 1 and rules(loaded(of_file)) == found


def test_a_difference_is_noticed() -> None:
    assert of_object(f"{{mcp: {{targets: [{ONE}]}}}}") != of_file(f"{{mcp: {{targets: [{ONE}, {TWO}]}}}}")
    assert of_object("{a2a: {host: a.example, port: 1}}") != of_file("{a2a: {host: a.example, port: 2}}")
