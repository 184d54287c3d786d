"""Each field by which an object can name something in another namespace: without a ReferenceGrant it leads nowhere, and
nothing of the other namespace is sent to proxies; with one it is."""

from __future__ import annotations

import pytest

from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS, world

BASE = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra, generation: 1}
spec:
  gatewayClassName: gatewright
  allowedListeners: {namespaces: {from: All}}
  listeners:
    - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
    - {name: tcp, protocol: TCP, port: 81, allowedRoutes: {namespaces: {from: All}}}
    - {name: udp, protocol: UDP, port: 82, allowedRoutes: {namespaces: {from: All}}}
    - {name: tls, protocol: TLS, port: 83, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: vault}
spec: {ports: [{name: web, port: 80}, {name: udp, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: far-1, namespace: vault, labels: {kubernetes.io/service-name: far}}
addressType: IPv4
ports: [{name: web, port: 8080}, {name: udp, port: 8053, protocol: UDP}]
endpoints: [{addresses: [10.66.66.66]}]
---
apiVersion: v1
kind: Service
metadata: {name: near, namespace: tenant}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: far, namespace: vault}
spec: {static: {host: secret.internal, port: 80}}
---
"""
FAR, NEAR = "{name: far, namespace: vault, port: 80}", "{name: near, port: 80}"
FAR_BACKEND = "{group: gatewright.dev, kind: GatewayBackend, name: far, namespace: vault}"
MIRROR = f"filters: [{{type: RequestMirror, requestMirror: {{backendRef: {FAR}}}}}]"
AUTH = f"filters: [{{type: ExternalAuth, externalAuth: {{protocol: GRPC, grpc: {{}}, backendRef: {FAR}}}}}]"
KEYS = f"providers: [{{issuer: 'https://a.example', jwks: {{remote: {{jwksPath: /keys, backendRef: {FAR}}}}}}}]"


def route(rule: str, kind: str = "HTTPRoute", listener: str = "http", more: str = "") -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata: {{name: r, namespace: tenant, generation: 1}}
spec:
  parentRefs: [{{name: gw, namespace: infra, sectionName: {listener}}}]
  {more}
  rules: [{{{rule}}}]
---
"""


def policy(traffic: str) -> str:
    """Of a route that leads to a Service of its own namespace."""
    return f"""{route(f"backendRefs: [{NEAR}]")}
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: p, namespace: tenant, generation: 1}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}}]
  traffic: {{{traffic}}}
---
"""


CASES = {
    "route, Service": route(f"backendRefs: [{FAR}]"),
    "route, GatewayBackend": route(f"backendRefs: [{FAR_BACKEND}]"),
    "gRPC route": route(f"backendRefs: [{FAR}]", "GRPCRoute"),
    "TCP route": route(f"backendRefs: [{FAR}]", "TCPRoute", "tcp"),
    "UDP route": route("backendRefs: [{name: far, namespace: vault, port: 53}]", "UDPRoute", "udp"),
    "TLS route": route(f"backendRefs: [{FAR}]", "TLSRoute", "tls", "hostnames: [a.example]"),
    "mirror": route(f"{MIRROR}, backendRefs: [{NEAR}]"),
    "mirror of gRPC": route(f"{MIRROR}, backendRefs: [{NEAR}]", "GRPCRoute"),
    "mirror of one backend": route(f"backendRefs: [{{name: near, port: 80, {MIRROR}}}]"),
    "external authorization": route(f"{AUTH}, backendRefs: [{NEAR}]"),
    "extAuth": policy(f"extAuth: {{http: {{}}, backendRef: {FAR}}}"),
    "extProc": policy(f"extProc: {{backendRef: {FAR}}}"),
    "keys of tokens": policy(f"jwtAuthentication: {{{KEYS}}}"),
}
NOT_YET = {"mirror of one backend"}
"""Settings that do not act yet are refused whatever they name."""

GRANT = """
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: g, namespace: vault}
spec:
  from:
    - {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: tenant}
    - {group: gateway.networking.k8s.io, kind: GRPCRoute, namespace: tenant}
    - {group: gateway.networking.k8s.io, kind: TCPRoute, namespace: tenant}
    - {group: gateway.networking.k8s.io, kind: UDPRoute, namespace: tenant}
    - {group: gateway.networking.k8s.io, kind: TLSRoute, namespace: tenant}
    - {group: gatewright.dev, kind: GatewayPolicy, namespace: tenant}
  to: [{group: "", kind: Service}, {group: gatewright.dev, kind: GatewayBackend}]
---
"""


def sent_of_vault(made: World) -> set[str]:
    """Resources of the other namespace, and its addresses wherever they are."""
    present = made.program.resources.present().items()
    named = {key.name for key, _ in present if "vault" in key.name}
    return named | {
        key.name for key, each in present if b"10.66.66.66" in each.content or b"secret.int" in each.content
    }


@pytest.mark.parametrize("case", CASES)
def test_nothing_of_another_namespace_is_sent_without_its_grant(case: str) -> None:
    made = world(CLASS, BASE, CASES[case])
    assert sent_of_vault(made) == set()
    said = str([status for key, status in made.program.statuses().items() if key[1] == "tenant"])
    assert case in NOT_YET or "RefNotPermitted" in said, said
    made.put(GRANT)
    assert bool(sent_of_vault(made)) is (case not in NOT_YET)
    assert "RefNotPermitted" not in str(made.program.statuses())


def test_that_something_is_there_is_not_told_without_a_grant() -> None:
    """The same words, whether it is or not."""
    there = world(CLASS, BASE, CASES["route, Service"])
    absent = world(CLASS, BASE.replace("name: far", "name: other"), CASES["route, Service"])
    said = [each.program.status("HTTPRoute", "tenant", "r") for each in (there, absent)]
    assert said[0] is not None
    assert said[0] == said[1]


def test_a_grant_for_somebody_else_is_none() -> None:
    grant = GRANT.replace("namespace: tenant", "namespace: other")
    for case in CASES.values():
        assert sent_of_vault(world(CLASS, BASE, grant, case)) == set()


def test_a_grant_that_is_written_by_who_asks_is_none() -> None:
    made = world(CLASS, BASE, GRANT.replace("{name: g, namespace: vault}", "{name: g, namespace: tenant}"))
    made.put(CASES["route, Service"])
    assert sent_of_vault(made) == set()
