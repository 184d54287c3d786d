"""Where policies for connecting to the servers of an MCP backend attach, and which wins: Gateway, route, the
GatewayBackend that a policy names, the Service of a target, the GatewayBackend's own, a target's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.fakes.mcp_toys import BOTH, HELLO
from tests.fakes.web_objects import WEB
from tests.policies.test_backend_levels import Seen, settings

OBJECTS = (
    WEB
    + """---
apiVersion: v1
kind: Service
metadata: {name: tools}
spec: {ports: [{name: mcp, port: 80, targetPort: 9001}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: tools-1, labels: {kubernetes.io/service-name: tools}}
addressType: IPv4
ports: [{name: mcp, port: 9001}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: far}
spec:
  mcp:
    targets:
    - TARGET
  OWN
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
    - backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: far}]
"""
)
PLACES = [
    "{group: gateway.networking.k8s.io, kind: Gateway, name: web}",
    "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}",
    "{group: gatewright.dev, kind: GatewayBackend, name: far}",
    "{group: '', kind: Service, name: tools}",
]
OWN, TARGETS_OWN = 4, 5
SERVICE = "{name: one, static: {backendRef: {name: tools}, port: 80}}"
LEVELS = {SERVICE: [0, 1, 2, 3, OWN], "host": [0, 1, 2, OWN, TARGETS_OWN]}
"""What there is of each kind of target, the least specific first."""


def text(kind: str, levels: list[int]) -> str:
    own = f"policies: {settings(OWN)}" if OWN in levels else ""
    target = SERVICE
    if kind == "host":
        only = settings(TARGETS_OWN).partition(", health")[0] + "}"
        policies = f", policies: {only}" if TARGETS_OWN in levels else ""
        target = f"{{name: one, static: {{host: 10.0.0.1, port: 9001{policies}}}}}"
    made = OBJECTS.replace("OWN", own).replace("TARGET", target)
    for level in levels:
        if level < len(PLACES):
            made += f"""
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: level-{level}}}
spec:
  targetRefs: [{PLACES[level]}]
  backend: {settings(level)}
"""
    return made


def plans_of(objects: str) -> list[Any]:
    """The servers that `initialize` asks, as they are connected to."""
    proxy = BothPlanes(objects)
    plans: list[Any] = []
    leases = proxy.context.leases
    leases.backends = {name: Seen(row, plans) for name, row in leases.backends.items()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    proxy.ask("/mcp", f"accept: {BOTH}", "content-type: application/json", method="POST", body=json.dumps(message))
    return [each for each in plans if each.of_kind is None]


def asked(kind: str, levels: list[int]) -> tuple[str, float | None, float | None]:
    """Server name, time for an answer and time of an eviction, with which the server is asked."""
    plan = plans_of(text(kind, levels))[0]
    tls = None if plan.transport is None else plan.transport.tls
    health = None if plan.rules is None else plan.rules.health
    return (
        "" if tls is None else tls.sni,
        plan.request_timeout,
        None if health is None or health.eviction is None else health.eviction.duration,
    )


CASES = [(kind, count) for kind, levels in LEVELS.items() for count in range(1, len(levels) + 1)]


@pytest.mark.parametrize(("kind", "count"), CASES)
def test_the_most_specific_place_wins(kind: str, count: int) -> None:
    levels = LEVELS[kind][:count]
    top = levels[-1]
    health = 60.0 * (OWN if top == TARGETS_OWN else top) + 60.0
    assert asked(kind, levels) == (f"level-{top}.test", top + 1.0, health)


@pytest.mark.parametrize(("kind", "count"), CASES)
def test_a_policy_acts_at_each_place(kind: str, count: int) -> None:
    level = LEVELS[kind][count - 1]
    found = asked(kind, [level])
    assert found[:2] == (f"level-{level}.test", level + 1.0)
    assert found[2] == (None if level == TARGETS_OWN else 60.0 * (level + 1))


@pytest.mark.parametrize("kind", LEVELS)
def test_without_policies_nothing_is_set(kind: str) -> None:
    assert asked(kind, []) == ("", None, None)


# --- one of several targets


def policy(target: str, backend: str, name: str = "one") -> str:
    return f"""
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{target}]
  backend: {backend}
"""


def times(objects: str) -> dict[str, float | None]:
    """The time for an answer of each server, by the last part of its key."""
    return {each.key.rpartition("/")[2]: each.request_timeout for each in plans_of(objects)}


TIME = "{http: {requestTimeout: 7s}}"
PART = "{group: gatewright.dev, kind: GatewayBackend, name: far, sectionName: %s}"
HOSTS = OBJECTS.replace("OWN", "").replace(
    "- TARGET",
    "- {name: one, static: {host: 10.0.0.1, port: 9001}}\n    - {name: two, static: {host: 10.0.0.2, port: 9001}}",
)


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_policy_of_one_target_reaches_no_other(name: str) -> None:
    expected: dict[str, float | None] = {"one": None, "two": None}
    assert times(HOSTS + policy(PART % name, TIME)) == expected | {name: 7.0}
    assert times(HOSTS + policy(PART % "three", TIME)) == expected


OTHER = """
---
apiVersion: v1
kind: Service
metadata: {name: other, labels: {kind: mcp}}
spec: {ports: [{name: mcp, port: 81, appProtocol: gatewright.dev/mcp}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: other-1, labels: {kubernetes.io/service-name: other}}
addressType: IPv4
ports: [{name: mcp, port: 9001}]
endpoints: [{addresses: [10.0.0.2]}]
"""
SELECTED = (
    OBJECTS.replace("OWN", "")
    .replace("TARGET", "{name: all, selector: {services: {matchLabels: {kind: mcp}}}}")
    .replace("metadata: {name: tools}", "metadata: {name: tools, labels: {kind: mcp}}")
    .replace("targetPort: 9001}", "targetPort: 9001, appProtocol: gatewright.dev/mcp}")
    + OTHER
)


@pytest.mark.parametrize("target", ["{group: '', kind: Service, name: tools}", PART % "tools-80"])
def test_a_policy_of_a_service_reaches_the_target_that_a_selector_made_of_it(target: str) -> None:
    assert times(SELECTED + policy(target, TIME)) == {"80": 7.0, "81": None}


def test_a_policy_of_a_selector_reaches_all_that_it_found_and_no_other() -> None:
    own = "{name: own, static: {host: 10.0.0.3, port: 9001}}"
    objects = SELECTED.replace("    - {name: all,", f"    - {own}\n    - {{name: all,")
    assert times(objects) == {"80": None, "81": None, "own": None}
    assert times(objects + policy(PART % "all", TIME)) == {"80": 7.0, "81": 7.0, "own": None}
    assert times(objects + policy(PART % "own", TIME)) == {"80": None, "81": None, "own": 7.0}


@pytest.mark.parametrize("protocol", ["Gatewright.dev/MCP", "gatewright.dev/mcp"])
def test_case_of_the_protocol_of_a_port_means_nothing(protocol: str) -> None:
    assert list(times(SELECTED.replace("gatewright.dev/mcp}", f"{protocol}}}"))) == ["81", "80"]
    assert list(times(SELECTED.replace("gatewright.dev/mcp}]", f"{protocol}, protocol: UDP}}]"))) == []


def test_a_service_without_endpoints_of_its_own_is_not_selected() -> None:
    outside = "spec: {type: ExternalName, externalName: a.example, ports: [{name: mcp, port: 81,"
    assert list(times(SELECTED.replace("spec: {ports: [{name: mcp, port: 81,", outside))) == ["80"]


def test_a_name_that_is_taken_gets_the_namespace_in_front() -> None:
    own = "{name: tools-80, static: {host: 10.0.0.3, port: 9001}}"
    objects = SELECTED.replace("    - {name: all,", f"    - {own}\n    - {{name: all,")
    expected: dict[str, float | None] = {"tools-80": None, "80": None, "81": None}
    assert times(objects) == expected
    assert times(objects + policy(PART % "default-tools-80", TIME)) == expected | {"80": 7.0}
    assert times(objects + policy(PART % "tools-80", TIME)) == expected | {"tools-80": 7.0}


def test_a_backend_whose_selectors_find_nothing_says_so() -> None:
    proxy = BothPlanes(OBJECTS.replace("OWN", "").replace("TARGET", "{name: all, selector: {services: {}}}"))
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    lines = (f"accept: {BOTH}", "content-type: application/json")
    assert proxy.ask("/mcp", *lines, method="POST", body=message) == (503, "no MCP servers")


def test_each_field_is_merged_by_itself() -> None:
    """Of `backend`, `spec.policies` and `static.policies`, whichever says it last."""
    own = "policies: {http: {requestTimeout: 2s}, tcp: {connectTimeout: 2s}}"
    target = "{name: one, static: {host: 10.0.0.1, port: 9001, policies: {tcp: {connectTimeout: 3s}}}}"
    objects = OBJECTS.replace("OWN", own).replace("TARGET", target)
    attached = "{tls: {sni: level-1.test}, http: {requestTimeout: 1s}, tcp: {connectTimeout: 1s}}"
    (plan,) = plans_of(objects + policy(PLACES[2], attached))
    assert plan.transport is not None and plan.transport.tls is not None and plan.transport.tls.sni == "level-1.test"
    assert (plan.request_timeout, plan.transport.tcp.connect_timeout) == (2.0, 3.0)


# --- rules


def rule(name: str, target: str, action: str, expression: str) -> str:
    text = f"{{policy: {{matchExpressions: ['{expression}']}}, action: {action}}}"
    return policy(target, f"{{mcp: {{authorization: {text}}}}}", name)


def listed(objects: str) -> list[str]:
    """The tools that a client sees of `a` to `f`."""
    proxy = BothPlanes(objects)
    tools = [{"name": name, "inputSchema": {}} for name in "abcdef"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "tools": tools}}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    proxy.answers["10.0.0.1:9001"] = head + body
    lines = [f"accept: {BOTH}", "content-type: application/json"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    _, headers, _ = proxy.response("/mcp", *lines, method="POST", body=json.dumps(message))
    lines.append(f"mcp-session-id: {headers['mcp-session-id']}")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, found = proxy.ask("/mcp", *lines, method="POST", body=json.dumps(message))
    assert status == 200
    return [tool["name"] for tool in json.loads(found)["result"]["tools"]]


def test_rules_of_every_policy_and_level_add_up() -> None:
    own = "policies: {mcp: {authorization: {action: Deny, policy: {matchExpressions: ['mcp.tool.name == \"e\"']}}}}"
    objects = OBJECTS.replace("OWN", own).replace("TARGET", SERVICE)
    denies = {
        "a": ("gateway", PLACES[0]),
        "b": ("route", PLACES[1]),
        "c": ("backend", PLACES[2]),
        "d": ("another", PLACES[2]),
    }
    assert listed(objects) == list("abcdf")
    for tool, (name, target) in denies.items():
        objects += rule(name, target, "Deny", f'mcp.tool.name == "{tool}"')
    assert listed(objects) == ["f"], "two policies of one object included"
    allowed = rule("low", PLACES[0], "Allow", 'mcp.tool.name == "f"') + rule(
        "high", PLACES[2], "Allow", 'mcp.tool.name == "a"'
    )
    assert listed(OBJECTS.replace("OWN", "").replace("TARGET", SERVICE) + allowed) == ["a", "f"], "any Allow allows"
    assert listed(objects + allowed) == ["f"], "and any Deny denies"
    required = rule("must", PLACES[1], "Require", 'mcp.tool.name != "f"')
    assert listed(objects + required) == []
