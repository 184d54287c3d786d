"""Features of Gateway API that a GatewayClass names as supported: objects as YAML in, bytes of HTTP out.

Each test asks what the conformance test of its feature asks. `tests/rules/features.py` says which test shows which
feature; a name of `controlplane/translate/status/features.py` that is not there fails.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.fakes.both_planes import BothPlanes
from tests.fakes.h2_upstream import Endpoint2
from tests.outside.dialects.objects import CLASS, GATEWAY, NEXT, SHOP, route, service

BASE = GATEWAY + SHOP + NEXT
SHOP_AT, NEXT_AT, THIRD_AT = "127.0.0.1:3000", "127.0.0.1:3001", "127.0.0.1:3002"
TO_SHOP, TO_NEXT = "backendRefs: [{name: shop, port: 80}]", "backendRefs: [{name: next, port: 80}]"


def gateway(*listeners: str) -> str:
    return f"""\
{CLASS}---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: web}}
spec: {{gatewayClassName: gatewright, listeners: [{", ".join(f"{{{each}, protocol: HTTP}}" for each in listeners)}]}}
"""


def rules(*each: str, hostnames: str = "", name: str = "shop") -> str:
    """A route of the Gateway with these rules."""
    return route(f"  hostnames: [{hostnames}]\n  rules: [{', '.join(f'{{{rule}}}' for rule in each)}]", name)


def filters(*each: str, rest: str = TO_SHOP) -> str:
    """A rule with these filters."""
    return f"filters: [{', '.join(f'{{{one}}}' for one in each)}], {rest}"


def where(planes: BothPlanes, path: str = "/", *lines: str, method: str = "GET", port: int = 0) -> str:
    """The endpoint that answers a request, or the status where none does."""
    status, _ = planes.ask(path, *lines, method=method, port=port)
    return next(iter(planes.reached()), str(status))


def got(planes: BothPlanes) -> list[str]:
    """Lines of the one request that endpoints got."""
    ((_, head),) = planes.taken()
    return head.split("\r\n")


# Listeners


def test_listeners_are_isolated() -> None:
    planes = BothPlanes(
        gateway(
            "name: any, port: 80",
            "name: wild, port: 80, hostname: '*.example.com'",
            "name: wilder, port: 80, hostname: '*.foo.example.com'",
            "name: exact, port: 80, hostname: abc.foo.example.com",
        )
        + SHOP
        + "".join(
            rules(f"matches: [{{path: {{value: /{name}}}}}], {TO_SHOP}", name=name).replace(
                "{name: web, namespace: default}", f"{{name: web, sectionName: {name}}}"
            )
            for name in ("any", "wild", "wilder", "exact")
        )
    )
    hosts = {
        "any": "bar.com",
        "wild": "bar.example.com",
        "wilder": "bar.foo.example.com",
        "exact": "abc.foo.example.com",
    }
    for listener, host in hosts.items():
        found = {name: planes.ask(f"/{name}", f"host: {host}")[0] for name in hosts}
        assert found == {name: 200 if name == listener else 404 for name in hosts}


def test_two_ports_of_a_gateway() -> None:
    planes = BothPlanes(
        gateway("name: first, port: 80", "name: second, port: 8080")
        + SHOP
        + rules(TO_SHOP)
        + rules(TO_SHOP, name="other").replace("{name: web, namespace: default}", "{name: web, sectionName: second}")
    )
    status: dict[str, Any] = planes.world.program.status("Gateway", "default", "web") or {}
    assert {each["name"]: each["attachedRoutes"] for each in status["listeners"]} == {"first": 1, "second": 2}
    assert [planes.ask(port=port)[0] for port in (80, 8080)] == [200, 200]


def port_routes() -> str:
    return "".join(
        rules(f"matches: [{{path: {{value: /{port}}}}}], {TO_SHOP}", name=f"on-{port}").replace(
            "{name: web, namespace: default}", f"{{name: web, port: {port}}}"
        )
        for port in (80, 8080, 9000)
    )


def test_a_parent_by_its_port() -> None:
    planes = BothPlanes(gateway("name: first, port: 80", "name: second, port: 8080") + SHOP + port_routes())
    found = {(path, port): planes.ask(path, port=port)[0] for path in ("/80", "/8080") for port in (80, 8080)}
    assert found == {("/80", 80): 200, ("/80", 8080): 404, ("/8080", 80): 404, ("/8080", 8080): 200}


def test_a_port_that_no_listener_has() -> None:
    planes = BothPlanes(gateway("name: first, port: 80", "name: second, port: 8080") + SHOP + port_routes())
    assert planes.world.conditions("HTTPRoute", "on-80", entry=0)[0] == "Accepted=True Accepted (0)"
    (accepted, *_) = planes.world.conditions("HTTPRoute", "on-9000", entry=0)
    assert accepted.startswith("Accepted=False NoMatchingParent (0): ")


@pytest.mark.parametrize("hostname", ["abc.example.com", "'*.example.com'"])
def test_of_routes_that_meet_the_more_specific_hostname_counts(hostname: str) -> None:
    """By the hostnames that the routes name, not by what is left of them on the listener."""
    planes = BothPlanes(
        gateway(f"name: http, port: 80, hostname: {hostname}")
        + SHOP
        + NEXT
        + service("third", 3002)
        + rules("backendRefs: [{name: third, port: 80}]", name="all").replace(", namespace: default}", "}", 1)
        + rules(f"matches: [{{path: {{value: /longer}}}}], {TO_SHOP}", hostnames="'*.example.com'", name="a-wild")
        + rules(TO_NEXT, hostnames="abc.example.com", name="b-exact")
    )
    assert where(planes, "/longer", "host: abc.example.com") == NEXT_AT


def test_of_grpc_routes_that_meet_the_more_specific_hostname_counts() -> None:
    objects = (
        gateway("name: http, port: 80, hostname: '*.example.com'")
        + SHOP
        + NEXT
        + rules(f"matches: [{{method: {{service: a.A, method: B}}}}], {TO_SHOP}", hostnames="'*.com'", name="a")
        + rules(TO_NEXT, hostnames="abc.example.com", name="b")
    )
    planes = BothPlanes(objects.replace("kind: HTTPRoute", "kind: GRPCRoute"))
    client = planes.connect()
    lines = "host: abc.example.com\r\ncontent-type: application/grpc\r\ncontent-length: 5\r\n\r\n"
    client.send(f"POST /a.A/B HTTP/1.1\r\n{lines}\0\0\0\0\0".encode())
    assert planes.upstream.protocol.endpoint.label == NEXT_AT


# Matches


def test_methods() -> None:
    planes = BothPlanes(
        BASE
        + rules(
            f"matches: [{{method: POST}}], {TO_SHOP}",
            f"matches: [{{method: GET}}, {{path: {{value: /path}}}}], {TO_NEXT}",
        )
    )
    asked = [("POST", "/"), ("GET", "/"), ("PUT", "/"), ("PUT", "/path"), ("POST", "/path")]
    found = [where(planes, path, method=method) for method, path in asked]
    assert found == [SHOP_AT, NEXT_AT, "404", NEXT_AT, NEXT_AT]


def test_query_parameters() -> None:
    query = "matches: [{queryParams: [%s]}], %s"
    planes = BothPlanes(
        BASE
        + rules(
            query % ("{name: animal, value: whale}", TO_SHOP),
            query % ("{name: animal, value: dolphin}, {name: color, value: blue}", TO_NEXT),
        )
    )
    asked = ["/?animal=whale", "/?animal=dolphin&color=blue", "/?animal=dolphin", "/?animal=whalefish", "/"]
    assert [where(planes, path) for path in asked] == [SHOP_AT, NEXT_AT, "404", "404", "404"]


def test_rules_have_names() -> None:
    planes = BothPlanes(BASE + rules(f"name: one, {TO_SHOP}"))
    assert planes.ask()[0] == 200
    (line,) = planes.log_lines()
    assert " route_rule=one " in line


# Filters


def redirect(fields: str) -> BothPlanes:
    found = f"type: RequestRedirect, requestRedirect: {{{fields}}}"
    rest = "matches: [{path: {value: /old}}]"
    return BothPlanes(gateway("name: http, port: 80") + rules(filters(found, rest=rest)))


@pytest.mark.parametrize("status", [303, 307, 308])
def test_further_statuses_of_redirects(status: int) -> None:
    found, headers, _ = redirect(f"hostname: example.org, statusCode: {status}").response("/old")
    assert (found, headers["location"]) == (status, "http://example.org/old")


def test_redirects_to_another_scheme() -> None:
    found, headers, _ = redirect("scheme: https, hostname: example.org").response("/old")
    assert (found, headers["location"]) == (302, "https://example.org/old")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /new}", "http://shop.example.com/new/a"),
        ("{type: ReplaceFullPath, replaceFullPath: /all}", "http://shop.example.com/all"),
    ],
)
def test_redirects_to_another_path(path: str, location: str) -> None:
    status, headers, _ = redirect(f"path: {path}").response("/old/a")
    assert (status, headers["location"]) == (302, location)


def test_rewrites_of_the_host() -> None:
    planes = BothPlanes(BASE + rules(filters("type: URLRewrite, urlRewrite: {hostname: one.example.org}")))
    planes.ask()
    assert "host: one.example.org" in [line.lower() for line in got(planes)]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("{type: ReplacePrefixMatch, replacePrefixMatch: /}", "GET /a/b HTTP/1.1"),
        ("{type: ReplaceFullPath, replaceFullPath: /one}", "GET /one HTTP/1.1"),
    ],
)
def test_rewrites_of_the_path(path: str, line: str) -> None:
    rest = f"matches: [{{path: {{value: /old}}}}], {TO_SHOP}"
    planes = BothPlanes(BASE + rules(filters(f"type: URLRewrite, urlRewrite: {{path: {path}}}", rest=rest)))
    planes.ask("/old/a/b")
    assert got(planes)[0] == line


def test_headers_of_responses() -> None:
    changes = "{set: [{name: X-Set, value: s}], add: [{name: X-Add, value: a}], remove: [X-Gone]}"
    change = f"type: ResponseHeaderModifier, responseHeaderModifier: {changes}"
    planes = BothPlanes(BASE + rules(filters(change)))
    planes.answers[SHOP_AT] = b"HTTP/1.1 200 OK\r\nx-set: old\r\nx-gone: 1\r\ncontent-length: 0\r\n\r\n"
    _, headers, _ = planes.response()
    assert (headers["x-set"], headers["x-add"], "x-gone" in headers) == ("s", "a", False)


def of_backend(change: str) -> BothPlanes:
    return BothPlanes(BASE + rules(f"backendRefs: [{{name: shop, port: 80, filters: [{{{change}}}]}}]"))


def test_headers_of_requests_to_one_backend() -> None:
    planes = of_backend(
        "type: RequestHeaderModifier, requestHeaderModifier: "
        "{set: [{name: X-Set, value: s}], add: [{name: X-Add, value: a}], remove: [X-Gone]}"
    )
    planes.ask("/", "x-set: old", "x-gone: 1")
    lines = [line.lower() for line in got(planes)]
    assert "x-set: s" in lines and "x-add: a" in lines and "x-set: old" not in lines and "x-gone: 1" not in lines


def test_rewrites_for_one_backend() -> None:
    planes = of_backend(
        "type: URLRewrite, urlRewrite: {hostname: one.example.org, "
        "path: {type: ReplaceFullPath, replaceFullPath: /full}}"
    )
    planes.ask("/path")
    first, *lines = got(planes)
    assert first == "GET /full HTTP/1.1" and "host: one.example.org" in [line.lower() for line in lines]


def mirror(name: str, more: str = "") -> str:
    return f"type: RequestMirror, requestMirror: {{backendRef: {{name: {name}, port: 80}}{more}}}"


def test_a_mirror() -> None:
    planes = BothPlanes(BASE + rules(filters(mirror("next"))))
    assert planes.ask("/a")[0] == 200
    assert sorted((label, head.split("\r\n")[0]) for label, head in planes.taken()) == [
        (SHOP_AT, "GET /a HTTP/1.1"),
        (NEXT_AT, "GET /a HTTP/1.1"),
    ]


def test_several_mirrors() -> None:
    planes = BothPlanes(BASE + service("third", 3002) + rules(filters(mirror("next"), mirror("third"))))
    assert planes.ask()[0] == 200 and sorted(planes.reached()) == [SHOP_AT, NEXT_AT, THIRD_AT]


@pytest.mark.parametrize("share", ["percent: 20", "fraction: {numerator: 1, denominator: 5}"])
def test_a_share_of_requests_is_mirrored(share: str) -> None:
    planes = BothPlanes(BASE + rules(filters(mirror("next", f", {share}"))))
    draws = [number / 10 for number in range(10)]
    mirrored = []
    for draw in draws:
        planes.context.random = lambda draw=draw: draw  # type: ignore[misc]
        planes.ask()
        mirrored.append(NEXT_AT in planes.reached())
    assert mirrored == [draw < 0.2 for draw in draws]


FOO = "allowOrigins: ['https://www.foo.com', 'https://*.bar.com'], allowMethods: [GET, OPTIONS]"
CORS = {
    "/cors-1": f"{FOO}, allowHeaders: [x-header-1, x-header-2], exposeHeaders: [x-header-3, x-header-4], "
    "allowCredentials: true, maxAge: 3600",
    "/cors-2": "allowOrigins: ['https://www.foo.com'], allowMethods: ['*']",
    "/any-origin": "allowOrigins: ['*'], allowMethods: [PUT], allowCredentials: false",
    "/known": "allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], allowCredentials: true",
    "/unknown": "allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], allowCredentials: false",
}
ASKS = "access-control-request-headers: x-header-1, x-header-2"
FULL = {
    "access-control-allow-methods": {"GET,OPTIONS", "OPTIONS,GET"},
    "access-control-allow-headers": {"x-header-1,x-header-2", "x-header-2,x-header-1"},
    "access-control-expose-headers": {"x-header-3,x-header-4", "x-header-4,x-header-3"},
    "access-control-max-age": {"3600"},
    "access-control-allow-credentials": {"true"},
}
ORIGIN, METHODS, CREDENTIALS = (
    "access-control-allow-origin",
    "access-control-allow-methods",
    "access-control-allow-credentials",
)


@pytest.mark.parametrize(
    ("path", "origin", "asks", "expected", "absent"),
    [
        ("/cors-1", "https://www.foo.com", "GET", {ORIGIN: {"https://www.foo.com"}, **FULL}, []),
        ("/cors-1", "https://www.bar.com", "GET", {ORIGIN: {"https://www.bar.com"}, **FULL}, []),
        ("/cors-1", "https://xpto.www.bar.com", "GET", {ORIGIN: {"https://xpto.www.bar.com"}, **FULL}, []),
        ("/cors-1", "https://foobar.com", "GET", {}, [ORIGIN]),
        (
            "/cors-2",
            "https://www.foo.com",
            "POST",
            {ORIGIN: {"https://www.foo.com"}, METHODS: {"POST", "*"}},
            [CREDENTIALS],
        ),
        (
            "/any-origin",
            "https://foobar.com:12345",
            "PUT",
            {ORIGIN: {"https://foobar.com:12345", "*"}, METHODS: {"PUT"}},
            [CREDENTIALS],
        ),
        (
            "/known",
            "https://other.foo.com",
            "PUT",
            {
                ORIGIN: {"https://other.foo.com"},
                METHODS: {"PUT"},
                "access-control-allow-headers": FULL["access-control-allow-headers"],
                CREDENTIALS: {"true"},
            },
            [],
        ),
        (
            "/unknown",
            "https://other.foo.com",
            "PUT",
            {
                ORIGIN: {"https://other.foo.com", "*"},
                METHODS: {"PUT", "*"},
                "access-control-allow-headers": {"*", *FULL["access-control-allow-headers"]},
            },
            [CREDENTIALS],
        ),
    ],
)
def test_preflights(path: str, origin: str, asks: str, expected: dict[str, set[str]], absent: list[str]) -> None:
    planes = cors()
    request = [f"origin: {origin}", f"access-control-request-method: {asks}", ASKS]
    status, headers, _ = planes.response(path, *request, method="OPTIONS")
    assert status in (200, 204, 403)[: 3 if absent == [ORIGIN] else 2]
    assert [name for name, values in expected.items() if headers[name].replace(" ", "") not in values] == []
    assert not set(absent) & set(headers) and planes.reached() == []


def cors() -> BothPlanes:
    each = (
        filters(f"type: CORS, cors: {{{fields}}}", rest=f"matches: [{{path: {{value: {path}}}}}], {TO_SHOP}")
        for path, fields in CORS.items()
    )
    return BothPlanes(BASE + rules(*each))


@pytest.mark.parametrize(
    ("path", "origin", "allowed", "credentials"),
    [
        ("/cors-1", "https://www.foo.com", {"https://www.foo.com"}, "true"),
        ("/cors-1", "https://www.bar.com", {"https://www.bar.com"}, "true"),
        ("/cors-1", "https://foobar.com", {None}, None),
        ("/any-origin", "https://foobar.com:12345", {"https://foobar.com:12345", "*"}, None),
        ("/known", "https://other.foo.com", {"https://other.foo.com"}, "true"),
        ("/unknown", "https://other.foo.com", {"https://other.foo.com", "*"}, None),
    ],
)
def test_responses_to_other_origins(path: str, origin: str, allowed: set[str | None], credentials: str | None) -> None:
    status, headers, _ = cors().response(path, f"origin: {origin}")
    assert status == 200
    assert headers.get(ORIGIN) in allowed and headers.get(CREDENTIALS) == credentials


# Timeouts and retries


def test_a_timeout_of_the_request() -> None:
    assert _late("timeouts: {request: 500ms}") == (True, "504")
    assert _late("timeouts: {request: 0s}") == (False, "")


def test_a_timeout_of_the_backend() -> None:
    assert _late("timeouts: {backendRequest: 500ms}") == (True, "504")
    assert _late("timeouts: {backendRequest: 0s}") == (False, "")


def _late(setting: str) -> tuple[bool, str]:
    """Whether a client is answered when the backend takes a second, and the status."""
    planes = BothPlanes(BASE + rules(f"{setting}, {TO_SHOP}"))
    client = planes.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    planes.advance(1.0)
    return bool(client.received), client.received[9:12].decode()


def test_codes_that_are_tried_again() -> None:
    planes = BothPlanes(BASE + rules(f"retry: {{attempts: 3, codes: [503]}}, {TO_SHOP}"))
    planes.answers[SHOP_AT] = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
    assert planes.ask()[0] == 503 and len(planes.reached()) == 4
    planes.answers[SHOP_AT] = b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n"
    assert planes.ask()[0] == 502 and len(planes.reached()) == 1


def test_tries_end_with_the_timeout_of_the_request() -> None:
    timeouts = "timeouts: {request: 500ms, backendRequest: 400ms}"
    planes = BothPlanes(BASE + rules(f"retry: {{attempts: 3, codes: [503]}}, {timeouts}, {TO_SHOP}"))
    client = planes.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    planes.advance(0.45)  # the first try is given up
    assert client.received == b""
    planes.advance(0.5)
    assert client.received.startswith(b"HTTP/1.1 504 ")


def test_a_connection_that_breaks_is_tried_again() -> None:
    slices = SHOP.replace("{addresses: [127.0.0.1]}", "{addresses: [127.0.0.1]}, {addresses: [127.0.0.2]}")
    planes = BothPlanes(GATEWAY + slices + rules(f"retry: {{attempts: 1}}, {TO_SHOP}"))
    client = planes.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    planes.upstream.lose(ConnectionResetError())
    planes.endpoints_answer()
    assert client.received.startswith(b"HTTP/1.1 200 ")


# Protocols of backends


def speaking(protocol: str) -> BothPlanes:
    """A route to a Service whose port says what it speaks."""
    return BothPlanes(GATEWAY + SHOP.replace("port: 80}", f"port: 80, appProtocol: {protocol}}}") + rules(TO_SHOP))


@pytest.mark.parametrize("protocol", ["kubernetes.io/h2c", "grpc"])
def test_a_backend_of_http2(protocol: str) -> None:
    planes = speaking(protocol)
    client = planes.connect()
    client.send(b"GET /a HTTP/1.1\r\nhost: shop.example.com\r\n\r\n")
    far = Endpoint2(planes.upstream)
    (request,) = far.requests
    far.answer(request, 200, b"two")
    assert client.received.startswith(b"HTTP/1.1 200 ") and b"two" in client.received


def test_a_backend_of_web_sockets() -> None:
    planes = speaking("kubernetes.io/ws")
    client = planes.connect()
    key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n"
    client.send(f"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n{key}\r\n".encode())
    assert b"upgrade: websocket" in planes.upstream.take().lower()
    planes.upstream.answer(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 101 ")
    client.send(b"\x81\x01a")
    assert planes.upstream.take() == b"\x81\x01a"
    planes.upstream.answer(b"\x81\x01b")
    assert client.take() == b"\x81\x01b"


def test_slow_start_of_an_endpoint_that_joins_a_service() -> None:
    """From 5 percent on, over ten seconds; those that were there from the beginning are warm."""
    planes = BothPlanes(BASE + rules(TO_SHOP))
    planes.context.leases.random = Random(7).random
    planes.load(SHOP.replace("{addresses: [127.0.0.1]}", "{addresses: [127.0.0.1]}, {addresses: [127.0.0.9]}"))
    (backend,) = (each for each in planes.applier.current.table.backends.values() if len(each.endpoints) == 2)
    new, old = sorted(backend.endpoints, key=lambda each: each.address != "127.0.0.9")

    def part() -> float:
        """Of the requests that the new one gets; nothing else speaks for one of them."""
        seen = []
        for _ in range(400):
            new.latency = old.latency
            seen.append(where(planes))
        return sum(address.startswith("127.0.0.9:") for address in seen) / len(seen)

    found = [part()]
    for _ in range(2):
        new.warming -= 5.0  # so much later
        found.append(part())
    assert found == [pytest.approx(0.025, abs=0.025), pytest.approx(0.25, abs=0.09), pytest.approx(0.5, abs=0.1)]
