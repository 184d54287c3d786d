"""CORS from the standalone file to the bytes that a browser gets."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.exchange import Exchange
from dataplane.filters import cors
from dataplane.http.heads import Head
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange

SHOP = "https://shop.example"

FULL = """
cors:
  allowOrigins: ["https://shop.example", "https://*.apps.example", "http://localhost:3000"]
  allowMethods: [GET, PUT]
  allowHeaders: [Content-Type, X-Token]
  exposeHeaders: [Mcp-Session-Id, X-Page]
  allowCredentials: true
  maxAge: 600
"""

Headers = dict[str, str]


def run(policy: str) -> PolicyRun:
    return PolicyRun("policies:\n" + "".join(f"  {line}\n" for line in policy.strip().splitlines()))


def preflight(policy: str, origin: str = SHOP, method: str = "PUT", headers: str = "") -> Headers | None:
    """What the answer to a preflight says; None: it was not answered."""
    lines = f"Origin: {origin}\r\nAccess-Control-Request-Method: {method}\r\n"
    lines += f"Access-Control-Request-Headers: {headers}\r\n" if headers else ""
    answer = run(policy).request(exchange("OPTIONS", headers=lines.encode()))
    if answer is None:
        return None
    assert (answer.status, answer.body) == (204, b"")
    return said(Head(b"\r\n" + answer.headers))


def response(policy: str, origin: str = SHOP, upstream: bytes = b"", method: str = "GET") -> Head:
    """The head of the response to a request with this origin ("": none)."""
    table = run(policy)
    x = exchange(method, headers=f"Origin: {origin}\r\n".encode() if origin else b"")
    assert table.request(x) is None
    respond(x, upstream)
    assert x.response is not None
    assert x.response.low == x.response.block.lower()
    return x.response


def respond(x: Exchange, upstream: bytes) -> None:
    x.status, x.response = 200, Head(b"\r\n" + upstream)
    assert x.policies.chain.response(x) is None


def said(head: Head) -> Headers:
    pairs = head.items()
    assert len(dict(pairs)) == len(pairs), f"a header came twice: {pairs}"
    return {name.decode().removeprefix("access-control-"): value.decode() for name, value in pairs}


# --- preflights


def test_a_preflight_is_answered() -> None:
    assert preflight(FULL, headers="x-token") == {
        "allow-origin": SHOP,
        "allow-credentials": "true",
        "allow-methods": "GET, PUT",
        "allow-headers": "Content-Type, X-Token",
        "max-age": "600",
        "vary": "Origin",
    }


def test_what_the_browser_compares_is_listed_whatever_it_asked_for() -> None:
    assert preflight(FULL, method="DELETE", headers="x-other") == preflight(FULL)


def test_defaults() -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}']}}"
    assert preflight(policy) == {"allow-origin": SHOP, "max-age": "5", "vary": "Origin"}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://shop.example", "https://shop.example:8443"])
def test_a_disallowed_preflight_gets_no_cors_headers(origin: str) -> None:
    assert preflight(FULL, origin) == {"vary": "Origin"}


def test_no_origins_allow_nothing() -> None:
    assert preflight("cors: {allowMethods: ['*']}") == {"vary": "Origin"}


@pytest.mark.parametrize(
    "headers",
    [
        b"Origin: https://shop.example\r\n",
        b"Access-Control-Request-Method: PUT\r\n",
        b"Origin: https://shop.example\r\nAccess-Control-Request-Method:\r\n",
    ],
)
def test_other_options_requests_go_on(headers: bytes) -> None:
    assert run(FULL).request(exchange("OPTIONS", headers=headers)) is None


def test_a_preflight_is_an_options_request() -> None:
    headers = b"Origin: https://shop.example\r\nAccess-Control-Request-Method: PUT\r\n"
    assert run(FULL).request(exchange("POST", headers=headers)) is None


# allowMethods, allowHeaders, allowCredentials, requested headers: what is answered (Gateway API, Fetch 3.2.3)
WILDCARDS = [
    ("'*'", "'*'", False, "x-a, x-b", "*", "*"),
    ("'*'", "'*'", True, "x-a, x-b", "PUT", "x-a, x-b"),
    ("'*'", "'*'", False, "", "*", "*"),
    ("'*'", "'*'", True, "", "PUT", None),
    ("'*'", "'*'", False, "Authorization, x-a", "*", "Authorization, x-a"),  # "*" does not cover Authorization
    ("GET", "'*'", True, "x-a", "GET", "x-a"),
    ("'*'", "X-A", True, "x-b", "PUT", "X-A"),
]


@pytest.mark.parametrize(("methods", "headers", "credentials", "asked", "methods_said", "headers_said"), WILDCARDS)
def test_wildcards(
    methods: str, headers: str, credentials: bool, asked: str, methods_said: str, headers_said: str | None
) -> None:
    answer = preflight(
        f"cors: {{allowOrigins: ['{SHOP}'], allowMethods: [{methods}], allowHeaders: [{headers}], "
        f"allowCredentials: {str(credentials).lower()}}}",
        headers=asked,
    )
    assert answer is not None
    assert (answer.get("allow-methods"), answer.get("allow-headers")) == (methods_said, headers_said)


def test_only_lists_of_names_are_given_back() -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}'], allowHeaders: ['*'], allowCredentials: true}}"
    answer = preflight(policy, headers='x-a, "<script>"')
    assert answer is not None and "allow-headers" not in answer


# --- origins


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://shop.example", True),
        ("HTTPS://Shop.Example", True),
        ("https://shop.example.evil.example", False),
        ("https://evil-shop.example", False),
        ("https://a.apps.example", True),
        ("https://a.b.apps.example", True),
        ("https://apps.example", False),
        ("https://.apps.example", False),
        ("https://evilapps.example", False),
        ("https://a.apps.example.evil.example", False),
        ("https://evil.example/.apps.example", False),
        ("https://evil.example?.apps.example", False),
        ("https://user@a.apps.example", False),
        ("http://a.apps.example", False),
        ("https://a.apps.example:8443", False),
        ("http://localhost:3000", True),
        ("http://localhost", False),
        ("null", False),
        ("*", False),
        ("https://" + "a." * 300 + "apps.example", False),
    ],
)
def test_origins(origin: str, allowed: bool) -> None:
    assert (said(response(FULL, origin)).get("allow-origin") == origin) is allowed


@pytest.mark.parametrize(
    ("written", "origin", "allowed"),
    [
        ("https://a.example:443", "https://a.example", True),
        ("http://A.example:80", "http://a.example", True),
        ("https://*.a.example:8443", "https://x.a.example:8443", True),
        ("https://*.a.example:8443", "https://x.a.example", False),
        ("https://*", "https://any.example", True),
        ("https://*", "http://any.example", False),
        ("https://*", "https://any.example:1", False),
    ],
)
def test_written_origins(written: str, origin: str, allowed: bool) -> None:
    assert ("allow-origin" in said(response(f"cors: {{allowOrigins: ['{written}']}}", origin))) is allowed


@pytest.mark.parametrize(
    ("credentials", "expected"),
    [
        ("false", {"allow-origin": "*", "vary": "Origin"}),
        ("true", {"allow-origin": "https://x.example", "allow-credentials": "true", "vary": "Origin"}),
    ],
)
def test_any_origin(credentials: str, expected: Headers) -> None:
    policy = f"cors: {{allowOrigins: ['*'], allowCredentials: {credentials}}}"
    assert said(response(policy, "https://x.example")) == expected


# --- responses


def test_an_allowed_origin_may_read_the_response() -> None:
    assert said(response(FULL, upstream=b"X-Page: 1\r\n")) == {
        "x-page": "1",
        "vary": "Origin",
        "allow-origin": SHOP,
        "allow-credentials": "true",
        "expose-headers": "Mcp-Session-Id, X-Page",
    }


@pytest.mark.parametrize("origin", ["", "https://evil.example"])
def test_others_only_learn_that_it_varies(origin: str) -> None:
    assert said(response(FULL, origin)) == {"vary": "Origin"}


UPSTREAM = (
    b"Access-Control-Allow-Origin: *\r\naccess-control-allow-credentials: true\r\nACCESS-CONTROL-EXPOSE-HEADERS: a\r\n"
    b"access-control-allow-origin: https://evil.example\r\naccess-control-max-age: 9\r\n"
)


@pytest.mark.parametrize("origin", ["", SHOP, "https://evil.example"])
def test_what_the_upstream_says_of_cors_is_replaced(origin: str) -> None:
    assert said(response(FULL, origin, UPSTREAM + b"x-a: 1\r\n")) == {"x-a": "1", **said(response(FULL, origin))}


@pytest.mark.parametrize(
    ("vary", "expected"),
    [
        (b"Vary: Accept-Encoding\r\n", [b"Accept-Encoding", b"Origin"]),
        (b"Vary: accept, ORIGIN\r\n", [b"accept, ORIGIN"]),
        (b"Vary: *\r\n", [b"*"]),
        (b"Vary: x-origin\r\n", [b"x-origin", b"Origin"]),
    ],
)
def test_vary(vary: bytes, expected: list[bytes]) -> None:
    head = response(FULL, upstream=vary)
    assert head.get_all(b"vary") == expected
    assert head.get(b"access-control-allow-origin") == SHOP.encode()


@pytest.mark.parametrize(("credentials", "expected"), [("false", "*"), ("true", "content-type, x-page")])
def test_everything_exposed(credentials: str, expected: str) -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}'], exposeHeaders: ['*'], allowCredentials: {credentials}}}"
    head = response(policy, upstream=b"Content-Type: text/plain\r\nX-Page: 1\r\n")
    assert said(head)["expose-headers"] == expected


def test_the_origin_counts_that_the_client_sent() -> None:
    table = run(FULL + "headerModifiers: {request: {remove: [Origin]}}")
    x = exchange(headers=b"Origin: https://shop.example\r\n")
    assert table.request(x) is None
    respond(x, b"")
    assert x.request.get(b"origin") is None and x.response is not None
    assert said(x.response)["allow-origin"] == SHOP


# --- whoever makes the response


def client_of(
    policies: str, backends: str = "backends: [{host: '127.0.0.1:9000'}]"
) -> tuple[MemoryProxy, FakeTransport]:
    proxy = MemoryProxy(text_of("policies:\n" + "".join(f"  {line}\n" for line in policies.splitlines()) + backends))
    return proxy, proxy.connect()


def get(origin: str = SHOP) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("beside", "status"),
    [
        ("basicAuthentication: {users: ['me:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=']}", 401),
        ("authorization: {policy: {matchExpressions: ['false']}}", 403),
        ("rateLimit: {local: [{requests: 1, unit: Hours}]}", 429),
        ("", 503),
    ],
)
def test_answers_of_our_own_have_the_headers_too(beside: str, status: int) -> None:
    proxy, client = client_of(FULL + beside)
    if status == 429:
        client.send(get())
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        client.take()
    proxy.connector.refuse = "refused"
    client.send(get())
    assert client.received.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\naccess-control-allow-origin: https://shop.example\r\n" in client.received
    assert client.received.count(b"\r\nvary: Origin\r\n") == 1


def test_a_preflight_needs_no_credentials_and_no_backend() -> None:
    proxy, client = client_of(FULL + "authorization: {policy: {matchExpressions: ['false']}}")
    client.send(
        b"OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://shop.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n"
    )
    assert client.received.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert b"content-length" not in client.received and proxy.connector.upstreams == []
    (line,) = proxy.log_lines()
    assert "reason=CorsPreflight" in line


def test_a_response_passes_through() -> None:
    proxy, client = client_of(FULL)
    client.send(get())
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\ncontent-length: 2\r\n\r\nok")
    assert client.received.count(b"ccess-") == 3 and client.received.endswith(b"\r\n\r\nok")


# --- what cannot be built


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (traffic_pb2.Cors(allow_origins=["https://a.example/"]), r"allowOrigins\[0\]: .* is not an origin"),
        (traffic_pb2.Cors(allow_origins=["https://a.example", "null"]), r"allowOrigins\[1\]: .* is not an origin"),
        (traffic_pb2.Cors(allow_methods=["GET", "A B"]), r"allowMethods\[1\]: .* is not a token"),
        (traffic_pb2.Cors(allow_headers=["a\r\nb"]), r"allowHeaders\[0\]: .* is not a token"),
        (traffic_pb2.Cors(expose_headers=[""]), r"exposeHeaders\[0\]: .* is not a token"),
    ],
)
def test_what_cannot_be_built_is_refused(config: traffic_pb2.Cors, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        cors.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
