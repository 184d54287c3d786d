"""TLSRoutes, TCPRoutes and UDPRoutes on the wire, as proxies will get them that serve such listeners."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.translate.gateway import listeners
from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS, world

GATEWAY = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gatewright
  listeners:
    - {name: tls, protocol: TLS, port: 443, hostname: "*.example.com", tls: {mode: Passthrough}}
    - {name: tcp, protocol: TCP, port: 9000}
    - {name: udp, protocol: UDP, port: 53}
"""
SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{name: t, port: 53, appProtocol: example.com/own}, {name: u, port: 53, protocol: UDP}]}
"""
ENDPOINTS = """
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
ports: [{name: t, port: 1053}, {name: u, port: 2053, protocol: UDP}]
endpoints: [{addresses: [10.0.0.1]}]
"""
POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: %s, name: r, sectionName: one}]
  backend: {http: {version: HTTP1}}
"""


def route(kind: str, section: str, more: str = "", name: str = "r", meta: str = "") -> str:
    return f"""
---
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: {name}{meta}}}
spec:
  parentRefs: [{{name: gw, sectionName: {section}}}]
  rules: [{{name: one, backendRefs: [{{name: s, port: 53, weight: 2}}, {{name: none, port: 1}}]}}]
{more}
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "SERVED_PROTOCOLS", frozenset({"HTTP", "TLS", "TCP", "UDP"}))
    monkeypatch.setattr(listeners, "_fields", lambda paths: None)  # `tls` is honoured then


def sent(made: World, kind: str) -> dict[str, Any]:
    message: dict[str, Any] = made.messages("default/gw")[f"route/{kind.lower()}/default/r/0"]
    return message


KINDS = [
    ("TLSRoute", "tls", "tcp_route", "backend/service/default/s/53"),
    ("TCPRoute", "tcp", "tcp_route", "backend/service/default/s/53"),
    ("UDPRoute", "udp", "udp_route", "backend/service/default/s/53-udp"),
]
HOSTS = "  hostnames: [b.example.com, a.example.com]"


@pytest.mark.parametrize(("kind", "section", "field", "backend"), KINDS)
@pytest.mark.usefixtures("served")
def test_a_rule_is_one_message(kind: str, section: str, field: str, backend: str) -> None:
    made = world(CLASS, GATEWAY, SERVICE, ENDPOINTS, route(kind, section, HOSTS if kind == "TLSRoute" else ""))
    expected: dict[str, Any] = {
        "source": {"kind": kind, "namespace": "default", "name": "r"},
        "parents": [{"object": {"kind": "Gateway", "namespace": "default", "name": "gw"}, "section": section}],
        "backends": [
            {"weight": 2, "backend": backend},
            {"weight": 1, "invalid": {"reason": "BackendNotFound: Service default/none does not exist"}},
        ],
        "order": " default/r",
        "rule": "one",
    }
    if kind == "TLSRoute":
        expected["hostnames"] = ["a.example.com", "b.example.com"]
    assert sent(made, kind) == {field: expected}
    assert made.conditions(kind, "r", entry=0)[0] == "Accepted=True Accepted (0)"


@pytest.mark.parametrize(("kind", "section", "field", "backend"), KINDS)
@pytest.mark.usefixtures("served")
def test_backends_of_both_transports_share_a_number(kind: str, section: str, field: str, backend: str) -> None:
    made = world(CLASS, GATEWAY, SERVICE, ENDPOINTS, route(kind, section, HOSTS if kind == "TLSRoute" else ""))
    messages = made.messages("default/gw")
    port = 2053 if kind == "UDPRoute" else 1053
    part = backend.rpartition("/")[2]
    assert [name for name in messages if name.startswith("backend/")] == [backend]
    assert messages[backend]["backend"]["service"].get("udp", False) is (kind == "UDPRoute")
    assert messages[f"default/s/{part}/10.0.0.1:{port}"] == {"backend": backend, "address": "10.0.0.1", "port": port}
    assert not [name for name in messages if name.endswith(f":{3106 - port}")]


@pytest.mark.parametrize(("kind", "section", "field", "backend"), KINDS)
@pytest.mark.usefixtures("served")
def test_backend_policies_have_their_places(kind: str, section: str, field: str, backend: str) -> None:
    more = HOSTS if kind == "TLSRoute" else ""
    made = world(CLASS, GATEWAY, SERVICE, ENDPOINTS, route(kind, section, more), POLICY % kind)
    (place,) = made.messages("default/gw")["policy/default/p/backend_http"]["policy"]["places"]
    assert place == {"object": {"kind": kind, "namespace": "default", "name": "r"}, "section": "one"}
    assert made.conditions("GatewayPolicy", "p")[:2] == ["Accepted=True Accepted (0)", "Attached=True Attached (0)"]


@pytest.mark.usefixtures("served")
def test_the_oldest_of_a_listener_comes_first_and_all_are_counted() -> None:
    older = ", creationTimestamp: '2020-01-01T00:00:00Z'"
    newer = older.replace("2020", "2021")
    made = world(
        CLASS, GATEWAY, SERVICE, route("TCPRoute", "tcp", name="a", meta=newer), route("TCPRoute", "tcp", meta=older)
    )
    orders = {
        name: found["tcp_route"]["order"] for name, found in made.messages("default/gw").items() if "route/" in name
    }
    assert min(orders, key=lambda name: orders[name]) == "route/tcproute/default/r/0"
    assert [made.conditions("TCPRoute", name, entry=0)[0] for name in ("a", "r")] == ["Accepted=True Accepted (0)"] * 2
    status: Any = made.program.status("Gateway", "default", "gw")
    assert [each["attachedRoutes"] for each in status["listeners"]] == [0, 2, 0]


@pytest.mark.parametrize("kind", ["TLSRoute", "TCPRoute", "UDPRoute"])
def test_default_gateways_are_refused_by_name(kind: str) -> None:
    more = "  useDefaultGateways: All\n" + (HOSTS if kind == "TLSRoute" else "")
    made = world(CLASS, GATEWAY, SERVICE, route(kind, kind[:3].lower(), more))
    assert made.conditions(kind, "r", entry=0)[0] == (
        "Accepted=False UnsupportedValue (0): not supported: spec.useDefaultGateways (experimental; "
        "routes name their Gateways, so that none is served by accident)"
    )
