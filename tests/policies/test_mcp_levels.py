"""Where policies for connecting to the servers of an MCP backend attach, and which wins: Gateway, route, the
GatewayBackend that a policy names, the Service of a target, the GatewayBackend's own, a target's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.fakes.mcp_toys import BOTH, HELLO
from tests.policies.test_backend_levels import Seen, settings

OBJECTS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
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


def asked(kind: str, levels: list[int]) -> tuple[str, float | None, float | None]:
    """Server name, time for an answer and time of an eviction, with which the server is asked."""
    proxy = BothPlanes(text(kind, levels))
    plans: list[Any] = []
    leases = proxy.context.leases
    leases.backends = {name: Seen(row, plans) for name, row in leases.backends.items()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    proxy.ask("/mcp", f"accept: {BOTH}", "content-type: application/json", method="POST", body=json.dumps(message))
    plan = next(each for each in plans if each.mcp is None)
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
