"""`frontend.networkAuthorization` from the standalone file and from GatewayPolicies to who may connect."""

from __future__ import annotations

import logging

import pytest

from dataplane.http.messages import Peer
from dataplane.net.proxy_header import V2
from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.wire.v1 import resource_pb2
from tests.fakes.both_planes import BothPlanes
from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, secure
from tests.fakes.web_objects import OBJECTS, route

FILE = """
frontendPolicies:
  networkAuthorization: {rule}
{more}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: shop.example
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""

OFFICE = ("198.51.100.7", 4711)
OTHER = ("203.0.113.9", 4711)
IN_OFFICE = 'cidr("198.51.100.0/24").containsIP(source.address)'
REQUEST = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"


def rule(expression: str = IN_OFFICE, action: str = "Allow") -> str:
    return f"{{action: {action}, policy: {{matchExpressions: ['{expression}']}}}}"


def memory(policy: str, more: str = "") -> MemoryProxy:
    return Http1Endpoints(FILE.format(rule=policy, more=more))


def refusals(proxy: MemoryProxy) -> dict[str, int]:
    name = "connections_refused_total"
    return {each.labels[0]: values[0] for each, values in proxy.metrics.series() if each.metric.name == name}


@pytest.mark.parametrize(
    ("action", "open_to"),
    [("Allow", OFFICE), ("Require", OFFICE), ("Deny", OTHER)],
)
def test_actions(action: str, open_to: tuple[str, int]) -> None:
    proxy = memory(rule(action=action))
    for peer in (OFFICE, OTHER):
        client = proxy.connect(peer)
        assert client.open == (peer == open_to)
        assert client.received == b""
        if client.open:
            client.send(REQUEST)
            assert proxy.connector.upstream.received.startswith(b"GET / ")
    assert refusals(proxy) == {"NetworkAuthorizationDenied": 1}


def test_it_is_decided_before_a_byte_is_read(caplog: pytest.LogCaptureFixture) -> None:
    proxy = memory(rule())
    with caplog.at_level(logging.WARNING, logger="dataplane.server"):
        for _ in range(5):
            assert not proxy.connect(OTHER).open
        proxy.advance(1.1)
        assert not proxy.connect(OTHER).open
    first, second = [each.getMessage() for each in caplog.records]
    assert first == (
        "connections refused (NetworkAuthorizationDenied): 1 since it was last reported; the last one is of"
        " 203.0.113.9: no Allow rule matches: Gateway default/standalone networkAuthorization"
    )
    assert ": 5 since it was last reported;" in second
    assert proxy.lines == [] and len(proxy.context.connections) == 0


@pytest.mark.parametrize("action", ["Allow", "Require"])
def test_one_that_fails_does_not_match(action: str) -> None:
    assert not memory(rule('source.subject == "CN=a"', action)).connect(OFFICE).open


def test_a_deny_that_fails_does_not_deny() -> None:
    assert memory(rule('source.subject == "CN=a"', "Deny")).connect(OFFICE).open


def test_a_listener_with_tls() -> None:
    proxy = SecureProxy(FILE.format(rule=rule(), more=""), {"http": secure(Authority().issue("shop.example"))})
    assert proxy.connect(OFFICE).open
    client = proxy.connect(OTHER)
    assert not client.open and client.received == b""
    assert proxy.counted("tls_handshakes_total") == {}


@pytest.mark.parametrize(
    ("action", "expression"), [("Allow", IN_OFFICE), ("Require", IN_OFFICE), ("Deny", f"!{IN_OFFICE}")]
)
@pytest.mark.parametrize("protocol", ["TCP", "TLS"])
def test_listeners_whose_bytes_pass_as_they_are(protocol: str, action: str, expression: str) -> None:
    tls = ", tls: {mode: Passthrough}" if protocol == "TLS" else ""
    listener = f'{{name: raw, protocol: {protocol}{tls}, tcpRoutes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]}}'
    text = FILE.format(rule=rule(expression, action), more="").partition("  - name: http")[0] + f"  - {listener}\n"
    proxy = Http1Endpoints(text)
    assert proxy.connect(OFFICE).open
    before = len(proxy.connector.dialled)
    client = proxy.connect(OTHER)
    assert not client.open and client.received == b"" and len(proxy.connector.dialled) == before
    assert refusals(proxy) == {"NetworkAuthorizationDenied": 1}


def test_with_a_proxy_header_the_client_is_who_it_says() -> None:
    proxy = memory(rule(), "  proxyProtocol: {version: V1}")
    for address, is_open in ((OFFICE[0], True), (OTHER[0], False)):
        client = proxy.connect(("192.0.2.7", 1))
        assert client.open
        client.send(f"PROXY TCP4 {address} 10.0.0.1 1 80\r\n".encode())
        assert client.open == is_open
    proxy = memory(rule('source.rawAddress == "192.0.2.7"'), "  proxyProtocol: {version: V1}")
    client = proxy.connect(("192.0.2.7", 1))
    client.send(b"PROXY TCP4 203.0.113.9 10.0.0.1 1 80\r\n")
    assert client.open


def test_local_headers_are_of_who_connects() -> None:
    proxy = memory(rule(), "  proxyProtocol: {}")
    client = proxy.connect(OTHER)
    client.send(V2 + b"\x20\x00\x00\x00")
    assert not client.open


def test_who_is_refused_takes_nobodys_place() -> None:
    proxy = memory(rule(), "  limits: {maxConnections: 1}")
    kept = proxy.connect(OFFICE)
    assert not proxy.connect(OTHER).open
    assert kept.open
    proxy.connect(OFFICE)
    assert not kept.open  # who may connect does


def test_connections_that_stand_stay() -> None:
    proxy = memory(rule(action="Deny"))
    client = proxy.connect(OTHER)
    proxy.load(FILE.format(rule=rule(), more=""))
    assert client.open and not proxy.connect(OTHER).open


# --- several policies


POLICY = """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: web}}]
  frontend: {{networkAuthorization: {rule}}}
"""


def objects(*policies: str) -> str:
    more = [POLICY.format(name=f"p{number}", rule=each) for number, each in enumerate(policies)]
    return OBJECTS.format(port=8080, upstream=9000) + route("all", "/") + "".join(more)


def is_open(proxy: MemoryProxy, address: str) -> bool:
    client: FakeTransport = proxy.connect((address, 1))
    return client.open


def address_is(address: str) -> str:
    return f'source.address == "{address}"'


RULES = (
    rule(address_is("198.51.100.1")),
    rule(address_is("198.51.100.2")),
    rule(address_is("198.51.100.3")),
    rule(address_is("198.51.100.3"), "Deny"),
    rule(IN_OFFICE, "Require"),
)


def test_rules_of_several_policies_add_up_and_never_conflict() -> None:
    proxy = BothPlanes(objects(*RULES))
    allowed = [each for each in range(6) if is_open(proxy, f"198.51.100.{each}")]
    assert allowed == [1, 2]
    for number in range(len(RULES)):
        conditions = proxy.world.conditions("GatewayPolicy", f"p{number}", entry=None)
        assert not [each for each in conditions if each.startswith("Conflicted")]
        assert [each for each in conditions if each.startswith("Accepted=True")]


def test_they_add_up_on_each_kind_of_listener() -> None:
    """As the gate of each port has it; who asks it: the tests above, and of UDP `unit/server/test_datagrams`."""
    listeners = (
        "[{name: raw, port: 9001, protocol: TCP}, {name: secure, port: 9002, protocol: TLS, tls: {mode: Passthrough}},"
        " {name: dns, port: 9003, protocol: UDP}]"
    )
    text = objects(*RULES).replace("listeners: [{name: http, protocol: HTTP, port: 8080}]", f"listeners: {listeners}")
    binds = BothPlanes(text).applier.current.table.binds
    assert sorted(bind.port for bind in binds.values()) == [9001, 9002, 9003]
    for bind in binds.values():
        assert bind.network is not None
        allowed = [each for each in range(6) if not bind.network.refuses(Peer(f"198.51.100.{each}"))]
        assert allowed == [1, 2]


def test_one_more_policy_arrives_and_goes() -> None:
    proxy = BothPlanes(objects(rule(address_is("198.51.100.1"))))
    assert not is_open(proxy, "198.51.100.2")
    proxy.load(POLICY.format(name="p1", rule=rule(address_is("198.51.100.2"))))
    assert is_open(proxy, "198.51.100.2") and is_open(proxy, "198.51.100.1")
    proxy.remove("GatewayPolicy", "p0")
    assert is_open(proxy, "198.51.100.2") and not is_open(proxy, "198.51.100.1")
    proxy.remove("GatewayPolicy", "p1")
    assert is_open(proxy, "203.0.113.9")


@pytest.mark.parametrize(
    "frontend",
    [
        "{networkAuthorization: {policy: {matchExpressions: ['source.addres == 1']}}}",
        "{networkAuthorisation: {policy: {matchExpressions: ['true']}}}",
        "{networkAuthorization: 7}",
    ],
)
def test_one_that_is_not_valid_refuses_everybody(frontend: str) -> None:
    """From the first reading on: nobody remembers a good version."""
    proxy = BothPlanes("")
    text = POLICY.format(name="p0", rule="RULE").replace("{networkAuthorization: RULE}", frontend)
    proxy.save(objects() + text)
    assert not is_open(proxy, "198.51.100.1")
    proxy.save(objects())
    assert is_open(proxy, "198.51.100.1")


def test_one_that_a_proxy_cannot_build_refuses_everybody() -> None:
    proxy = memory(rule())
    (key,) = [each for each in proxy.applier.store.policies if each.endswith("/network_authorization")]
    resource = resource_pb2.Resource.FromString(proxy.applier.store.policies[key].raw)
    resource.policy.network_authorization.policy.match_expressions[0] = "source.later == 1"
    for _ in proxy.applier.apply([Change(RESOURCE_TYPE, key, resource.SerializeToString())]):
        pass
    assert 'no field "later"' in proxy.applier.outcome.refused[key]
    assert not is_open(proxy, OFFICE[0])
    assert refusals(proxy) == {"NetworkAuthorizationDenied": 1}
