"""TLS toward a backend: from the wire to how handshakes are made, who wins, and what cannot be honoured.

Handshakes themselves: `tests/loopback/test_tls_to_backends.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.table.store import Change
from dataplane.tls import server_names
from dataplane.upstream.settings import Http, Settings, Tcp, Tls
from dataplane.upstream.versions import EITHER, HTTP1, HTTP2, offered
from gatewright.wire.v1 import backend_pb2, backend_policy_pb2, policy_pb2, resource_pb2, tls_pb2
from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import problems, text_of
from tests.fakes.table_state import SERVICE, TableRun, change, gone

AUTHORITY = Authority()
OWN, OTHER = AUTHORITY.issue("gateway.example", client=True), AUTHORITY.issue("other.example", client=True)
KEY = "secret/default/client"
FAR = "backend/gatewaybackend/default/far"


def secret(**data: bytes) -> Change:
    resource = resource_pb2.Resource(key=KEY)
    resource.secret.namespace, resource.secret.name = "default", "client"
    for name, value in data.items():
        resource.secret.data[name.replace("_", ".")] = value
    return change(resource)


def pair(issued: Any = OWN) -> Change:
    return secret(tls_crt=issued.chain, tls_key=issued.key)


def port(app_protocol: str = "") -> Change:
    made = backend_pb2.ServiceBackend(
        namespace="default", name="shop", port=80, app_protocol=app_protocol, port_name="web", empty=True
    )
    return change(resource_pb2.Resource(key=SERVICE, backend=backend_pb2.Backend(service=made)))


def policy(kind: str = "Service", name: str = "shop", invalid: str = "", **tls: Any) -> Change:
    made = policy_pb2.Policy(order=" default/p", invalid=invalid, backend_tls=backend_policy_pb2.BackendTls(**tls))
    made.source.CopyFrom(policy_pb2.ObjectRef(kind="GatewayPolicy", namespace="default", name="p"))
    made.places.add(object=policy_pb2.ObjectRef(kind=kind, namespace="default", name=name))
    return change(resource_pb2.Resource(key="policy/default/p/backend_tls", policy=made))


def far(host: str = "Far.Example", port: int = 0, unix_path: str = "", **tls: Any) -> Change:
    made = backend_pb2.Backend(static=backend_pb2.StaticBackend(host=host, port=port, unix_path=unix_path))
    made.policies.add(backend_tls=backend_policy_pb2.BackendTls(**tls))
    return change(resource_pb2.Resource(key=FAR, backend=made))


def plan(table: TableRun, key: str = SERVICE) -> Any:
    return table.applier.current.table.backends[key]


# --- names


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a.example", "a.example", True),
        ("A.Example.", "a.example", True),
        ("a.example", "b.a.example", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", False),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("*.com", "a.com", False),
        ("*", "a", False),
        ("a*.example.com", "ab.example.com", False),
        ("*.*.example.com", "a.b.example.com", False),
        ("", "", False),
    ],
)
def test_dns_names(pattern: str, name: str, expected: bool) -> None:
    assert server_names.is_dns_name(pattern, name) is expected


CERTIFICATE = AUTHORITY.issue("a.example", "192.0.2.1", "2001:db8::1", uris=("spiffe://td/ns",)).certificate


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.example", True),
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("2001:db8:0::1", True),
        ("[2001:db8::1]", True),
        ("spiffe://td/ns", True),
        ("spiffe://td/n", False),
        ("urn:a", False),
        ("", False),
    ],
)
def test_names_of_a_certificate(name: str, expected: bool) -> None:
    assert server_names.matches(CERTIFICATE, [name]) is expected
    assert server_names.matches(CERTIFICATE, ["x.example", name]) is expected


def test_a_certificate_without_names() -> None:
    assert not server_names.matches(AUTHORITY.issue(common_name="a.example").certificate, ["a.example"])


# --- what is built


def test_the_defaults() -> None:
    table = TableRun()
    table.apply(port(), policy())
    made = plan(table).transport
    host = "shop.default.svc.cluster.local"
    assert (made.server_name, made.names, made.tls.alpn) == (host, (host,), ("h2", "http/1.1"))
    assert plan(table).authority == b"shop.default.svc.cluster.local:80"


def test_everything() -> None:
    table = TableRun()
    table.apply(
        pair(),
        port(),
        policy(
            certificate=KEY,
            authorities=[AUTHORITY.pem.decode()],
            sni="a.example",
            verify_subject_alt_names=["spiffe://td/ns"],
            alpn_protocols=["http/1.1"],
            key_exchange_groups=[tls_pb2.KEY_EXCHANGE_GROUP_P_256, tls_pb2.KEY_EXCHANGE_GROUP_X25519],
        ),
    )
    made = plan(table).transport
    assert (made.server_name, made.names, made.tls.alpn) == ("a.example", ("spiffe://td/ns",), ("http/1.1",))
    assert "BEGIN" not in repr(plan(table)), "a key is not for showing"


@pytest.mark.parametrize("skip", [backend_policy_pb2.SKIP_VERIFY_ALL, backend_policy_pb2.SKIP_VERIFY_HOSTNAME])
def test_no_names_are_verified(skip: backend_policy_pb2.SkipVerify) -> None:
    table = TableRun()
    table.apply(port(), policy(insecure_skip_verify=skip))
    assert plan(table).transport.names == ()


def test_equal_settings_share_their_connections_over_swaps() -> None:
    table = TableRun()
    table.apply(port(), policy(authorities=[AUTHORITY.pem.decode()]))
    before = plan(table).transport
    table.apply(port("http"), policy(authorities=[AUTHORITY.pem.decode()]))
    assert plan(table).transport == before and hash(plan(table).transport) == hash(before)
    table.apply(policy(authorities=[Authority().pem.decode()]))
    assert plan(table).transport != before


@pytest.mark.parametrize(
    ("changes", "authority", "where"),
    [
        ([far()], b"far.example", 443),
        ([far(port=443)], b"far.example", 443),
        ([far(port=80)], b"far.example:80", 80),
    ],
)
def test_the_port_of_a_host_without_one(changes: list[Change], authority: bytes, where: int) -> None:
    table = TableRun()
    table.apply(*changes)
    assert (plan(table, FAR).authority, plan(table, FAR).port) == (authority, where)


def test_the_port_of_an_address_without_one() -> None:
    table = TableRun()
    made = backend_pb2.Backend(static=backend_pb2.StaticBackend(host="192.0.2.7"))
    table.apply(change(resource_pb2.Resource(key=FAR, backend=made)))
    found = plan(table, FAR)
    assert [each.label for each in found.endpoints] == ["192.0.2.7:80"]
    tls = Settings(tls=Tls(object()))  # type: ignore[arg-type]  # no handshake is made
    assert [each.label for each in found.under(tls, 0).endpoints] == ["192.0.2.7:443"]
    table.apply(far("192.0.2.7"))
    assert [each.label for each in plan(table, FAR).endpoints] == ["192.0.2.7:443"]
    table.apply(gone(FAR))
    assert len(table.applier.carryover) == 0


def test_per_field_the_nearest_counts_as_a_whole() -> None:
    table = TableRun()
    table.apply(port(), policy(sni="a.example"))
    route = Settings(Http(HTTP1), Tcp(connect_timeout=1.0), Tls(object(), sni="b.example"))  # type: ignore[arg-type]
    made = plan(table).under(route, 0)
    assert (made.version, made.transport.tcp.connect_timeout) == (HTTP1, 1.0)
    assert made.transport.server_name == "a.example"


# --- what cannot be honoured refuses, and is never plain text

CLOSED = {
    "a Secret that is not there": ([port(), policy(certificate=KEY)], SERVICE, "is not known to this proxy"),
    "no certificate in it": ([secret(a=b"b"), port(), policy(certificate=KEY)], SERVICE, "has no entry tls.crt"),
    "a key of another certificate": (
        [secret(tls_crt=OWN.chain, tls_key=OTHER.key), port(), policy(certificate=KEY)], SERVICE, "key",
    ),
    "authorities that are none": ([port(), policy(authorities=["x"])], SERVICE, "is not in PEM form"),
    "what the control plane cannot honour": ([port(), policy(invalid="why")], SERVICE, "why"),
    "nothing to offer": (
        [port("kubernetes.io/h2c"), policy(alpn_protocols=["http/1.1"])], SERVICE, "leaves nothing to offer for HTTP/2",
    ),
    "nothing of HTTP": ([port(), policy(alpn_protocols=["acme-tls/1"])], SERVICE, "leaves nothing to offer for HTTP"),
    "a socket without a name": ([far("", unix_path="/run/a")], FAR, "a Unix socket has no name"),
    "a group of tomorrow": ([port(), policy(key_exchange_groups=[99])], SERVICE, "does not know"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "why"), CLOSED.values(), ids=CLOSED)
def test_what_cannot_be_honoured(changes: list[Change], key: str, why: str) -> None:
    table = TableRun()
    table.apply(*changes)
    assert plan(table, key).kind == "refused" and why in plan(table, key).refused


def test_a_certificate_that_comes_later_and_changes() -> None:
    table = TableRun()
    table.apply(port(), policy(certificate=KEY))
    assert plan(table).kind == "refused" and "policy/default/p/backend_tls" in table.refused
    table.apply(pair())
    first = plan(table).transport
    assert plan(table).kind == "service" and table.refused == {}
    table.apply(pair(OTHER))
    assert plan(table).transport != first
    table.apply(Change(change(resource_pb2.Resource(key=KEY)).type_url, KEY, None))
    assert plan(table).kind == "refused"


def test_the_same_of_a_backend_s_own() -> None:
    table = TableRun()
    table.apply(pair(), far(certificate=KEY))
    first = plan(table, FAR).transport
    table.apply(pair(OTHER))
    assert plan(table, FAR).transport not in (None, first)


def test_a_gateway_s_policy_that_cannot_be_honoured_closes_what_it_covers_alone() -> None:
    route = "policies: {tls: {verifySubjectAltNames: [a], alpnProtocols: [x]}}\nbackends: [{host: '127.0.0.1:9000'}]"
    proxy = MemoryProxy(text_of(route))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 500 ") and not proxy.connector.upstreams


# --- which version is offered


class Asked:
    def __init__(
        self, version: bytes = b"HTTP/1.1", scheme: bytes = b"http", grpc: bool = False, to: bytes = b""
    ) -> None:
        self.version, self.scheme, self.is_grpc, self.upgrade = version, scheme, grpc, to
        self.length = -1 if grpc else 0


BOTH = (HTTP2, HTTP1)


@pytest.mark.parametrize(
    ("asked", "allowed", "version"),
    [
        (Asked(), BOTH, HTTP1),
        (Asked(scheme=b"https"), BOTH, HTTP1),
        (Asked(b"HTTP/2", b"https"), BOTH, HTTP1),
        (Asked(b"HTTP/2"), BOTH, EITHER),
        (Asked(grpc=True), BOTH, HTTP2),
        (Asked(b"HTTP/2", b"https", grpc=True), BOTH, HTTP2),
        (Asked(b"HTTP/2", to=b"websocket"), BOTH, HTTP1),
        (Asked(), (HTTP2,), HTTP2),
        (Asked(b"HTTP/2"), (HTTP1,), HTTP1),
    ],
)
def test_what_is_offered(asked: Asked, allowed: tuple[int, ...], version: int) -> None:
    assert offered(asked, allowed) == version


# --- in the file


def test_mistakes_of_the_file() -> None:
    route = "policies: {tls: {insecureSkipVerify: All, verifySubjectAltNames: [a]}}\nbackends: [{host: 'a:1'}]"
    (message,) = problems(route)
    assert "must be absent when verifySubjectAltNames is set" in message
