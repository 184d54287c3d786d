"""Policies of `frontend` that a proxy cannot carry out (values of a newer language): they refuse what they cover,
instead of leaving it to defaults or to an older version of themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import policy_pb2, resource_pb2, tls_pb2
from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import Secure, SecureProxy, TlsClient, secure, secured

FILE = """
frontendPolicies: {frontend}
binds:
- port: 8080
  listeners:
  - name: http
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""
RAW = """
frontendPolicies: {frontend}
binds:
- port: 8080
  listeners:
  - {{name: raw, protocol: TCP, tcpRoutes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]}}
"""
GET = b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
CONNECT = b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NEWER = 99

Plants = Callable[[policy_pb2.Policy], None]


def resources(frontend: str, plant: Plants | None, text: str = FILE) -> list[resource_pb2.Resource]:
    """Of the file, with what `plant` makes of its policies."""
    loaded = standalone.load(text.format(frontend=frontend), "config.yaml")
    assert not loaded.problems, loaded.problems
    found = list(loaded.resources)
    for each in found:
        if plant is not None and each.HasField("policy"):
            planted = policy_pb2.Policy.FromString(each.policy.SerializeToString())
            plant(planted)
            if planted.WhichOneof("field") == each.policy.WhichOneof("field"):  # it is about this one
                each.policy.CopyFrom(planted)
    return found


def give(proxy: MemoryProxy, frontend: str, plant: Plants | None, text: str = FILE) -> dict[str, str]:
    """Make it the configuration; what the proxy refuses of it, by the last part of the keys."""
    changes = [Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in resources(frontend, plant, text)]
    for _ in proxy.applier.apply(changes):
        pass
    return {key.rpartition("/")[2]: why for key, why in proxy.applier.outcome.refused.items()}


def mode_of_header(policy: policy_pb2.Policy) -> None:
    policy.proxy_protocol.mode = NEWER  # type: ignore[assignment]  # a value that no enum here has


def version_of_header(policy: policy_pb2.Policy) -> None:
    policy.proxy_protocol.version = NEWER  # type: ignore[assignment]


def request_id(policy: policy_pb2.Policy) -> None:
    policy.frontend_http.request_id = NEWER  # type: ignore[assignment]


def trusted_hops(policy: policy_pb2.Policy) -> None:
    policy.frontend_http.trusted_hops.cidrs.append("no network")


def slashes(policy: policy_pb2.Policy) -> None:
    policy.frontend_http.path.escaped_slashes = NEWER  # type: ignore[assignment]


def way_of_connect(policy: policy_pb2.Policy) -> None:
    policy.connect.mode = NEWER  # type: ignore[assignment]


def suite(policy: policy_pb2.Policy) -> None:
    policy.frontend_tls.cipher_suites.append(NEWER)  # type: ignore[arg-type]


def group(policy: policy_pb2.Policy) -> None:
    policy.frontend_tls.key_exchange_groups.append(NEWER)  # type: ignore[arg-type]


def least_version(policy: policy_pb2.Policy) -> None:
    policy.frontend_tls.min_protocol_version = NEWER  # type: ignore[assignment]


def no_version(policy: policy_pb2.Policy) -> None:
    policy.frontend_tls.min_protocol_version = tls_pb2.TLS_VERSION_1_3
    policy.frontend_tls.max_protocol_version = tls_pb2.TLS_VERSION_1_2


def invalid(policy: policy_pb2.Policy) -> None:
    """As the control plane marks a policy that it did not accept."""
    policy.invalid = "a mistake"


def counted(proxy: MemoryProxy, metric: str) -> dict[str, int]:
    return {each.labels[0]: values[0] for each, values in proxy.metrics.series() if each.metric.name == metric}


@pytest.mark.parametrize("plant", [mode_of_header, version_of_header, invalid])
@pytest.mark.parametrize("before", ["{mode: Optional, version: All}", None])
def test_nobody_connects_by_a_proxy_header_that_is_not_understood(plant: Plants, before: str | None) -> None:
    proxy = Http1Endpoints(FILE.format(frontend=f"{{proxyProtocol: {before}}}" if before else "{}"))
    refused = give(proxy, "{proxyProtocol: {mode: Strict}}", plant)
    assert (refused == {}) == (plant is invalid)  # the control plane says that itself
    for first in (b"PROXY TCP4 203.0.113.5 198.51.100.1 4711 8080\r\n" + GET, GET, b""):
        client = proxy.connect()
        if client.open:
            client.send(first)
        assert not client.open and client.received == b""
    assert not proxy.connector.upstreams
    assert counted(proxy, "connections_refused_total") == {"PolicyUnusable": 3}
    assert give(proxy, "{proxyProtocol: {mode: Optional}}", None) == {}
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("plant", [request_id, trusted_hops, slashes, invalid])
@pytest.mark.parametrize("before", ["{requestId: Replace}", None])
def test_no_request_is_served_by_rules_of_http_that_are_not_understood(plant: Plants, before: str | None) -> None:
    proxy = Http1Endpoints(FILE.format(frontend=f"{{http: {before}}}" if before else "{}"))
    refused = give(proxy, "{http: {requestId: Keep}}", plant)
    assert (refused == {}) == (plant is invalid)
    client = proxy.connect()
    client.send(GET)
    assert client.take().startswith(b"HTTP/1.1 503 ") and not proxy.connector.upstreams
    line = proxy.log_lines()[-1]
    assert " reason=PolicyUnusable " in line and "frontendHttp" in line
    assert give(proxy, "{http: {requestId: Keep}}", None) == {}
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")


def test_a_proxy_header_counts_from_nobody_when_it_is_not_known_who_is_trusted() -> None:
    """`frontend.http.trustedHops` says whose header counts, also for bytes that are no HTTP."""
    frontend = "{proxyProtocol: {version: V1, mode: Optional}, http: {trustedHops: {cidrs: [192.0.2.0/24]}}}"
    proxy = Http1Endpoints(RAW.format(frontend=frontend))
    header = b"PROXY TCP4 203.0.113.5 198.51.100.1 4711 8080\r\n"
    client = proxy.connect()
    client.send(header + b"hello")
    assert proxy.upstream.received == b"hello"
    assert give(proxy, frontend, trusted_hops, RAW).keys() >= {"frontend_http"}
    client = proxy.connect()
    client.send(header + b"hello")
    assert not client.open and counted(proxy, "connections_refused_total") == {"ProxyHeaderUntrusted": 1}


@pytest.mark.parametrize("plant", [way_of_connect, invalid])
@pytest.mark.parametrize("before", ["{mode: Route}", None])
def test_no_tunnel_is_opened_in_a_way_that_is_not_understood(plant: Plants, before: str | None) -> None:
    proxy = Http1Endpoints(FILE.format(frontend=f"{{connect: {before}}}" if before else "{}"))
    refused = give(proxy, "{connect: {mode: Route}}", plant)
    assert (refused == {}) == (plant is invalid)
    client = proxy.connect()
    client.send(CONNECT)
    assert client.take().startswith(b"HTTP/1.1 503 ") and not proxy.connector.dialled
    assert " reason=PolicyUnusable " in proxy.log_lines()[-1]
    client = proxy.connect()  # other requests are not its matter
    client.send(GET)
    proxy.upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("plant", [suite, group, least_version, no_version, invalid])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_handshake_is_done_by_settings_that_are_not_understood(
    plant: Plants, is_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    listeners = {"http": secure(authority.issue("shop.example"))}
    proxy = SecureProxy(FILE.format(frontend="{}"), listeners, spoken=1)
    if not is_first:
        proxy.apply(secured(resources("{tls: {minProtocolVersion: '1.2'}}", None), listeners))
        assert TlsClient(proxy.connect(), "shop.example", authority).error == ""
    proxy.apply(secured(resources("{tls: {minProtocolVersion: '1.3'}}", plant), listeners))
    refused = {key.rpartition("/")[2] for key in proxy.applier.outcome.refused}
    assert refused == (set() if plant is invalid else {"frontend_tls"})
    client = proxy.connect()
    assert TlsClient(client, "shop.example", authority).error
    assert client.received == b""  # no alert
    assert counted(proxy, "tls_handshake_failures_total") == {"frontend.tls cannot be applied": 1}
    proxy.apply(secured(resources("{tls: {minProtocolVersion: '1.3'}}", None), listeners))
    assert TlsClient(proxy.connect(), "shop.example", authority).error == ""


def test_what_is_passed_through_needs_no_settings_of_tls() -> None:
    issued = Authority().issue("shop.example")
    listeners = {"http": Secure((issued,), mode=tls_pb2.TLS_MODE_PASSTHROUGH)}
    proxy = SecureProxy(FILE.format(frontend="{}"), listeners)
    proxy.apply(secured(resources("{tls: {minProtocolVersion: '1.3'}}", suite), listeners))
    (bind,) = proxy.applier.current.table.binds.values()
    assert bind.default is not None and bind.default.tls is not None and bind.default.tls.is_passthrough


@pytest.mark.parametrize("plant", [mode_of_header, request_id, way_of_connect, suite])
def test_a_policy_of_a_newer_revision_refuses_as_well(plant: Plants) -> None:
    """`min_revision` above what the proxy knows: the half that it can read may say less than the whole."""
    proxy = Http1Endpoints()
    found = resources("{connect: {mode: Route}}", None)
    for each in found:
        if each.HasField("policy"):
            each.policy.ClearField("connect")
            plant(each.policy)
            each.min_revision = NEWER
            kept = each
    for _ in proxy.applier.apply([Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in found]):
        pass
    assert list(proxy.applier.outcome.refused) == [kept.key]
    record = proxy.applier.store.policies[kept.key]
    assert all(built.refused for built in record.built.values())
