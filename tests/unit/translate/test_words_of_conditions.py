"""What conditions say: of several reasons, of proxies, and of releases; and how resources are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane.translate import keys
from controlplane.translate.conditions import MOST_NAMED, Condition, Keeps, joined, rendered, timestamp
from controlplane.translate.fleet import FleetView, programmed, rejected
from controlplane.translate.keys import BackendKey, ObjectKey
from controlplane.translate.status.api_versions import supported_version
from gatewright.attach.parents import Owner

WEB = ObjectKey("shop", "web")


@pytest.mark.parametrize(
    ("count", "end"), [(1, ""), (2, ""), (MOST_NAMED, ""), (MOST_NAMED + 1, "; and 1 more"), (20, "; and 12 more")]
)
def test_so_many_reasons_are_named_and_the_others_counted(count: int, end: str) -> None:
    texts = [f"reason {number}" for number in range(count)]
    assert joined(texts) == "; ".join(texts[:MOST_NAMED]) + end


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, "1970-01-01T00:00:00Z"), (1767225599.999, "2025-12-31T23:59:59Z")]
)
def test_times_are_in_whole_seconds_of_utc(seconds: float, expected: str) -> None:
    assert timestamp(seconds) == expected


@pytest.mark.parametrize(("status", "expected"), [(True, "True"), (False, "False"), (None, "Unknown")])
def test_a_condition_as_json(status: bool | None, expected: str) -> None:
    conditions = [None, Condition("Accepted", status, "Accepted", "why"), None]
    body = {"type": "Accepted", "status": expected, "reason": "Accepted", "message": "why", "observedGeneration": 7}
    assert rendered(conditions, 7) == [body]
    (marked,) = rendered([Condition("Accepted", status, "Accepted", "why", Keeps.ANY)], 7)
    assert marked == {"keep": Keeps.ANY, **body}


PROXIES = [
    (None, False, "Pending", "0 proxies connected", Keeps.NONE),
    (FleetView(0, 0, "no pod is ready"), False, "Pending", "no pod is ready", Keeps.NONE),
    (FleetView(returning=True), False, "Pending", "0 proxies connected", Keeps.TRUE),
    (FleetView(1, 1), True, "Programmed", "1 proxy serving this configuration", Keeps.NONE),
    (FleetView(2, 2, "x"), True, "Programmed", "2 proxies serving this configuration", Keeps.NONE),
    (FleetView(2, 2, returning=True), True, "Programmed", "2 proxies serving this configuration", Keeps.TRUE),
    (FleetView(2, 1), False, "Pending", "1 of 2 proxies have acknowledged", Keeps.NONE),
    (FleetView(1, 0, "refused"), False, "Pending", "0 of 1 proxy have acknowledged: refused", Keeps.NONE),
    (FleetView(2, 1, returning=True), False, "Pending", "1 of 2 proxies have acknowledged", Keeps.NONE),
    (
        FleetView(2, 2, complete=False),
        False,
        "Pending",
        "what the proxies of another controller have is not known yet",
        Keeps.ANY,
    ),
]


@pytest.mark.parametrize(("fleet", "status", "reason", "text", "keeps"), PROXIES)
def test_something_is_programmed_when_every_proxy_that_is_there_has_it(
    fleet: FleetView | None, status: bool, reason: str, text: str, keeps: Keeps
) -> None:
    assert programmed(fleet) == Condition("Programmed", status, reason, text, keeps)


def test_what_proxies_refuse_is_said_once_and_in_order() -> None:
    assert rejected(["b", "a", "b"]) == Condition("Programmed", False, "Rejected", "a; b")


RELEASES = [
    ([], True, "no definitions of Gateway API are here; v1.0 to v1.7 are known"),
    ([("a", "v1.0.0"), ("b", "v1.7.3")], True, ""),
    ([("a", "v1.7.0-rc.1")], True, ""),
    ([("a", "v1.8.0")], False, "a is of release v1.8.0; v1.0 to v1.7 are known"),
    ([("a", "v0.8.1")], False, "a is of release v0.8.1; v1.0 to v1.7 are known"),
    ([("a", "v2.0.0")], False, "a is of release v2.0.0; v1.0 to v1.7 are known"),
    ([("b", "1.0"), ("c", "v1.2.3"), ("a", "")], False, "a does not say its release; b is of release 1.0; v1.0 to v1"),
    ([("a", "x" * 65)], False, f"a is of release {'x' * 64}; v1.0"),
    ([("a", "v1.1234567890.0")], False, "a is of release v1.1234567890.0; "),
]


@pytest.mark.parametrize(("definitions", "status", "text"), RELEASES)
def test_which_releases_of_gateway_api_are_known(definitions: list[tuple[str, str]], status: bool, text: str) -> None:
    found = supported_version(definitions)
    assert (found.type, found.status) == ("SupportedVersion", status)
    assert found.reason == ("SupportedVersion" if status else "UnsupportedVersion")
    assert found.message == text if status else found.message.startswith(text)


NAMES: list[tuple[Callable[[], str], str]] = [
    (lambda: BackendKey("service", "shop", "cart", 80).resource, "backend/service/shop/cart/80"),
    (lambda: BackendKey("service", "shop", "dns", 53, "UDP").resource, "backend/service/shop/dns/53-udp"),
    (lambda: BackendKey("gatewaybackend", "shop", "llm").resource, "backend/gatewaybackend/shop/llm"),
    (lambda: BackendKey("gatewaybackend", "shop", "mcp", part="one").resource, "backend/gatewaybackend/shop/mcp/one"),
    (lambda: keys.gateway_resource(WEB), "gateway/shop/web"),
    (lambda: keys.bind_resource(WEB, 80), "bind/shop/web/80"),
    (lambda: keys.listener_resource(Owner("ListenerSet", "shop", "web"), "http"), "listener/listenerset/shop/web/http"),
    (lambda: keys.route_resource("httproute", WEB, 3), "route/httproute/shop/web/3"),
    (lambda: keys.policy_resource(WEB, "cors"), "policy/shop/web/cors"),
    (lambda: keys.gateway_policy_resource(WEB, "frontend_tls"), "policy/shop/gateway:web/frontend_tls"),
    (lambda: keys.secret_resource(WEB), "secret/shop/web"),
    (lambda: keys.certificate_resource(WEB), "secret/shop/web/tls"),
    (lambda: keys.written_secret_resource(WEB, "api_key"), "secret/shop/web/api_key"),
]


@pytest.mark.parametrize(("found", "expected"), NAMES)
def test_how_a_resource_is_called(found: Callable[[], str], expected: str) -> None:
    assert found() == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("HTTPRoute", ("route/httproute/shop/web/",)),
        ("Service", ("backend/service/shop/web/",)),
        ("Secret", ("secret/shop/web", "secret/shop/web/tls")),
        ("GatewayClass", ()),
        (
            "Gateway",
            ("gateway/shop/web", "bind/shop/web/", "listener/gateway/shop/web/", "policy/shop/gateway:web/"),
        ),
    ],
)
def test_what_the_resources_of_an_object_are_called(kind: str, expected: tuple[str, ...]) -> None:
    assert keys.resources_of(kind, WEB) == expected
    assert keys.endpoints_of(kind, WEB) == (("shop/web/",) if kind == "Service" else ())
    assert keys.is_certificate_of(kind, WEB, "secret/shop/web/tls") is (kind != "Secret")
    assert not keys.is_certificate_of(kind, WEB, "secret/shop/web/api_key")
