"""CORS from the standalone file to the bytes that a browser gets."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import cors
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carrier, Headers, Request, Response
from tests.carriers.values import Pairs
from tests.fakes.policy_run import served

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

Said = dict[str, str]


def text(policies: str) -> str:
    lines = policies.strip().splitlines()
    return served("policies:\n" + "".join(f"  {line}\n" for line in lines))


def asking(origin: str = SHOP, method: str = "PUT", headers: str = "") -> Request:
    """A preflight."""
    pairs = [("origin", origin), ("access-control-request-method", method)]
    pairs += [("access-control-request-headers", headers)] if headers else []
    return Request("OPTIONS", "/", pairs)


def preflight(carrier: Carrier, policy: str, request: Request | None = None) -> Said:
    """What the answer to a preflight says."""
    seen = carrier.shared(text(policy)).carry(request or asking())
    assert (seen.answer.status, seen.answer.body, seen.answer.ended) == (204, b"", True)
    assert (seen.reached, seen.reason) == ((), "CorsPreflight")
    return said(seen.answer.headers)


def response(carrier: Carrier, policy: str, origin: str = SHOP, upstream: Pairs = ()) -> Headers:
    """The headers of the response to a request with this origin ("": none)."""
    request = Request("GET", headers=[("origin", origin)] if origin else [])
    seen = carrier.shared(text(policy)).carry(request, Response(200, upstream, b"ok"))
    assert (seen.answer.status, seen.answer.body, len(seen.reached)) == (200, b"ok", 1)
    return seen.answer.headers


def said(headers: Headers) -> Said:
    """By name, none of which comes twice; without what every answer has."""
    plain = headers.but("date", "content-length").plain()
    return {name.removeprefix("access-control-"): value for name, value in plain.items()}


# --- preflights


def test_a_preflight_is_answered(carrier: Carrier) -> None:
    assert preflight(carrier, FULL, asking(headers="x-token")) == {
        "allow-origin": SHOP,
        "allow-credentials": "true",
        "allow-methods": "GET, PUT",
        "allow-headers": "Content-Type, X-Token",
        "expose-headers": "Mcp-Session-Id, X-Page",
        "max-age": "600",
        "vary": "Origin",
    }


def test_what_the_browser_compares_is_listed_whatever_it_asked_for(carrier: Carrier) -> None:
    assert preflight(carrier, FULL, asking(method="DELETE", headers="x-other")) == preflight(carrier, FULL)


def test_each_method_may_be_allowed(carrier: Carrier) -> None:
    names = "GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH"
    policy = FULL.replace("[GET, PUT]", f"[{names}]")
    assert policy != FULL and preflight(carrier, policy)["allow-methods"] == names


def test_defaults(carrier: Carrier) -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}']}}"
    assert preflight(carrier, policy) == {"allow-origin": SHOP, "max-age": "5", "vary": "Origin"}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://shop.example", "https://shop.example:8443"])
def test_a_disallowed_preflight_gets_no_cors_headers(origin: str, carrier: Carrier) -> None:
    assert preflight(carrier, FULL, asking(origin)) == {"vary": "Origin"}


def test_no_origins_allow_nothing(carrier: Carrier) -> None:
    assert preflight(carrier, "cors: {allowMethods: ['*']}") == {"vary": "Origin"}


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", SHOP)],
        [("access-control-request-method", "PUT")],
        [("origin", SHOP), ("access-control-request-method", "")],
    ],
)
def test_other_options_requests_go_on(headers: Pairs, carrier: Carrier) -> None:
    assert carrier.shared(text(FULL)).carry(Request("OPTIONS", "/", headers)).received.passed == Headers(headers)


def test_a_preflight_is_an_options_request(carrier: Carrier) -> None:
    request = Request("POST", "/", asking().headers)
    assert carrier.shared(text(FULL)).carry(request).received.method == "POST"


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
    methods: str,
    headers: str,
    credentials: bool,
    asked: str,
    methods_said: str,
    headers_said: str | None,
    carrier: Carrier,
) -> None:
    answer = preflight(
        carrier,
        f"cors: {{allowOrigins: ['{SHOP}'], allowMethods: [{methods}], allowHeaders: [{headers}], "
        f"allowCredentials: {str(credentials).lower()}}}",
        asking(headers=asked),
    )
    assert (answer.get("allow-methods"), answer.get("allow-headers")) == (methods_said, headers_said)


def test_only_lists_of_names_are_given_back(carrier: Carrier) -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}'], allowHeaders: ['*'], allowCredentials: true}}"
    assert "allow-headers" not in preflight(carrier, policy, asking(headers='x-a, "<script>"'))


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
def test_origins(origin: str, allowed: bool, carrier: Carrier) -> None:
    assert (said(response(carrier, FULL, origin)).get("allow-origin") == origin) is allowed


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
def test_written_origins(written: str, origin: str, allowed: bool, carrier: Carrier) -> None:
    policy = f"cors: {{allowOrigins: ['{written}']}}"
    assert ("allow-origin" in said(response(carrier, policy, origin))) is allowed


@pytest.mark.parametrize(
    ("credentials", "expected"),
    [
        ("false", {"allow-origin": "*", "vary": "Origin"}),
        ("true", {"allow-origin": "https://x.example", "allow-credentials": "true", "vary": "Origin"}),
    ],
)
def test_any_origin(credentials: str, expected: Said, carrier: Carrier) -> None:
    policy = f"cors: {{allowOrigins: ['*'], allowCredentials: {credentials}}}"
    assert said(response(carrier, policy, "https://x.example")) == expected


# --- responses


def test_an_allowed_origin_may_read_the_response(carrier: Carrier) -> None:
    assert said(response(carrier, FULL, upstream=[("x-page", "1")])) == {
        "x-page": "1",
        "vary": "Origin",
        "allow-origin": SHOP,
        "allow-credentials": "true",
        "expose-headers": "Mcp-Session-Id, X-Page",
    }


@pytest.mark.parametrize("origin", ["", "https://evil.example"])
def test_others_only_learn_that_it_varies(origin: str, carrier: Carrier) -> None:
    assert said(response(carrier, FULL, origin)) == {"vary": "Origin"}


UPSTREAM = [
    ("access-control-allow-origin", "*"),
    ("access-control-allow-credentials", "true"),
    ("access-control-expose-headers", "a"),
    ("access-control-allow-origin", "https://evil.example"),
    ("access-control-max-age", "9"),
]


@pytest.mark.parametrize("origin", ["", SHOP, "https://evil.example"])
def test_what_the_upstream_says_of_cors_is_replaced(origin: str, carrier: Carrier) -> None:
    own = said(response(carrier, FULL, origin))
    assert said(response(carrier, FULL, origin, [*UPSTREAM, ("x-a", "1")])) == {"x-a": "1", **own}


@pytest.mark.parametrize(
    ("vary", "expected"),
    [
        ("Accept-Encoding", ["Accept-Encoding", "Origin"]),
        ("accept, ORIGIN", ["accept, ORIGIN"]),
        ("*", ["*"]),
        ("x-origin", ["x-origin", "Origin"]),
    ],
)
def test_vary(vary: str, expected: list[str], carrier: Carrier) -> None:
    headers = response(carrier, FULL, upstream=[("vary", vary)])
    assert headers.all("vary") == expected
    assert headers["access-control-allow-origin"] == SHOP


@pytest.mark.parametrize(
    ("credentials", "expected"), [("false", {"*"}), ("true", {"content-type", "x-page", "content-length", "date"})]
)
def test_everything_exposed(credentials: str, expected: set[str], carrier: Carrier) -> None:
    policy = f"cors: {{allowOrigins: ['{SHOP}'], exposeHeaders: ['*'], allowCredentials: {credentials}}}"
    headers = response(carrier, policy, upstream=[("content-type", "text/plain"), ("x-page", "1")])
    exposed = headers["access-control-expose-headers"].split(", ")
    assert set(exposed) == expected and len(exposed) == len(expected)


@pytest.mark.parametrize(("credentials", "expected"), [("false", "*"), ("true", None)])
def test_a_preflight_names_what_is_exposed(credentials: str, expected: str | None, carrier: Carrier) -> None:
    """With credentials a `*` stands for the headers of a response, of which a preflight knows none."""
    policy = f"cors: {{allowOrigins: ['{SHOP}'], exposeHeaders: ['*'], allowCredentials: {credentials}}}"
    assert preflight(carrier, policy).get("expose-headers") == expected


def test_the_origin_counts_that_the_client_sent(carrier: Carrier) -> None:
    run = carrier.proxy(text(FULL + "headerModifiers: {request: {remove: [Origin]}}"))
    seen = run.carry(Request(headers=[("origin", SHOP)]))
    assert "origin" not in seen.received.headers
    assert said(seen.answer.headers)["allow-origin"] == SHOP


# --- whoever makes the response


@pytest.mark.parametrize(
    ("beside", "status"),
    [
        ("basicAuthentication: {users: ['me:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=']}", 401),
        ("authorization: {policy: {matchExpressions: ['false']}}", 403),
        ("rateLimit: {local: [{requests: 1, unit: Hours}]}", 429),
        ("", 503),
    ],
)
def test_answers_of_our_own_have_the_headers_too(beside: str, status: int, carrier: Carrier) -> None:
    run = carrier.proxy(text(FULL + beside))
    get = Request(headers=[("origin", SHOP)])
    if status == 429:
        assert run.ask(get, Response(200, last=True)).status == 200
    run.refuse_connections()
    answer = run.ask(get)
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers.all("vary") == ["Origin"]


def test_a_preflight_needs_no_credentials_and_no_backend(carrier: Carrier) -> None:
    run = carrier.proxy(text(FULL + "authorization: {policy: {matchExpressions: ['false']}}"))
    seen = run.carry(asking())
    assert seen.answer.status == 204 and seen.answer.ended
    assert "content-length" not in seen.answer.headers and run.connections == 0
    assert seen.reason == "CorsPreflight"


def test_a_response_passes_through(carrier: Carrier) -> None:
    headers = response(carrier, FULL, upstream=[("access-control-allow-origin", "*")])
    assert set(headers.starting("access-")) == {
        "access-control-allow-origin",
        "access-control-allow-credentials",
        "access-control-expose-headers",
    }
    assert headers["access-control-allow-origin"] == SHOP


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
