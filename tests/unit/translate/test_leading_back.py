"""Routes of connections that lead back to their Gateway: by which names, through whom, and what does not count."""

from __future__ import annotations

import pytest

from controlplane.deploy.request import Defaults
from controlplane.translate.gateway.wanted import Outcome, Provisioner
from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS

GATEWAY = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gatewright
  listeners:
    - {name: db, protocol: TCP, port: 5432}
    - {name: names, protocol: UDP, port: 5432}
    - {name: next, protocol: TCP, port: 5433}
    - {name: tls, protocol: TLS, port: 443, hostname: "*.example", tls: {mode: Passthrough}}
"""
BACKEND = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: %s}
spec: {static: {host: "%s", port: %d}}
"""
SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {ports: [{name: t, port: 5432}, {name: u, port: 5432, protocol: UDP}]}
"""
ENDPOINTS = """
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: t, port: 5432}, {name: u, port: 5432, protocol: UDP}]
endpoints: [{addresses: [%s]}]
"""
OUTSIDE = "{group: gatewright.dev, kind: GatewayBackend, name: %s}"


def route(kind: str, section: str, references: str, name: str = "r", more: str = "", meta: str = "") -> str:
    rule = f"{{backendRefs: [{references}]}}"
    return (
        f"\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}{meta}}}\n"
        f"spec: {{parentRefs: [{{name: gw, sectionName: {section}}}], rules: [{rule}]{more}}}\n"
    )


def world(*texts: str) -> World:
    made = World()
    made.put("".join((CLASS, GATEWAY, *texts)))
    return made


def backs(made: World, kind: str = "TCPRoute", name: str = "r") -> bool:
    """Whether the route is reported, at its references."""
    (said,) = [each for each in made.conditions(kind, name, entry=0) if each.startswith("ResolvedRefs")]
    assert "leads back to port" in said or said.startswith("ResolvedRefs=True"), said
    return said.startswith("ResolvedRefs=False BackendLeadsBack")


def provisioned(made: World, *addresses: tuple[str, str]) -> None:
    for _ in made.program.provision(Provisioner(Defaults("1"), "PEM")):
        pass
    for _ in made.program.outcomes({"default/gw": Outcome(addresses)}):
        pass


@pytest.mark.parametrize(
    ("host", "alone", "in_a_cluster"),
    [
        ("127.0.0.1", True, True),
        ("127.7.7.7", True, True),
        ("LOCALHOST", True, True),
        ("::ffff:127.0.0.1", True, True),
        ("gw.default.svc", False, True),
        ("gw.default.svc.cluster.local", False, True),
        ("GW.default", False, True),
        ("gw.other.svc", False, False),
        ("192.0.2.7", False, True),
        ("lb.example", False, True),
        ("192.0.2.8", False, False),
    ],
)
def test_a_host_is_the_gateway_itself(host: str, alone: bool, in_a_cluster: bool) -> None:
    made = world(BACKEND % ("b", host, 5432), route("TCPRoute", "db", OUTSIDE % "b"))
    assert backs(made) is alone
    provisioned(made, ("IPAddress", "192.0.2.7"), ("Hostname", "LB.example"))
    assert backs(made) is in_a_cluster


def test_what_leads_back_follows_what_is_written() -> None:
    """It goes with the address, the route and the listener that it comes of."""
    made = world(BACKEND % ("b", "192.0.2.7", 5432), route("TCPRoute", "db", OUTSIDE % "b"))
    provisioned(made, ("IPAddress", "192.0.2.7"))
    assert backs(made)
    provisioned(made)
    assert not backs(made)
    made.put(BACKEND % ("b", "::1", 5432))
    assert backs(made)
    unused = OUTSIDE.replace("name: %s", "name: b, weight: 0")
    made.put(route("TCPRoute", "db", f"{unused}, {{name: s, port: 5432}}") + SERVICE % "s")
    assert not backs(made), "nothing goes where the weight is 0"


def test_the_service_of_the_gateway_leads_back() -> None:
    texts = [SERVICE % "gw", route("TCPRoute", "db", "{name: gw, port: 5432}")]
    made = world(*texts, route("UDPRoute", "names", "{name: gw, port: 5432}"))
    assert not backs(made) and not backs(made, "UDPRoute"), "a Service of that name that nobody made is somebody's"
    provisioned(made)
    assert backs(made) and backs(made, "UDPRoute")


@pytest.mark.parametrize(("address", "expected"), [("127.0.0.1", True), ("10.0.0.1", False)])
def test_endpoints_of_a_service_may_lead_back(address: str, expected: bool) -> None:
    """In a folder: an API server takes no such address."""
    made = world(
        SERVICE % "s",
        ENDPOINTS % ("s", "s", address),
        route("TCPRoute", "db", "{name: s, port: 5432}"),
        route("UDPRoute", "names", "{name: s, port: 5432}"),
    )
    assert (backs(made), backs(made, "UDPRoute")) == (expected, expected)


def test_a_circle_is_closed_and_opened_by_another_route() -> None:
    texts = (BACKEND % ("to-next", "::1", 5433), BACKEND % ("to-first", "::1", 5432))
    made = world(*texts, route("TCPRoute", "db", OUTSIDE % "to-next"))
    assert not backs(made)
    second = route("TCPRoute", "next", OUTSIDE % "to-first", name="second")
    made.put(second)
    assert backs(made) and backs(made, name="second")
    # an older route has the connections of that listener
    older = "creationTimestamp: '20{}-01-01T00:00:00Z'"
    made.put(route("TCPRoute", "next", OUTSIDE % "to-first", name="second", meta=f", {older.format(26)}"))
    made.put(route("TCPRoute", "next", OUTSIDE % "away", name="older", meta=f", {older.format(25)}"))
    made.put(BACKEND % ("away", "db.example", 5432))
    assert not backs(made) and not backs(made, name="second")


@pytest.mark.parametrize(("hostname", "expected"), [("a.example", True), ("b.example", False)])
def test_connections_of_tls_are_followed_by_name(hostname: str, expected: bool) -> None:
    made = world(
        BACKEND % ("b", "::1", 443),
        BACKEND % ("away", "db.example", 443),
        route("TLSRoute", "tls", OUTSIDE % "b", more=f", hostnames: [{hostname}]"),
        route("TLSRoute", "tls", OUTSIDE % "away", name="other", more=", hostnames: [b.example]"),
    )
    assert backs(made, "TLSRoute") is expected
    assert not backs(made, "TLSRoute", "other")


def test_a_listener_that_is_not_served_and_one_of_requests_end_the_way() -> None:
    made = world(BACKEND % ("b", "::1", 5432), route("TCPRoute", "db", OUTSIDE % "b"))
    made.put(GATEWAY.replace("protocol: TCP, port: 5432", "protocol: HTTP, port: 5432"))
    (accepted, *_) = made.conditions("TCPRoute", "r", entry=0)
    assert accepted.startswith("Accepted=False NotAllowedByListeners") and not backs(made)
