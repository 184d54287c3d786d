"""Host rewrite from the standalone file, and from the wire, to the authority that the backend sees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.settings import host_rewrite
from dataplane.upstream.endpoint import Endpoint
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Request, Response, Run
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import TableRun, endpoint, exchange, service, static

CLIENT = "client.example:8080"
GET = Request("GET", "/", [("x-before", "1")], authority=CLIENT)


class AnyName:
    """A resolver that knows every name."""

    def endpoints(self, host: bytes, port: int, ready: Callable[[], None]) -> tuple[Endpoint, ...]:
        return (Endpoint("10.0.0.1", port),)


def proxy(carrier: Carrier, policies: str, backend: str, log: str = "") -> Run:
    logged = f"frontendPolicies: {{accessLog: {{add: {log}}}}}\n" if log else ""
    run = carrier.proxy(text_of(f"policies: {{{policies}}}\nbackends: [{{host: '{backend}'}}]") + logged)
    run.resolve(AnyName())
    return run


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
def test_host(policies: str, backend: str, host: str, carrier: Carrier) -> None:
    received = proxy(carrier, policies, backend).carry(GET).received
    assert (received.authority, received.headers["x-forwarded-host"]) == (host, CLIENT)
    assert received.passed == {"x-before": "1"}


def test_the_log_and_the_request_keep_the_clients_host(carrier: Carrier) -> None:
    response = "headerModifiers: {response: {set: [{name: x, value: y}]}}"
    run = proxy(carrier, response, "api.example:9000", log="{host: 'request.headers[\"host\"]', uri: request.uri}")
    seen = run.carry(GET)
    assert (seen.received.authority, seen.answer.headers["x"]) == ("api.example:9000", "y")
    assert " http.host=client.example " in seen.line
    assert seen.line.endswith(f"ms host={CLIENT} uri=http://{CLIENT}/")


def test_each_try_has_the_backends_host(carrier: Carrier) -> None:
    run = proxy(carrier, "retry: {codes: [503]}", "api.example:9000")
    asked = run.send(GET)
    for number in range(2):
        received = run.arrival.received
        assert received.authority == "api.example:9000"
        assert received.headers.all("x-retry-attempt") == ["1"] * number
        run.arrival.answer(Response(503, last=True))
        run.advance(1)
    assert asked.answer.status == 503 and len(run.arrivals) == 2


def test_a_mirror_has_its_own_host(carrier: Carrier) -> None:
    seen = proxy(carrier, "requestMirror: {host: 'shadow.example:9001'}", "127.0.0.1:9000").carry(GET)
    main, mirror = seen.reached
    assert (main.authority, mirror.authority) == (CLIENT, "shadow.example:9001")


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
    assert (plan.authority, plan.renames) == (authority, by_name)


@pytest.mark.parametrize(("mode", "value"), [("Auto", True), ("None", False)])
def test_the_setting(mode: str, value: bool) -> None:
    assert PolicyRun(f"policies: {{hostRewrite: {{mode: {mode}}}}}").route(exchange()).policies.host_rewrite is value


def test_unset() -> None:
    assert PolicyRun("policies: {}").route(exchange()).policies.host_rewrite is None


def test_a_mode_that_is_not_known_is_refused() -> None:
    with pytest.raises(Refused, match="mode must be Auto or None"):
        host_rewrite.build(traffic_pb2.HostRewrite(), Env(clock=lambda: 0.0, random=lambda: 0.0))
