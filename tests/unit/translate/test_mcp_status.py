"""Status of MCP backends: names of targets with which names of tools become too long for clients are named."""

from __future__ import annotations

import json

import pytest

from controlplane.translate.keys import RESOURCE_TYPE
from gatewright.wire.v1 import resource_pb2
from tests.unit.translate.test_program import CLASS, GATEWAY, world

BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools, namespace: default, generation: 1}
spec:
  mcp:
    targets: [%s]
---
"""
LONG, SHORT = "l" * 33, "s" * 32


def accepted(*names: str) -> tuple[str, str]:
    """Status and message of the condition."""
    targets = ", ".join(f"{{name: {name}, static: {{host: a.example, port: 80}}}}" for name in names)
    body = world(CLASS, GATEWAY, BACKEND % targets).program.status("GatewayBackend", "default", "tools")
    assert body is not None
    (found,) = [each for each in body["conditions"] if each["type"] == "Accepted"]
    return found["status"], found["message"]


def test_a_long_name_is_a_warning_where_names_of_tools_begin_with_it() -> None:
    status, message = accepted(LONG, SHORT)
    assert status == "True" and "may exceed 64 characters" in message
    assert LONG in message and SHORT not in message


@pytest.mark.parametrize("names", [(LONG,), (SHORT, "other")])
def test_otherwise_there_is_none(names: tuple[str, ...]) -> None:
    assert accepted(*names) == ("True", "")


def test_of_many_the_first_are_named() -> None:
    _, message = accepted(*(f"{LONG}{number}" for number in range(10)))
    assert message.count(LONG) == 8


NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: %s, annotations: {gatewright.dev/mcp-path: %s}}
spec: {ports: [{port: 80, appProtocol: gatewright.dev/mcp}]}
---
"""
ROUTE = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: tools, namespace: default}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: tools}]}]
"""
SELECTED = "{name: all, selector: {namespaces: {}, services: {}}}"


@pytest.mark.parametrize("path", ["no/slash", "/a b", "/x\r\nhost: other", "/\u00e9", "/" + "x" * 1024])
def test_a_path_that_is_none_leaves_out_its_service_and_nothing_else(path: str) -> None:
    """Proxies refuse a backend for it, and the Service may be in the namespace of somebody else."""
    services = SERVICE % ("search", "default", json.dumps("/tools")) + SERVICE % ("evil", "tenant", json.dumps(path))
    made = world(CLASS, GATEWAY, NAMESPACES, services, BACKEND % SELECTED, ROUTE)
    body = made.program.status("GatewayBackend", "default", "tools")
    said = str((body or {})["conditions"])
    assert "Service tenant/evil: the path in annotation gatewright.dev/mcp-path must begin with /" in said
    (sent,) = (
        mcp
        for key, message in made.program.resources.present().items()
        if key.type_url == RESOURCE_TYPE
        and (mcp := resource_pb2.Resource.FromString(message.content).backend.mcp).targets
    )
    assert [(each.name, each.path) for each in sent.targets] == [("search-80", "/tools")]


@pytest.mark.parametrize(
    ("target", "service", "said"),
    [
        ("missing}, port: 80", "", "target one: Service default/missing does not exist"),
        ("tools}, port: 81", "ports: [{port: 80}]", "target one: Service default/tools has no port 81"),
        (
            "tools}, port: 80",
            "type: ExternalName, externalName: a.example",
            "target one: Service default/tools is of type ExternalName, which has no endpoints",
        ),
        ("tools}, port: 80", "ports: [{port: 80}]", ""),
    ],
)
def test_a_service_that_cannot_be_a_target_is_named(target: str, service: str, said: str) -> None:
    made = f"apiVersion: v1\nkind: Service\nmetadata: {{name: tools, namespace: default}}\nspec: {{{service}}}\n---\n"
    objects = [made] if service else []
    one = f"{{name: one, static: {{backendRef: {{name: {target}}}}}"
    body = world(CLASS, GATEWAY, *objects, BACKEND % one).program.status("GatewayBackend", "default", "tools")
    (found,) = [each for each in (body or {})["conditions"] if each["type"] == "ResolvedRefs"]
    assert (found["status"], found["message"]) == ("False" if said else "True", said)
