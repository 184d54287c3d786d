"""External authorization from YAML to exchange: what the server is asked, and what becomes of the request."""

from __future__ import annotations

import json
import logging
import textwrap
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.chain.calls import CallRequest
from dataplane.chain.filter import Env, Origin, Refused
from dataplane.chain.reach import SOCKETS, Reach, hint
from dataplane.filters.steps import ext_auth
from dataplane.filters.steps.ext_auth import cache
from dataplane.filters.steps.ext_auth.question import Question
from dataplane.filters.steps.ext_auth.verdict import Verdict
from dataplane.link.buckets import Buckets
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Answer, Carrier, Headers, Received, Request, Response
from tests.carriers.contract import Client
from tests.carriers.values import Pairs
from tests.fakes.calls import FakeCalls, answered, failed
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        extAuthz:
{policy}
      backends:
      - host: 127.0.0.1:9000
"""
PLAIN = """
host: 127.0.0.1:9001
protocol:
  http: {}
"""
BEARER = ("authorization", "Bearer t")
UP = Response(200, body=b"up")


def file(policy: str) -> str:
    return FILE.format(policy=textwrap.indent(textwrap.dedent(policy).strip("\n"), " " * 10))


def http(fields: str) -> str:
    """A policy with these fields of `protocol.http`."""
    return "host: 127.0.0.1:9001\nprotocol:\n  http:\n" + textwrap.indent(textwrap.dedent(fields).strip("\n"), " " * 4)


def message(*headers: tuple[str, str], method: str = "GET", target: str = "/shop/1?id=7", body: bytes = b"") -> Request:
    return Request(method, target, headers, body, authority="shop.example")


class Asking:
    """A proxy with the policy, and a server that answers as the test says."""

    def __init__(self, carrier: Carrier, policy: str = PLAIN, outcome: Any = None, text: str = "") -> None:
        """`text`: a whole file, instead of one with `policy`."""
        self.calls = FakeCalls(otherwise=answered() if outcome is None else outcome)
        self.run = carrier.proxy(text or file(policy), self.calls)
        self.answer = Answer()
        """What the client got for the last request."""

    def send(self, *headers: tuple[str, str], **rest: Any) -> Received | None:
        """What the backend gets of a request, None when it gets nothing. The backend's answer goes to the client."""
        before = len(self.run.arrivals)
        self.answer = self.run.ask(message(*headers, **rest), UP)
        return self.forwarded(before)

    def forwarded(self, before: int = 0) -> Received | None:
        arrivals = self.run.arrivals[before:]
        assert len(arrivals) <= 1
        return arrivals[0].received if arrivals else None

    def client(self) -> Client:
        return self.run.client(("192.0.2.8", 40001))


# What is asked.

Asked = tuple[str, str, str, Headers]
"""Method, target, authority and headers of a call."""


def asks(target: str = "/shop/1?id=7", authority: str = "", *headers: tuple[str, str]) -> Asked:
    return "GET", target, authority, Headers(headers)


def question(call: CallRequest) -> Asked:
    """What a call asks, without the letter case of names."""
    lines = (line.partition(b":") for line in call.headers.split(b"\r\n")[:-1])
    pairs = [(name.decode().lower(), value.strip().decode()) for name, _, value in lines]
    return call.method.decode(), call.target.decode(), call.authority.decode(), Headers(pairs)


QUESTIONS: dict[str, tuple[str, Pairs, Asked]] = {
    "by default the path of the request and its Authorization": (
        "{}",
        [BEARER, ("cookie", "a=1")],
        asks("/shop/1?id=7", "", BEARER),
    ),
    "a path": (
        'path: \'"/check?from=" + source.address + "&path=" + request.path\'',
        [],
        asks("/check?from=192.0.2.7&path=/shop/1"),
    ),
    "a path without its slash": ("path: '\"check\"'", [], asks("/check")),
    "a path that would end the line": (
        'path: \'"/c?" + request.headers["x-a"] + " HTTP/1.1\\r\\nx: #"\'',
        [("x-a", "\u00e4")],
        asks("/c?%C3%A4%20HTTP/1.1%0D%0Ax:%20%23"),
    ),
    "further headers of the client": (
        "allowedRequestHeaders: [X-A, cookie]",
        [("x-a", "1"), BEARER, ("x-a", "2"), ("x-b", "3")],
        asks("/shop/1?id=7", "", BEARER, ("x-a", "1"), ("x-a", "2")),
    ),
    "the headers of a body, where none is forwarded": (
        "{}",
        [("content-type", "text/plain"), ("content-encoding", "br")],
        asks(),
    ),
    "the client's host": (
        "allowedRequestHeaders: [host]",
        [],
        asks("/shop/1?id=7", "shop.example"),
    ),
    "computed headers": (
        """
        addRequestHeaders:
          x-from: source.address
          x-port: source.port
          x-plain: request.scheme == "http"
        """,
        [],
        asks("/shop/1?id=7", "", ("x-from", "192.0.2.7"), ("x-plain", "true"), ("x-port", "40000")),
    ),
    "a computed header that fails is not sent, nor the client's": (
        """
        allowedRequestHeaders: [x-user]
        addRequestHeaders:
          x-user: request.headers["x-nobody-sends-this"]
          authorization: request.headers["x-nor-this"]
        """,
        [("x-user", "root"), BEARER],
        asks(),
    ),
    "a computed header that would end its line is not sent": (
        "addRequestHeaders: {x-a: '\"1\\r\\nx-b: 2\"', x-c: '\" 3 \"'}",
        [],
        asks("/shop/1?id=7", "", ("x-c", "3")),
    ),
    "pseudo-headers": (
        """
        addRequestHeaders:
          ":authority": '"local-vpnd.sock"'
          ":method": request.method
          ":path": '"/v1"'
        """,
        [],
        asks("/v1", "local-vpnd.sock"),
    ),
    "pseudo-headers that fail or make no sense are not sent": (
        """
        allowedRequestHeaders: [host]
        addRequestHeaders:
          ":authority": '"a b"'
          ":method": '"GET /x"'
        """,
        [],
        asks(),
    ),
    "the server is asked no tunnel": (
        """addRequestHeaders: {":method": '"CONNECT"'}""",
        [],
        asks(),
    ),
}


@pytest.mark.parametrize(("fields", "headers", "asked"), QUESTIONS.values(), ids=QUESTIONS)
def test_what_the_server_is_asked(fields: str, headers: Pairs, asked: Asked, carrier: Carrier) -> None:
    it = Asking(carrier, http(fields) if fields != "{}" else PLAIN)
    it.send(*headers)
    (received,) = it.calls.received
    assert question(received.request) == asked
    assert (received.request.body, received.seconds) == (b"", 2)


def test_a_credential_of_the_query_is_taken_out_before_the_path_is_told(carrier: Carrier) -> None:
    keys = "{secretRef: {a: {value: k1}}, mode: Permissive, location: {queryParameter: {name: k}}}"
    text = file(PLAIN).replace("      backends:", f"        apiKeyAuthentication: {keys}\n      backends:")
    it = Asking(carrier, text=text)
    for target in ("/a?x=1&k=k1&y=2", "/a?k=other&x=1"):  # one that is not known stays where it is
        assert it.send(target=target) is not None
    assert it.calls.targets == [b"/a?x=1&y=2", b"/a?k=other&x=1"]


def test_the_method_of_the_call(carrier: Carrier) -> None:
    it = Asking(carrier, http('addRequestHeaders: {":method": request.method}'))
    it.send(method="DELETE")
    assert it.calls.last.method == b"DELETE"


def test_a_path_without_a_value_denies_whatever_the_failure_mode(carrier: Carrier) -> None:
    it = Asking(carrier, "failureMode: FailOpen\n" + http("path: request.headers['x-a']"))
    assert it.send() is None
    assert it.answer.status == 403 and not it.calls.received
    assert it.send(("x-a", "/a")) is not None


HOSTILE = http(
    """
    path: 'request.headers["x-path"]'
    allowedRequestHeaders: [x-path]
    addRequestHeaders:
      ":method": 'request.headers["x-path"]'
      ":authority": 'request.headers["x-path"]'
      x-added: 'request.headers["x-path"]'
    """
)


def test_whatever_a_client_sends_the_call_is_one_message(carrier: Carrier) -> None:
    it = Asking(carrier, HOSTILE)

    @given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(str.strip).filter(bool))
    @example("/a b#c")
    @example("*")
    @example("a@b:1/?\xe4")
    def check(text: str) -> None:
        calls = len(it.calls.received)  # the fake checks each
        it.send(("x-path", text))
        assert it.answer.status == 200 and len(it.calls.received) == calls + 1

    check()


# What becomes of the request.


def test_200_allows(carrier: Carrier) -> None:
    it = Asking(carrier)
    sent = it.send(BEARER)
    assert sent is not None and sent.headers.all("authorization") == ["Bearer t"]
    assert (it.answer.status, it.answer.body) == (200, b"up")


@pytest.mark.claims("errors: External authorization denies the request")
@pytest.mark.parametrize("status", [201, 204, 302, 401, 403, 404, 500])
def test_any_other_answer_denies(status: int, refused: Callable[..., None], carrier: Carrier) -> None:
    it = Asking(carrier, "failureMode: FailOpen" + PLAIN, answered(status, b"why", x_why="secret"))
    assert it.send() is None
    refused(it.answer)
    assert "x-why" not in it.answer.headers
    (line,) = it.run.log_lines()
    assert f'error="extAuth: the authorization server answered {status}" reason=ExtAuthDenied' in line


@pytest.mark.claims("errors: Daemon answers that it has no match")
def test_an_address_that_the_daemon_does_not_know(refused: Callable[..., None], carrier: Carrier) -> None:
    it = Asking(carrier, outcome=answered(404, b"no match for 192.0.2.7:40000"))
    it.send()
    refused(it.answer)


CAUSES = ("unresolved", "connect", "timeout", "lost", "invalid", "too_large")


@pytest.mark.claims("errors: External authorization server unavailable or erroring")
@pytest.mark.parametrize("cause", CAUSES)
def test_no_answer(cause: str, refused: Callable[..., None], carrier: Carrier) -> None:
    it = Asking(carrier, outcome=failed(cause, "10.0.0.1:9: it hangs"))
    assert it.send() is None
    refused(it.answer)
    (line,) = it.run.log_lines()
    assert 'error="extAuth: 10.0.0.1:9: it hangs" reason=ExtAuthFailed' in line


@pytest.mark.parametrize("cause", CAUSES)
def test_no_answer_and_fail_open(cause: str, carrier: Carrier) -> None:
    it = Asking(carrier, "failureMode: FailOpen\n" + http("allowedResponseHeaders: [x-user]"), failed(cause))
    sent = it.send(("x-user", "root"), ("x-other", "1"))
    assert sent is not None and sent.passed == {"x-other": "1"}


ENDS: dict[str, Callable[[MemoryProxy], None]] = {
    "is too large": lambda proxy: None,
    "breaks off": lambda proxy: proxy.connector.upstream.lose(),
    "does not come": lambda proxy: proxy.advance(2.1),
}


@pytest.mark.parametrize("status", [403, 500, 200])
@pytest.mark.parametrize("end", ENDS)
def test_a_denial_is_one_whatever_its_content_comes_to(end: str, status: int) -> None:
    """A server may repeat what a client has sent: a large page of an error opens no policy that fails open."""
    proxy = MemoryProxy(file("failureMode: FailOpen" + PLAIN))
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n")
    length = 2_000_000 if end == "is too large" else 9
    proxy.connector.upstream.send(b"HTTP/1.1 %d No\r\ncontent-length: %d\r\n\r\n" % (status, length))
    ENDS[end](proxy)
    if status == 200:
        proxy.connector.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nup")
    assert client.received.startswith(b"HTTP/1.1 200" if status == 200 else b"HTTP/1.1 403")


REDIRECTS = {
    "a page": ("'\"/login?from=\" + request.path'", "/login?from=/shop/1"),
    "a place with odd characters": (
        "'\"https://id.example/\\r\\nx: \" + request.host'",
        "https://id.example/%0D%0Ax:%20shop.example",
    ),
}


@pytest.mark.parametrize(("redirect", "location"), REDIRECTS.values(), ids=REDIRECTS)
def test_redirect_of_who_is_denied(redirect: str, location: str, carrier: Carrier) -> None:
    it = Asking(carrier, http(f"redirect: {redirect}"), answered(401))
    assert it.send() is None
    assert (it.answer.status, it.answer.headers["location"]) == (302, location)
    it.calls.otherwise = answered()
    assert it.send() is not None


def test_no_redirect_without_a_place_or_without_an_answer(carrier: Carrier) -> None:
    it = Asking(carrier, http("redirect: request.headers['x-a']"), answered(401))
    it.send()
    assert it.answer.status == 403
    it.calls.otherwise = failed("timeout")
    it.send(("x-a", "/login"))
    assert it.answer.status == 403


HEADERS = {
    "the answer's take the place of the client's": (
        {"x_user": "ann", "x_team": "blue", "x_more": "1"},
        {"x-user": "ann", "x-team": "blue", "x-more": "2"},
    ),
    "those that the answer lacks are the client's no more": ({}, {"x-more": "2"}),
}


@pytest.mark.parametrize(("given", "got"), HEADERS.values(), ids=HEADERS)
def test_headers_of_the_answer(given: dict[str, str], got: dict[str, str], carrier: Carrier) -> None:
    it = Asking(carrier, http("allowedResponseHeaders: [X-User, x-team]"), answered(200, b"", **given))
    sent = it.send(("x-user", "root"), ("x-user", "admin"), ("x-team", "red"), ("x-more", "2"))
    assert sent is not None and sent.passed == got


def test_trailers_do_not_pass_for_headers_that_the_server_is_shown(carrier: Carrier) -> None:
    run = carrier.proxy(file(http("allowedRequestHeaders: [X-Tenant]")), FakeCalls(otherwise=answered(200, b"")))
    trailers = [("x-tenant", "other"), ("x-more", "2")]
    run.send(Request("POST", "/shop/1", body=[b"a"], trailers=trailers, sized=False, authority="shop.example"))
    assert run.arrival.received.trailers == {"x-more": "2"}
    run.serve()


def test_trailers_do_not_pass_for_headers_of_the_answer(carrier: Carrier) -> None:
    calls = FakeCalls(otherwise=answered(200, b"", x_team="blue"))
    run = carrier.proxy(file(http("allowedResponseHeaders: [X-User, x-team]")), calls)
    trailers = [("x-user", "root"), ("x-team", "red"), ("x-more", "2")]
    asked = run.send(Request("POST", "/shop/1", body=[b"a"], trailers=trailers, sized=False, authority="shop.example"))
    assert run.arrival.received.trailers == {"x-more": "2"} and asked.answer.status is None
    run.serve()


METADATA = """
host: 127.0.0.1:9001
protocol:
  http: {}
metadata:
  node: json(response.body).Node.Name
  code: response.code
  team: response.headers["x-team"]
  asked: request.path
  absent: json(response.body).Nothing
"""


def test_metadata_for_later_expressions(carrier: Carrier) -> None:
    text = file(METADATA) + textwrap.dedent(
        """
        frontendPolicies:
          accessLog:
            add: {node: extauthz.node, all: toJson(extauthz)}
        """
    )
    it = Asking(carrier, outcome=answered(200, b'{"Node": {"Name": "laptop"}}', x_team="blue"), text=text)
    assert it.send() is not None
    (line,) = it.run.log_lines()
    assert " node=laptop " in line
    assert all(part in line for part in ("asked", "/shop/1", "200", "team", "blue")) and "absent" not in line


def test_metadata_is_read_by_authorization(carrier: Carrier) -> None:
    policy = http("{}").replace("    {}", "    allowedRequestHeaders: [x-a]") + textwrap.dedent(
        """
        metadata:
          user: json(response.body).user
        """
    )
    text = file(policy).replace(
        "      backends:",
        "        authorization: {policy: {matchExpressions: ['extauthz.user == \"ann\"']}}\n      backends:",
    )
    it = Asking(carrier, outcome=answered(200, b'{"user": "ann"}'), text=text)
    assert it.send() is not None and it.answer.status == 200
    it.calls.otherwise = answered(200, b'{"user": "bob"}')
    assert it.send() is None and it.answer.status == 403


# Bodies.

BODY = "forwardBody: {maxSize: 5}" + PLAIN


def test_a_body_is_forwarded_to_both(carrier: Carrier) -> None:
    it = Asking(carrier, BODY)
    sent = it.send(("content-type", "text/plain"), BEARER, method="POST", body=b"12345")
    asked = it.calls.last
    assert (asked.method, asked.body) == (b"POST", b"12345")
    assert question(asked)[3] == {"authorization": "Bearer t", "content-type": "text/plain"}
    assert sent is not None and (sent.headers["content-length"], sent.body) == ("5", b"12345")


@pytest.mark.parametrize("sized", [True, False])
def test_a_body_that_comes_later_is_waited_for(sized: bool, carrier: Carrier) -> None:
    it = Asking(carrier, BODY)
    asked = it.run.begin(message(*([("content-length", "5")] if sized else []), method="POST"))
    asked.content(b"123")
    assert not it.calls.received
    asked.content(b"45")
    asked.end()
    assert it.calls.last.body == b"12345"
    sent = it.forwarded()
    assert sent is not None and (sent.body, sent.ended) == (b"12345", True)
    it.run.serve(UP)
    assert asked.answer.body == b"up"


def test_no_tunnel_is_asked_for_about_a_tunnel() -> None:
    assert Question(traffic_pb2.ExtAuthHttp(), with_body=True).of(exchange("CONNECT")).method == b"GET"


def test_a_request_without_a_body(carrier: Carrier) -> None:
    it = Asking(carrier, BODY)
    assert it.send() is not None
    assert (it.calls.last.method, it.calls.last.body) == (b"GET", b"")


@pytest.mark.claims("errors: Body larger than")
@pytest.mark.parametrize("sized", [True, False])
def test_a_body_that_is_too_large(sized: bool, refused: Callable[..., None], carrier: Carrier) -> None:
    it = Asking(carrier, "failureMode: FailOpen\n" + BODY)
    if sized:
        asked = it.run.send(message(method="POST", body=b"123456"))
    else:
        asked = it.run.begin(message(method="POST"))
        asked.content(b"123456")
    refused(asked.answer)
    assert not it.calls.received and it.forwarded() is None


def test_a_body_that_a_step_before_has_read_is_measured_too(carrier: Carrier) -> None:
    reading = "mode: Permissive, location: {expression: string(request.body)}, secretRef: {a: {value: k}}"
    before = f"        apiKeyAuthentication: {{{reading}}}\n      backends:"
    text = file("failureMode: FailOpen\n" + BODY).replace("      backends:", before)
    it = Asking(carrier, text=text)
    assert it.send(method="POST", body=b"123456") is None and not it.calls.received
    assert it.answer.status == 413
    assert it.send(method="POST", body=b"12345") is not None and it.calls.last.body == b"12345"


def test_a_body_for_one_of_several_servers(carrier: Carrier) -> None:
    policy = CONDITIONAL.replace("{path: '\"/lax\"'}}", "{path: '\"/lax\"'}}\n    forwardBody: {maxSize: 5}")
    it = Asking(carrier, policy)
    for target, asked in (("/admin", b""), ("/shop", b"12345")):
        sent = it.send(method="POST", target=target, body=b"12345")
        assert it.calls.last.body == asked
        assert sent is not None and sent.body == b"12345"
    it.send(method="POST", target="/shop", body=b"123456")
    assert it.answer.status == 413


def test_an_expression_may_read_the_body(carrier: Carrier) -> None:
    it = Asking(carrier, http("path: '\"/\" + string(json(request.body).id)'"))
    sent = it.send(method="POST", body=b'{"id": 7}')
    assert it.calls.targets == [b"/7"] and it.calls.last.body == b""
    assert sent is not None and sent.body == b'{"id": 7}'


def test_metadata_may_read_the_body_of_the_request(carrier: Carrier) -> None:
    policy = PLAIN + "metadata: {id: json(request.body).id, size: size(response.body)}"
    text = file(policy) + "frontendPolicies: {accessLog: {add: {all: toJson(extauthz)}}}"
    it = Asking(carrier, outcome=answered(403, b"why"), text=text)
    assert it.send(method="POST", body=b'{"id": 7}') is None
    (line,) = it.run.log_lines()
    assert '{\\"id\\":7,\\"size\\":3}' in line and "ExtAuthDenied" in line


# The cache.


def cached(ttl: str = "1m", key: str = 'request.headers["authorization"]', more: str = "", entries: int = 2) -> str:
    return f"{PLAIN.strip()}\ncache:\n  key: ['{key}']\n  ttl: '{ttl}'\n  maxEntries: {entries}\n{more}"


def test_an_answer_is_kept_for_its_time(carrier: Carrier) -> None:
    it = Asking(carrier, cached())
    assert it.send(BEARER) is not None and len(it.calls.received) == 1
    it.run.advance(59)
    assert it.send(BEARER) is not None and len(it.calls.received) == 1
    it.run.advance(2)
    assert it.send(BEARER) is not None and len(it.calls.received) == 2


KEPT = {200: True, 401: True, 403: True, 204: False, 302: False, 404: False, 500: False, 503: False}


@pytest.mark.parametrize(("status", "kept"), KEPT.items())
def test_which_answers_are_kept(status: int, kept: bool, carrier: Carrier) -> None:
    it = Asking(carrier, cached(), answered(status))
    assert [it.send(BEARER) is not None for _ in range(2)] == [status == 200] * 2
    assert len(it.calls.received) == (1 if kept else 2)


def test_a_kept_answer_does_all_that_the_answer_did(carrier: Carrier) -> None:
    policy = cached("extauthz.ttl", more="metadata: {ttl: json(response.body).ttl}").replace(
        "{}", "{allowedResponseHeaders: [x-user]}"
    )
    it = Asking(carrier, policy, answered(200, b'{"ttl": "30s"}', x_user="ann"))
    for _ in range(2):
        sent = it.send(BEARER, ("x-user", "root"))
        assert sent is not None and sent.headers.all("x-user") == ["ann"]
    assert len(it.calls.received) == 1
    it.run.advance(31)
    it.send(BEARER)
    assert len(it.calls.received) == 2


def test_the_redirect_of_a_kept_denial_is_of_the_request(carrier: Carrier) -> None:
    it = Asking(carrier, cached().replace("{}", "{redirect: request.path}"), answered(401))
    for target in ("/a", "/b"):
        it.send(BEARER, target=target)
        assert it.answer.headers["location"] == target
    assert len(it.calls.received) == 1


# The clock of the proxy in memory stands at 1000 s since the epoch.
TIMES = {
    "a duration": ("90s", 90),
    "a long duration": ("1h30m", 5400),
    "an expression that gives a duration": ('duration("90s")', 90),
    "an expression that gives text": ('"1m30s"', 90),
    "a moment": ("timestamp(1090)", 90),
    "a moment as text": ('"1970-01-01T00:18:10Z"', 90),
    "seconds since the epoch": ("1090", 90),
    "fractions of them": ("1090.0", 90),
    "nothing": ("0s", 0),
    "a time that was": ("999", 0),
    "no text of either kind": ('"soon"', 0),
    "a failing expression": ("extauthz.nothing", 0),
    "an endless number": ("1.0 / 0.0", 0),
}


@pytest.mark.parametrize(("ttl", "seconds"), TIMES.values(), ids=TIMES)
def test_times_to_live(ttl: str, seconds: int, carrier: Carrier) -> None:
    it = Asking(carrier, cached(ttl))
    assert it.send(BEARER) is not None
    if seconds:
        it.run.advance(seconds - 1)
        assert it.send(BEARER) is not None
        assert len(it.calls.received) == 1
        it.run.advance(2)
    assert it.send(BEARER) is not None
    assert len(it.calls.received) == 2


# Expression, two heads, whether they are one key (None: no key at all).
KEYS: dict[str, tuple[str, Pairs, Pairs, bool | None]] = {
    "equal text": ('request.headers["x-a"]', [("x-a", "1")], [("x-a", "1")], True),
    "other text": ('request.headers["x-a"]', [("x-a", "1")], [("x-a", "2")], False),
    "long text": ('request.headers["x-a"]', [("x-a", "1" * 500)], [("x-a", "1" * 500)], True),
    "other long text": (
        'request.headers["x-a"]',
        [("x-a", "1" * 500)],
        [("x-a", "1" * 501)],
        False,
    ),
    "types": ('request.headers["x-a"] == "1" ? dyn(1) : dyn(true)', [("x-a", "1")], [("x-a", "2")], False),
    "truth": ('request.headers["x-a"] == "1"', [("x-a", "2")], [("x-a", "3")], True),
    "numbers": ('int(request.headers["x-a"])', [("x-a", "1")], [("x-a", "01")], True),
    "bytes": ('bytes(request.headers["x-a"])', [("x-a", "1")], [("x-a", "1")], True),
    "an absent header": ('request.headers["x-a"]', [], [], None),
    "a list": ('[request.headers["x-a"]]', [("x-a", "1")], [("x-a", "1")], None),
    "nothing": ("null", [], [], None),
    "not a number": ("0.0 / 0.0", [], [], None),
}


@pytest.mark.parametrize(("key", "one", "other", "same"), KEYS.values(), ids=KEYS)
def test_keys(key: str, one: Pairs, other: Pairs, same: bool | None, carrier: Carrier) -> None:
    it = Asking(carrier, cached(key=key))
    it.send(*one)
    it.send(*one)
    assert len(it.calls.received) == (2 if same is None else 1)
    it.send(*other)
    assert len(it.calls.received) == {None: 3, True: 1, False: 2}[same]


SECRETS = {
    "by itself": ("jwt.rawToken", 2),
    "shown": ("jwt.rawToken.unredacted()", 2),
    "within a text, which hides it": ('"token " + jwt.rawToken', 4),
}


@pytest.mark.parametrize(("key", "calls"), SECRETS.values(), ids=SECRETS)
def test_secrets_in_keys_tell_clients_apart(key: str, calls: int, carrier: Carrier) -> None:
    issuer = Issuer()
    jwt = json.dumps({"providers": [{"issuer": ISSUER, "jwks": {"inline": issuer.key_set()}}]})
    text = file(cached(key=key)).replace("      backends:", f"        jwtAuthentication: {jwt}\n      backends:")
    it = Asking(carrier, text=text)
    for user in ("ann", "bob"):
        for _ in range(2):
            token = issuer.token(sub=user, exp=1060)  # the proxy's clock stands at 1000
            assert it.send(("authorization", f"Bearer {token}")) is not None
    assert len(it.calls.received) == calls
    assert "ann" not in repr(it.calls.received)


def test_the_digest_of_a_long_body_is_not_the_body(carrier: Carrier) -> None:
    it = Asking(carrier, "forwardBody: {maxSize: 1000}\n" + cached(key="request.body"))
    long = b"x" * 200
    for body in (long, blake2b(long, digest_size=32).digest()):
        assert it.send(method="POST", body=body) is not None
    assert len(it.calls.received) == 2


def test_the_least_recently_used_is_dropped(carrier: Carrier) -> None:
    it = Asking(carrier, cached(entries=2))
    for name, calls in (("a", 1), ("b", 2), ("a", 2), ("c", 3), ("a", 3), ("b", 4)):
        it.send(("authorization", name))
        assert len(it.calls.received) == calls, name


def test_kept_answers_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, carrier: Carrier) -> None:
    """Clients choose how many there are, the server how large they are."""
    monkeypatch.setattr(cache, "MOST_BYTES", 2500)
    it = Asking(
        carrier, cached(entries=100, more="metadata: {body: string(response.body)}"), answered(body=b"x" * 1000)
    )
    for name, calls in (("a", 1), ("b", 2), ("a", 2), ("c", 3), ("a", 3), ("b", 4)):
        it.send(("authorization", name))
        assert len(it.calls.received) == calls, name
    it.calls.otherwise = answered(body=b"x" * 3000)
    for calls in (5, 6):
        assert it.send(("authorization", "large")) is not None and len(it.calls.received) == calls


def test_what_a_kept_answer_adds_to_requests_is_bounded_too(monkeypatch: pytest.MonkeyPatch, carrier: Carrier) -> None:
    """Headers count twice: they are kept as they came and in lower case."""
    monkeypatch.setattr(cache, "MOST_BYTES", 5000)
    policy = cached(entries=100).replace("{}", "{allowedResponseHeaders: [x-user]}")
    it = Asking(carrier, policy, answered(200, x_user="u" * 1000))
    for name, calls in (("a", 1), ("b", 2), ("a", 2), ("c", 3), ("a", 3), ("b", 4)):
        sent = it.send(("authorization", name))
        assert sent is not None and sent.headers["x-user"] == "u" * 1000
        assert len(it.calls.received) == calls, name


def test_what_the_server_adds_is_there_for_the_next_step(carrier: Carrier) -> None:
    text = file(PLAIN.replace("{}", "{allowedResponseHeaders: [X-User]}")).replace(
        "      backends:",
        '        authorization: {policy: {matchExpressions: [\'request.headers["x-user"] == "ann"\']}}\n'
        "      backends:",
    )
    it = Asking(carrier, outcome=answered(200, X_User="ann"), text=text)
    assert it.send() is not None
    it.calls.otherwise = answered(200, x_user="bob")
    assert it.send(("x-user", "ann")) is None and it.answer.status == 403


def test_what_is_kept_weighs_what_is_there() -> None:
    kept = cache.Cache(2)
    verdicts = [Verdict(size=size) for size in (1, 10, 100, 1000)]
    for key, verdict in (("a", 0), ("a", 1), ("b", 2), ("c", 3)):
        kept.put(key, verdicts[verdict], 1.0)
    assert (kept.size, len(kept.entries)) == (1100, 2)
    assert kept.get("c", 0.999) is verdicts[3]
    assert kept.get("b", 1.0) is None and kept.size == 1000, "at its moment of expiry it counts no more"


def test_one_asks_and_the_others_wait_for_its_answer(carrier: Carrier) -> None:
    it = Asking(carrier, cached(), answered(401))
    it.calls.hold = True
    asked = [it.client().send(message(BEARER)) for _ in range(5)]
    assert len(it.calls.received) == 1
    it.calls.release()
    assert [each.answer.status for each in asked] == [403] * 5
    assert len(it.calls.received) == 1


def test_others_wait_for_a_failure_too(carrier: Carrier) -> None:
    it = Asking(carrier, "failureMode: FailOpen\n" + cached(), failed("timeout"))
    it.calls.hold = True
    for _ in range(3):
        it.client().send(message(BEARER))
    assert len(it.run.arrivals) == 0
    it.calls.release()
    assert len(it.calls.received) == 1 and len(it.run.arrivals) == 3


def test_when_the_one_who_asked_is_gone_another_asks_for_all(carrier: Carrier) -> None:
    it = Asking(carrier, cached(), answered(401))
    it.calls.hold = True
    clients = [it.client() for _ in range(4)]
    asked = [client.send(message(BEARER)) for client in clients]
    assert len(it.calls.received) == 1
    it.calls.hold = False
    asked[0].cancel()
    assert len(it.calls.received) == 2
    assert [(each.answer.status, each.answer.ended) for each in asked[1:]] == [(403, True)] * 3


@pytest.mark.parametrize(("ttl", "status"), [("0s", 200), ("1m", 404)])
def test_whoever_waited_for_an_answer_that_is_not_kept_asks(ttl: str, status: int, carrier: Carrier) -> None:
    it = Asking(carrier, cached(ttl), answered(status))
    it.calls.hold = True
    for _ in range(3):
        it.client().send(message(BEARER))
    it.calls.hold = False
    it.calls.release()
    assert len(it.calls.received) == 3 and len(it.run.arrivals) == (3 if status == 200 else 0)


def test_other_keys_do_not_wait(carrier: Carrier) -> None:
    it = Asking(carrier, cached())
    it.calls.hold = True
    for name in ("a", "b"):
        it.client().send(message(("authorization", name)))
    assert it.calls.waiting == 2


def test_answers_outlive_a_swap_unless_the_policy_changed(carrier: Carrier) -> None:
    it = Asking(carrier, cached())
    it.send(BEARER)
    it.run.load(file(cached()).replace("9000", "9009"))
    it.send(BEARER)
    assert len(it.calls.received) == 1
    it.run.load(file(cached("2m")))
    it.send(BEARER)
    assert len(it.calls.received) == 2


def test_the_cache_does_not_show_what_it_keeps() -> None:
    kept = cache.Cache(3)
    kept.put(("token",), Verdict(metadata={"user": "secret"}), 1.0)
    assert repr(kept) == "Cache(1 of 3)"


# Conditions.

CONDITIONAL = """
conditional:
- condition: request.path.startsWith("/admin")
  policy:
    host: 127.0.0.1:9002
    protocol: {http: {path: '"/strict"'}}
- condition: request.path.startsWith("/shop")
  policy:
    host: 127.0.0.1:9003
    protocol: {http: {path: '"/lax"'}}
"""


@pytest.mark.parametrize(("target", "asked"), [("/admin", [b"/strict"]), ("/shop", [b"/lax"]), ("/", [])])
def test_the_first_item_whose_condition_is_true(target: str, asked: list[bytes], carrier: Carrier) -> None:
    it = Asking(carrier, CONDITIONAL)
    assert it.send(target=target) is not None
    assert it.calls.targets == asked


# The log.


@pytest.mark.claims("errors: Socket of the daemon missing or inaccessible")
def test_a_server_that_is_lost_is_told_once(
    caplog: pytest.LogCaptureFixture, refused: Callable[..., None], carrier: Carrier
) -> None:
    it = Asking(carrier, outcome=failed("connect", "connect to unix:/tmp/d.sock failed: No such file or directory"))
    with caplog.at_level(logging.INFO, "dataplane.ext_auth"):
        for _ in range(3):
            it.send()
            refused(it.answer)
        it.run.load(file(PLAIN).replace("9000", "9009"))  # what was told stays told
        it.send()
        assert len(caplog.messages) == 1 and "d.sock failed" in caplog.text and SOCKETS["linux"] in caplog.text
        it.calls.otherwise = answered()
        for _ in range(3):
            it.send()
        assert len(caplog.messages) == 2 and "answers again" in caplog.messages[1]


def test_a_worker_that_takes_the_place_of_one_that_told_tells_that_the_server_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sign = Buckets.local().sign("lost")
    for _ in range(2):
        Reach("ext_auth", "the authorization server", "backend", lambda: 1.0, sign).failed("policy", failed("timeout"))
    for _ in range(2):
        next_one = Reach("ext_auth", "the authorization server", "backend", lambda: 2.0, sign)
        assert next_one.lost
        next_one.answered("policy")
    assert [message.partition("server ")[2][:7] for message in caplog.messages] == ["gives n", "answers"]


@pytest.mark.parametrize(
    ("platform", "text", "usual"),
    [
        ("linux", "connect to unix:/x failed", SOCKETS["linux"]),
        ("darwin", "connect to unix:/x failed", SOCKETS["darwin"]),
        ("linux", "connect to 10.0.0.1:80 failed", ""),
    ],
)
def test_the_usual_path_is_named_for_sockets(platform: str, text: str, usual: str) -> None:
    told = hint(failed("connect", text), platform)
    assert usual in told if usual else told == ""


# What cannot be built.


def config(**http: Any) -> traffic_pb2.ExtAuth:
    return traffic_pb2.ExtAuth(backend="backend/a", http=traffic_pb2.ExtAuthHttp(**http))


REFUSED = {
    "no server": (traffic_pb2.ExtAuth(http=traffic_pb2.ExtAuthHttp()), "backendRef: there is no authorization server"),
    "no protocol": (traffic_pb2.ExtAuth(backend="backend/a"), "the protocol is not one"),
    "an expression": (config(path="request.nothing"), "http.path: "),
    "a header name": (
        config(allowed_request_headers=["a b"]),
        "http.allowedRequestHeaders: 'a b' is not a header name",
    ),
    "a header of the hop": (config(allowed_response_headers=["Connection"]), "Connection belongs to the connection"),
    "the host": (config(allowed_response_headers=["host"]), "http.allowedResponseHeaders: the host"),
    "an added host": (config(add_request_headers={"host": '"a"'}), "host is written :authority"),
    "a pseudo-header": (config(add_request_headers={":scheme": '"https"'}), ":scheme is not one of"),
    "a cache without a key": (
        traffic_pb2.ExtAuth(
            backend="backend/a", http=traffic_pb2.ExtAuthHttp(), cache=traffic_pb2.ExtAuthCache(ttl="5m")
        ),
        "cache.key: is empty",
    ),
    "a time to live": (
        traffic_pb2.ExtAuth(
            backend="backend/a",
            http=traffic_pb2.ExtAuthHttp(),
            cache=traffic_pb2.ExtAuthCache(key=["source.address"], ttl="5 minutes"),
        ),
        "cache.ttl: ",
    ),
}


@pytest.mark.parametrize(("message", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_built(message: traffic_pb2.ExtAuth, why: str) -> None:
    env = Env(lambda: 0.0, lambda: 0.0, FakeCalls())
    with pytest.raises(Refused) as refused:
        ext_auth.build(message, env)
    assert why in str(refused.value)


def test_nobody_to_call() -> None:
    with pytest.raises(Refused):
        ext_auth.build(config(), Env(lambda: 0.0, lambda: 0.0))


def test_the_detail_names_the_policy() -> None:
    env = Env(lambda: 0.0, lambda: 0.0, FakeCalls(otherwise=answered(403)))
    origin = Origin("GatewayPolicy shop/auth", "ext_auth", "gateway/default/web", "d")
    built = ext_auth.build(config(), replace(env, origin=origin))
    assert built is not None
