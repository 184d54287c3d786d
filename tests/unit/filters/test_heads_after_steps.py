"""The blocks of heads after the steps of policies: their bytes, and the lower-case twin that must follow each edit."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from dataplane.chain.filter import Env
from dataplane.exchange import Exchange
from dataplane.filters.steps import transformation
from dataplane.http.heads import Head
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer
from tests.harness import yamls

HOST = b"\r\nHost: a.example\r\n"


def passed(route: str, headers: bytes, **request: Any) -> Exchange:
    """An exchange with these header lines after the request steps, which let it pass."""
    x = exchange(headers=headers, **request)
    assert PolicyRun(route).request(x) is None
    assert x.request.low == x.request.block.lower()
    return x


def responded(route: str, headers: bytes, status: int = 200) -> Head:
    """The head of a response with these lines after the response steps."""
    head = PolicyRun(route).respond(status, headers).response
    assert head is not None and head.low == head.block.lower()
    return head


MODIFIERS = """
policies:
  headerModifiers:
    request:
      set: [{name: X-Set, value: new}, {name: Accept, value: "*/*"}]
      add: [{name: x-add, value: "a, b"}]
      remove: [X-Gone, x-absent]
    response:
      set: [{name: server, value: gw}]
      add: [{name: X-Added, value: "1"}]
      remove: [x-internal]
"""


def test_header_modifiers() -> None:
    sent = b"X-set: old\r\naccept: text/html\r\nx-gone: 1\r\nX-Add: mine\r\nx-keep: 1\r\nX-GONE: 2\r\nx-set: older\r\n"
    block = passed(MODIFIERS, sent).request.block
    assert block == HOST + b"X-Add: mine\r\nx-keep: 1\r\nx-add: a, b\r\nX-Set: new\r\nAccept: */*\r\n"
    came = b"Server: x\r\nX-Internal: 1\r\ncontent-length: 0\r\nx-added: 0\r\n"
    assert responded(MODIFIERS, came).block == b"\r\ncontent-length: 0\r\nx-added: 0\r\nX-Added: 1\r\nserver: gw\r\n"
    assert responded(MODIFIERS, b"", 204).items() == [(b"x-added", b"1"), (b"server", b"gw")]


def test_a_host_that_is_set_is_canonical_for_the_router() -> None:
    x = passed("policies: {headerModifiers: {request: {set: [{name: Host, value: 'Other.example:81'}]}}}", b"")
    assert (x.authority, x.host) == (b"Other.example:81", b"other.example")
    assert x.request.get_all(b"host") == [b"Other.example:81"]


@pytest.mark.parametrize("upstream", [b"", b"X-Page: 1\r\nAccess-Control-Allow-Origin: *\r\nVary: accept\r\n"])
def test_cors(upstream: bytes) -> None:
    run = PolicyRun("policies: {cors: {allowOrigins: ['https://shop.example'], exposeHeaders: ['*']}}")
    x = exchange(headers=b"Origin: https://shop.example\r\n")
    assert run.request(x) is None
    x.status, x.response = 200, Head(b"\r\n" + upstream)
    assert x.policies.chain.response(x) is None
    assert x.response.low == x.response.block.lower()
    assert x.response.get(b"access-control-allow-origin") == b"https://shop.example"


ANN = Issuer()
BASIC = base64.b64encode(b"ann:password").decode()
LOGINS: dict[str, tuple[dict[str, Any], str]] = {
    "jwt": (
        {"jwtAuthentication": {"providers": [{"issuer": ISSUER, "jwks": {"inline": ANN.key_set()}}]}},
        f"Authorization: Bearer {ANN.token(sub='ann')}",
    ),
    "basic": (
        {"basicAuthentication": {"users": ["ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="]}},
        f"Authorization: Basic {BASIC}",
    ),
    "apiKey": ({"apiKeyAuthentication": {"secretRef": {"ann": {"value": "k"}}}}, "authorization:Bearer k"),
}


@pytest.mark.parametrize("case", LOGINS)
def test_a_credential_is_cut_out_and_the_rest_stays_as_it_is(case: str) -> None:
    policies, line = LOGINS[case]
    headers = f"accept: */*\r\n{line}\r\nX-Last: 1\r\n".encode()
    x = passed(yamls.dump({"policies": policies}), headers)
    assert x.request.block == HOST + b"accept: */*\r\nX-Last: 1\r\n"


@pytest.mark.parametrize("line", ["x-token:{}", "X-TOKEN: {} ", "X-Token: \t{}\t"])
def test_a_credential_is_found_whatever_blanks_are_around_it(line: str) -> None:
    policy = {
        "providers": [{"issuer": ISSUER, "jwks": {"inline": ANN.key_set()}}],
        "location": {"header": {"name": "X-Token"}},
    }
    route = yamls.dump({"policies": {"jwtAuthentication": policy}})
    assert passed(route, line.format(ANN.token()).encode() + b"\r\n").request.block == HOST


def test_a_credential_that_is_refused_stays() -> None:
    for policies, _ in LOGINS.values():
        x = exchange(headers=b"Authorization: Bearer no\r\nauthorization: Basic no\r\n")
        assert PolicyRun(yamls.dump({"policies": policies})).request(x) is not None
        assert b"Authorization: Bearer no\r\nauthorization: Basic no\r\n" in x.request.block
        assert x.attributes is None


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize(
    ("fields", "headers", "expected"),
    [
        ("set: [{name: x-a, value: \"'1'\"}]", b"X-A: 0\r\nx-a: 2\r\nb: 1\r\n", b"b: 1\r\nx-a: 1\r\n"),
        ("set: [{name: X-A, value: '1 + 2'}]", b"x-a: 0\r\n", b"x-a: 3\r\n"),
        ("add: [{name: x-a, value: '2'}]", b"X-A: 0\r\n", b"x-a: 0\r\nx-a: 2\r\n"),
        ("remove: [X-A, x-c]", b"x-a: 0\r\nx-b: 1\r\nX-a: 2\r\n", b"x-b: 1\r\n"),
        ("set: [{name: x-a, value: \"'\\u00e9'\"}]", b"", b"x-a: \xc3\xa9\r\n"),
    ],
)
def test_transformations(side: str, fields: str, headers: bytes, expected: bytes) -> None:
    route = f"policies: {{transformation: {{{side}: {{{fields}}}}}}}"
    head = responded(route, headers) if side == "response" else passed(route, headers).request
    items = head.items() if side == "response" else head.items()[1:]
    assert items == [tuple(line.split(b": ")) for line in expected.split(b"\r\n")[:-1]]


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("operation", ["set", "add"])
@pytest.mark.parametrize("value", ["[1, 2]", "null", r"'a\r\nx-evil: 1'", "request.headers['x-none']"])
def test_a_transformation_without_a_value_leaves_no_line(side: str, operation: str, value: str) -> None:
    """Also of a type that the API refuses and the wire could carry."""
    config = traffic_pb2.Transformation()
    getattr(getattr(config, side), operation).add(name="X-User", value=value)
    made = transformation.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))
    assert made is not None
    x = exchange(headers=b"x-user: root\r\nX-USER: admin\r\n")
    x.response = exchange(headers=b"x-user: root\r\nX-USER: admin\r\n").request
    hook = made.request or made.response
    assert hook is not None and hook(x) is None
    head = x.request if side == "request" else x.response
    assert head.get_all(b"x-user") == [] and b"evil" not in head.block
    assert head.low == head.block.lower()


def test_all_places_agree_after_a_transformation() -> None:
    fields = [
        "':path', value: \"'/b/../n?m=1'\"",
        "':authority', value: \"'B.Example:81'\"",
        "':scheme', value: \"'https'\"",
    ]
    entries = ", ".join(f"{{name: {field}}}" for field in fields)
    x = passed(f"policies: {{transformation: {{request: {{set: [{entries}]}}}}}}", b"", path="/p")
    assert (x.path, x.query, x.target) == (b"/n", b"m=1", b"/n?m=1")
    assert (x.authority, x.host) == (b"B.Example:81", b"b.example")
    assert x.request_uri == "https://B.Example:81/n?m=1"


def test_all_places_agree_after_a_rewrite() -> None:
    path = "path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}"
    rewrite = f"policies: {{urlRewrite: {{hostname: b.example, {path}}}}}"
    route = f"matches: [{{path: {{type: PathPrefix, value: /p}}}}]\n{rewrite}"
    x = passed(route, b"x: 1\r\n", path="/p/q", query="r")
    assert (x.path, x.query, x.target) == (b"/new/q", b"r", b"/new/q?r")
    assert (x.authority, x.host) == (b"b.example", b"b.example")
    assert x.request.items() == [(b"x", b"1"), (b"host", b"b.example")]
