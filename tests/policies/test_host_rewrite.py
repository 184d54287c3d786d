"""Host rewrite from the standalone file, and from the wire, to the Host header that the backend sees."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import host_rewrite
from dataplane.upstream.endpoint import Endpoint
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import TableRun, endpoint, exchange, service, static

GET = b"GET / HTTP/1.1\r\nHost: client.example:8080\r\nx-before: 1\r\n\r\n"
CLIENT = "client.example:8080"


class AnyName:
    """A resolver that knows every name."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return (Endpoint("10.0.0.1", port),)


def host_seen(policies: str, backend: str, request: bytes = GET) -> str:
    """The Host header that the backend gets; `x-forwarded-host` has to be the client's."""
    proxy = MemoryProxy(text_of(f"policies: {{{policies}}}\nbackends: [{{host: '{backend}'}}]"))
    proxy.context.resolver = AnyName()  # type: ignore[assignment]
    proxy.connect().send(request)
    head = proxy.upstream.received.partition(b"\r\n\r\n")[0].decode()
    assert re.findall(r"(?i)\r\nx-forwarded-host: ([^\r]*)", head) == ([CLIENT] if request is GET else [])
    (host,) = re.findall(r"(?i)\r\nhost: ([^\r]*)", head)
    return str(host)


AUTO, NONE = "hostRewrite: {mode: Auto}", "hostRewrite: {mode: None}"


@pytest.mark.parametrize(
    ("policies", "backend", "host"),
    [
        # Defaults (spec 2, hostRewrite): Auto for host names, None for IP addresses and Unix sockets.
        ("", "api.example:9000", "api.example:9000"),
        ("", "API.example:9000", "api.example:9000"),
        ("", "api.example:80", "api.example"),  # the scheme's own port is left out
        ("", "api.example:443", "api.example:443"),  # the backend is spoken to in plain text
        ("", "127.0.0.1:9000", CLIENT),
        ("", "[::1]:9000", CLIENT),
        ("", "unix:/run/api.sock", CLIENT),
        # Set.
        (NONE, "api.example:9000", CLIENT),
        (AUTO, "api.example:9000", "api.example:9000"),
        (AUTO, "127.0.0.1:9000", "127.0.0.1:9000"),
        (AUTO, "127.0.0.1:80", "127.0.0.1"),
        (AUTO, "[::1]:9000", "[::1]:9000"),
        (AUTO, "unix:/run/api.sock", CLIENT),  # there is no name to set
        # A step chose a host.
        ("urlRewrite: {hostname: chosen.example}", "api.example:9000", "chosen.example"),
        (f"urlRewrite: {{hostname: chosen.example}}, {AUTO}", "api.example:9000", "chosen.example"),
        (f"urlRewrite: {{hostname: client.example}}, {AUTO}", "api.example:9000", "client.example"),
        ("urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /x}}", "api.example:9000", "api.example:9000"),
        (
            "headerModifiers: {request: {set: [{name: host, value: chosen.example}]}}",
            "api.example:9000",
            "chosen.example",
        ),
    ],
)
def test_host(policies: str, backend: str, host: str) -> None:
    assert host_seen(policies, backend) == host


def test_a_request_without_a_host_gets_one() -> None:
    assert host_seen("", "api.example:9000", b"GET / HTTP/1.0\r\nx-before: 1\r\n\r\n") == "api.example:9000"


def test_the_rest_of_the_head_stays() -> None:
    seen = {}
    for mode in ("Auto", "None"):
        proxy = MemoryProxy(
            text_of(f"policies: {{hostRewrite: {{mode: {mode}}}}}\nbackends: [{{host: '127.0.0.1:9000'}}]")
        )
        proxy.context.request_id = lambda: b"id"
        proxy.connect().send(GET)
        seen[mode] = proxy.upstream.received
    assert seen["Auto"] == seen["None"].replace(b"Host: client.example:8080", b"host: 127.0.0.1:9000")


def test_the_log_and_the_request_keep_the_clients_host() -> None:
    response = "headerModifiers: {response: {set: [{name: x, value: y}]}}"
    proxy = MemoryProxy(text_of(f"policies: {{{response}}}\nbackends: [{{host: 'api.example:9000'}}]"))
    proxy.context.resolver = AnyName()  # type: ignore[assignment]
    client = proxy.connect()
    client.send(GET)
    x = client.protocol.exchange
    assert (x.authority, x.request.get(b"host")) == (b"client.example:8080", b"client.example:8080")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert " http.host=client.example " in proxy.log_lines()[-1]


def test_each_try_has_the_backends_host() -> None:
    proxy = MemoryProxy(text_of("policies: {retry: {codes: [503]}}\nbackends: [{host: 'api.example:9000'}]"))
    proxy.context.resolver = AnyName()  # type: ignore[assignment]
    proxy.connect().send(GET)
    for number in range(2):
        head = proxy.upstream.received
        assert head.count(b"\r\nhost: api.example:9000\r\n") == 1
        assert (b"x-retry-attempt: 1" in head) == bool(number)
        proxy.upstream.answer(b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        proxy.advance(1)


def test_a_mirror_has_its_own_host() -> None:
    proxy = MemoryProxy(
        text_of("policies: {requestMirror: {host: 'shadow.example:9001'}}\nbackends: [{host: '127.0.0.1:9000'}]")
    )
    proxy.context.resolver = AnyName()  # type: ignore[assignment]
    proxy.connect().send(GET)
    main, mirror = (upstream.received for upstream in proxy.connector.upstreams)
    assert b"\r\nHost: client.example:8080\r\n" in main
    assert b"\r\nhost: shadow.example:9001\r\n" in mirror


@pytest.mark.parametrize(
    ("change", "authority", "by_name"),
    [
        (service("backend/service/shop/cart/8080"), b"cart.shop.svc.cluster.local:8080", False),
        (service("backend/service/shop/cart/80"), b"cart.shop.svc.cluster.local", False),
        (static("backend/gatewaybackend/shop/b", host="api.example", port=8080), b"api.example:8080", True),
        (static("backend/gatewaybackend/shop/b", host="10.0.0.1", port=8080), b"10.0.0.1:8080", False),
        (static("backend/gatewaybackend/shop/b", host="::1", port=80), b"[::1]", False),
        (static("backend/gatewaybackend/shop/b", unix_path="/run/x"), b"", False),
    ],
)
def test_names_of_backends(change: object, authority: bytes, by_name: bool) -> None:
    run = TableRun()
    run.apply(change, endpoint(backend="backend/service/shop/cart/8080"))  # type: ignore[arg-type]
    plan = run.backend(change.name)  # type: ignore[attr-defined]
    assert plan is not None
    assert (plan.authority, bool(plan.host)) == (authority, by_name)


@pytest.mark.parametrize(("mode", "value"), [("Auto", True), ("None", False)])
def test_the_setting(mode: str, value: bool) -> None:
    assert PolicyRun(f"policies: {{hostRewrite: {{mode: {mode}}}}}").route(exchange()).policies.host_rewrite is value


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.host_rewrite is None


def test_a_mode_that_is_not_known_is_refused() -> None:
    with pytest.raises(Refused, match="mode must be Auto or None"):
        host_rewrite.build(traffic_pb2.HostRewrite(), Env(clock=lambda: 0.0, random=lambda: 0.0))
