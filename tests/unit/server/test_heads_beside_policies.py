"""What policies leave of the bytes of HTTP/1.1 heads: status lines with their phrases, order and letter case of lines,
and requests that only HTTP/1 can carry."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.chain.calls import CallRequest
from tests.carriers import Names
from tests.fakes.calls import FakeCalls, answered
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import served, text_of

GET = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nx-name: Bo\r\n\r\n"


# --- direct responses


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ("{status: 200}", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("{status: 204, body: a}", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("{status: 205, body: a}", b"HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n"),
        ("{status: 304, bodyExpression: \"'a'\"}", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        (
            "{status: 404, body: gone}",
            b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ngone",
        ),
        (
            "{status: 503, headers: [{name: Retry-After, value: '30'}, {name: x-path, value: request.path}]}",
            b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nRetry-After: 30\r\nx-path: /a\r\n\r\n",
        ),
    ],
)
def test_direct_responses(fields: str, answer: bytes) -> None:
    client = MemoryProxy(text_of(f"policies: {{directResponse: {fields}}}")).connect()
    client.send(GET)
    assert re.sub(rb"date: [^\r]*\r\n", b"", client.received) == answer


def test_a_direct_response_asks_for_the_body_that_it_reads() -> None:
    echo = "policies: {directResponse: {status: 200, bodyExpression: request.body}}"
    client = MemoryProxy(text_of(echo)).connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"abcd")
    assert client.take().endswith(b"\r\n\r\nabcd")


# --- CSRF


def test_what_a_forger_gets() -> None:
    client = MemoryProxy(served("policies: {csrf: {}}")).connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nSec-Fetch-Site: cross-site\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 22\r\n")
    assert client.received.endswith(b"\r\n\r\nCSRF validation failed")


def test_an_origin_is_not_that_of_a_request_without_a_host() -> None:
    client = MemoryProxy(served("policies: {csrf: {}}")).connect()
    client.send(b"POST / HTTP/1.0\r\nContent-Length: 0\r\nOrigin: http://a.example\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 403 ") and client.received.endswith(b"\r\n\r\nCSRF validation failed")


# --- host rewrite

CLIENT = b"GET / HTTP/1.1\r\nHost: client.example:8080\r\nx-before: 1\r\n\r\n"
NAMED = "policies: {}\nbackends: [{host: 'api.example:9000'}]"


def test_a_rewritten_host_leaves_the_other_bytes_of_the_head() -> None:
    seen = {}
    for mode in ("Auto", "None"):
        proxy = MemoryProxy(served(f"policies: {{hostRewrite: {{mode: {mode}}}}}"))
        proxy.context.request_id = lambda: b"id"
        proxy.connect().send(CLIENT)
        seen[mode] = proxy.upstream.received
    assert seen["Auto"] == seen["None"].replace(b"Host: client.example:8080", b"host: 127.0.0.1:9000")


def test_a_request_without_a_host_gets_one() -> None:
    proxy = MemoryProxy(text_of(NAMED))
    proxy.context.resolver = Names({"api.example": ["10.0.0.1"]})  # type: ignore[assignment]
    proxy.connect().send(b"GET / HTTP/1.0\r\nx-before: 1\r\n\r\n")
    head = proxy.upstream.received.partition(b"\r\n\r\n")[0]
    assert re.findall(rb"(?i)\r\nhost: ([^\r]*)", head) == [b"api.example:9000"]
    assert b"x-forwarded-host" not in head.lower()


# --- header modifiers


def test_edits_of_a_listener_come_before_those_of_a_route() -> None:
    proxy = MemoryProxy("""
binds:
- port: 8080
  listeners:
  - policies: {headerModifiers: {response: {set: [{name: x-from, value: listener}], add: [{name: x-way, value: a}]}}}
    routes:
    - policies:
        directResponse: {status: 204}
        headerModifiers: {response: {set: [{name: x-from, value: route}], add: [{name: x-way, value: b}]}}
""")
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    lines = client.take().split(b"\r\n")
    assert [line for line in lines if line.startswith(b"x-")] == [b"x-way: a", b"x-way: b", b"x-from: route"]


# --- redirects


@pytest.mark.parametrize("path", ["//evil.example/x", "///evil.example/x", "/p//evil.example/x"])
def test_a_redirect_of_a_request_without_a_host_names_no_other_host(path: str) -> None:
    prefix = "/p" if path.startswith("/p") else "/"
    fields = "{path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}" if prefix == "/p" else "{statusCode: 302}"
    match = f"matches: [{{path: {{type: PathPrefix, value: {prefix}}}}}]"
    client = MemoryProxy(text_of(f"{match}\npolicies: {{requestRedirect: {fields}}}", 80)).connect()
    client.send(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert client.received.startswith(b"HTTP/1.1 302 ")
    assert b"\r\nlocation: /evil.example/x\r\n" in client.received


# --- transformations

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def transformed(response: str, answer: bytes = OK, request: bytes = GET) -> bytes:
    proxy = MemoryProxy(served(f"policies: {{transformation: {{response: {response}}}}}"))
    client = proxy.connect()
    client.send(request)
    proxy.upstream.answer(answer)
    return client.received


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("'404'", b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nok"),
        ("response.code + 1", b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
        ("204", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ],
)
def test_a_status_that_is_set_has_its_own_phrase(value: str, expected: bytes) -> None:
    assert transformed(f"{{set: [{{name: ':status', value: \"{value}\"}}]}}") == expected


def test_the_same_body_leaves_the_bytes_of_a_response() -> None:
    assert transformed("{body: response.body}") == OK


@pytest.mark.parametrize(
    ("request_", "answer", "expected"),
    [
        (
            GET.replace(b"GET", b"HEAD"),
            b"HTTP/1.1 200 OK\r\nETag: 1\r\nContent-Length: 9\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
        ),
        (GET, b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        (GET, b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ],
)
def test_heads_without_a_body_say_nothing_of_one_that_would_be_made(
    request_: bytes, answer: bytes, expected: bytes
) -> None:
    assert transformed("{body: \"string(response.body) + '!'\"}", answer, request_) == expected


def test_a_status_of_our_own_answers_has_its_phrase() -> None:
    proxy = MemoryProxy(served("policies: {transformation: {response: {set: [{name: ':status', value: '404'}]}}}"))
    proxy.connector.refuse = "refused"
    client = proxy.connect()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert client.received.endswith(b"\r\n\r\nupstream connection failed")


def test_a_line_that_is_set_comes_last() -> None:
    proxy = MemoryProxy(
        served("policies: {transformation: {request: {set: [{name: host, value: \"'B.Example:81'\"}]}}}")
    )
    proxy.connect().send(GET)
    head = proxy.upstream.received
    assert b"\r\nhost: B.Example:81\r\n" in head and head.lower().count(b"\r\nhost:") == 1
    assert head.startswith(b"GET /a?b=c HTTP/1.1\r\n") and b"\r\nx-forwarded-host: a\r\n" in head


# --- external authorization

EXT_AUTH = """
policies:
  extAuthz:
    host: 127.0.0.1:9001
    protocol:
      http: {}
"""


def asking(fields: str) -> tuple[MemoryProxy, FakeCalls]:
    """A proxy that asks a server, with these fields of `protocol.http`."""
    calls = FakeCalls(otherwise=answered())
    return MemoryProxy(served(EXT_AUTH.replace("{}", fields)), calls=calls), calls


def test_the_server_gets_lines_as_the_client_wrote_them() -> None:
    proxy, calls = asking("{allowedRequestHeaders: [X-A, cookie]}")
    bearer = b"Authorization: Bearer t\r\n"
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\nx-a: 1\r\n" + bearer + b"X-A:2\r\nX-B: 3\r\n\r\n")
    assert calls.last == CallRequest(b"GET", b"/", b"", bearer + b"x-a: 1\r\nX-A:2\r\n")


HOSTILE = """{
  path: 'request.headers["x-path"]',
  allowedRequestHeaders: [x-path],
  addRequestHeaders: {
    ":method": 'request.headers["x-path"]',
    ":authority": 'request.headers["x-path"]',
    x-added: 'request.headers["x-path"]',
  },
}""".replace("\n", " ")
ASKED = asking(HOSTILE)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1))
@example("/a b#c")
@example("*")
@example("a@b:1/?\xe4")
def test_whatever_bytes_a_client_sends_the_call_is_one_message(text: str) -> None:
    proxy, fake = ASKED  # the fake checks each call
    calls = len(fake.received)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Path: " + text.encode() + b"\r\n\r\n")
    if not client.received:
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nup")
    if client.received.startswith(b"HTTP/1.1 200"):
        assert len(fake.received) == calls + 1
    else:  # no header value, or an empty path
        assert client.received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
        assert len(fake.received) == calls
