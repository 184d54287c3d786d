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
from dataplane.filters import ext_auth
from dataplane.filters.ext_auth import answer, cache
from dataplane.filters.ext_auth.reach import SOCKETS, Reach, hint
from dataplane.link.buckets import Buckets
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.calls import FakeCalls, answered, failed
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
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
BEARER = b"Authorization: Bearer t\r\n"
UP = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nup"


def file(policy: str) -> str:
    return FILE.format(policy=textwrap.indent(textwrap.dedent(policy).strip("\n"), " " * 10))


def http(fields: str) -> str:
    """A policy with these fields of `protocol.http`."""
    return "host: 127.0.0.1:9001\nprotocol:\n  http:\n" + textwrap.indent(textwrap.dedent(fields).strip("\n"), " " * 4)


def message(head: bytes = b"", method: bytes = b"GET", target: bytes = b"/shop/1?id=7", body: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%b %b HTTP/1.1\r\nHost: shop.example\r\n%b%b\r\n%b" % (method, target, head, length, body)


class Run:
    """A proxy with the policy, and a server that answers as the test says."""

    def __init__(self, policy: str = PLAIN, answer: Any = None) -> None:
        self.calls = FakeCalls(otherwise=answered() if answer is None else answer)
        self.proxy = MemoryProxy(file(policy), calls=self.calls)
        self.client = self.proxy.connect()

    def send(self, head: bytes = b"", **rest: Any) -> bytes | None:
        """What the backend gets of a request, None when it gets nothing. The backend's answer goes to the client."""
        if not self.client.open:  # it was idle for long
            self.client = self.proxy.connect()
        self.client.take()
        self.client.send(message(head, **rest))
        return self.forwarded()

    def forwarded(self) -> bytes | None:
        if not self.proxy.connector.upstreams or not self.proxy.upstream.received:
            return None
        sent = self.proxy.upstream.take()
        self.proxy.upstream.answer(UP)
        return sent


def client(run: Run) -> FakeTransport:
    return run.proxy.connect(("192.0.2.8", 40001))


# What is asked.

QUESTIONS: dict[str, tuple[str, bytes, CallRequest]] = {
    "by default the path of the request and its Authorization": (
        "{}",
        BEARER + b"Cookie: a=1\r\n",
        CallRequest(b"GET", b"/shop/1?id=7", b"", BEARER),
    ),
    "a path": (
        'path: \'"/check?from=" + source.address + "&path=" + request.path\'',
        b"",
        CallRequest(b"GET", b"/check?from=192.0.2.7&path=/shop/1"),
    ),
    "a path without its slash": ("path: '\"check\"'", b"", CallRequest(b"GET", b"/check")),
    "a path that would end the line": (
        'path: \'"/c?" + request.headers["x-a"] + " HTTP/1.1\\r\\nx: #"\'',
        b"X-A: \xc3\xa4\r\n",
        CallRequest(b"GET", b"/c?%C3%A4%20HTTP/1.1%0D%0Ax:%20%23"),
    ),
    "further headers of the client": (
        "allowedRequestHeaders: [X-A, cookie]",
        b"x-a: 1\r\n" + BEARER + b"X-A:2\r\nX-B: 3\r\n",
        CallRequest(b"GET", b"/shop/1?id=7", b"", BEARER + b"x-a: 1\r\nX-A:2\r\n"),
    ),
    "the client's host": (
        "allowedRequestHeaders: [host]",
        b"",
        CallRequest(b"GET", b"/shop/1?id=7", b"shop.example"),
    ),
    "computed headers": (
        """
        addRequestHeaders:
          x-from: source.address
          x-port: source.port
          x-plain: request.scheme == "http"
        """,
        b"",
        CallRequest(b"GET", b"/shop/1?id=7", b"", b"x-from: 192.0.2.7\r\nx-plain: true\r\nx-port: 40000\r\n"),
    ),
    "a computed header that fails is not sent, nor the client's": (
        """
        allowedRequestHeaders: [x-user]
        addRequestHeaders:
          x-user: request.headers["x-nobody-sends-this"]
          authorization: request.headers["x-nor-this"]
        """,
        b"X-User: root\r\n" + BEARER,
        CallRequest(b"GET", b"/shop/1?id=7"),
    ),
    "a computed header that would end its line is not sent": (
        "addRequestHeaders: {x-a: '\"1\\r\\nx-b: 2\"', x-c: '\" 3 \"'}",
        b"",
        CallRequest(b"GET", b"/shop/1?id=7", b"", b"x-c: 3\r\n"),
    ),
    "pseudo-headers": (
        """
        addRequestHeaders:
          ":authority": '"local-vpnd.sock"'
          ":method": request.method
          ":path": '"/v1"'
        """,
        b"",
        CallRequest(b"GET", b"/v1", b"local-vpnd.sock"),
    ),
    "pseudo-headers that fail or make no sense are not sent": (
        """
        allowedRequestHeaders: [host]
        addRequestHeaders:
          ":authority": '"a b"'
          ":method": '"GET /x"'
        """,
        b"",
        CallRequest(b"GET", b"/shop/1?id=7"),
    ),
    "the server is asked no tunnel": (
        """addRequestHeaders: {":method": '"CONNECT"'}""",
        b"",
        CallRequest(b"GET", b"/shop/1?id=7"),
    ),
}


@pytest.mark.parametrize(("fields", "head", "asked"), QUESTIONS.values(), ids=QUESTIONS)
def test_what_the_server_is_asked(fields: str, head: bytes, asked: CallRequest) -> None:
    run = Run(http(fields) if fields != "{}" else PLAIN)
    run.send(head)
    assert run.calls.received[0].request == asked
    assert run.calls.received[0].seconds == 2


def test_a_credential_of_the_query_is_taken_out_before_the_path_is_told() -> None:
    run = Run()
    keys = "{secretRef: {a: {value: k1}}, mode: Permissive, location: {queryParameter: {name: k}}}"
    text = file(PLAIN).replace("      backends:", f"        apiKeyAuthentication: {keys}\n      backends:")
    run.proxy = MemoryProxy(text, calls=run.calls)
    run.client = run.proxy.connect()
    for target in (b"/a?x=1&k=k1&y=2", b"/a?k=other&x=1"):  # one that is not known stays where it is
        assert run.send(target=target) is not None
    assert run.calls.targets == [b"/a?x=1&y=2", b"/a?k=other&x=1"]


def test_the_method_of_the_call() -> None:
    run = Run(http('addRequestHeaders: {":method": request.method}'))
    run.send(method=b"DELETE")
    assert run.calls.last.method == b"DELETE"


def test_a_path_without_a_value_denies_whatever_the_failure_mode() -> None:
    run = Run("failureMode: FailOpen\n" + http("path: request.headers['x-a']"))
    assert run.send() is None
    assert run.client.received.startswith(b"HTTP/1.1 403 ") and not run.calls.received
    assert run.send(b"X-A: /a\r\n") is not None


HOSTILE = Run(
    http(
        """
        path: 'request.headers["x-path"]'
        allowedRequestHeaders: [x-path]
        addRequestHeaders:
          ":method": 'request.headers["x-path"]'
          ":authority": 'request.headers["x-path"]'
          x-added: 'request.headers["x-path"]'
        """
    )
)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1))
@example("/a b#c")
@example("*")
@example("a@b:1/?\xe4")
def test_whatever_a_client_sends_the_call_is_one_message(text: str) -> None:
    calls = len(HOSTILE.calls.received)  # the fake checks each
    HOSTILE.client = HOSTILE.proxy.connect()
    HOSTILE.send(b"X-Path: " + text.encode() + b"\r\n")
    if HOSTILE.client.received.startswith(b"HTTP/1.1 200"):
        assert len(HOSTILE.calls.received) == calls + 1
    else:  # no header value, or an empty path
        assert HOSTILE.client.received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
        assert len(HOSTILE.calls.received) == calls


# What becomes of the request.


def test_200_allows() -> None:
    run = Run()
    sent = run.send(BEARER)
    assert sent is not None and BEARER in sent
    assert run.client.received.endswith(b"up")


@pytest.mark.claims("errors: External authorization denies the request")
@pytest.mark.parametrize("status", [201, 204, 302, 401, 403, 404, 500])
def test_any_other_answer_denies(status: int, refused: Callable[..., None]) -> None:
    run = Run("failureMode: FailOpen" + PLAIN, answered(status, b"why", x_why="secret"))
    assert run.send() is None
    refused(run.client.received)
    (line,) = run.proxy.log_lines()
    assert f'error="extAuth: the authorization server answered {status}" reason=ExtAuthDenied' in line


@pytest.mark.claims("errors: Daemon answers that it has no match")
def test_an_address_that_the_daemon_does_not_know(refused: Callable[..., None]) -> None:
    run = Run(answer=answered(404, b"no match for 192.0.2.7:40000"))
    run.send()
    refused(run.client.received)


CAUSES = ("unresolved", "connect", "timeout", "lost", "invalid", "too_large")


@pytest.mark.claims("errors: External authorization server unavailable or erroring")
@pytest.mark.parametrize("cause", CAUSES)
def test_no_answer(cause: str, refused: Callable[..., None]) -> None:
    run = Run(answer=failed(cause, "10.0.0.1:9: it hangs"))
    assert run.send() is None
    refused(run.client.received)
    (line,) = run.proxy.log_lines()
    assert 'error="extAuth: 10.0.0.1:9: it hangs" reason=ExtAuthFailed' in line


@pytest.mark.parametrize("cause", CAUSES)
def test_no_answer_and_fail_open(cause: str) -> None:
    run = Run("failureMode: FailOpen\n" + http("allowedResponseHeaders: [x-user]"), failed(cause))
    sent = run.send(b"X-User: root\r\nX-Other: 1\r\n")
    assert sent is not None and b"root" not in sent and b"X-Other: 1\r\n" in sent


REDIRECTS = {
    "a page": ("'\"/login?from=\" + request.path'", b"/login?from=/shop/1"),
    "a place with odd characters": (
        "'\"https://id.example/\\r\\nx: \" + request.host'",
        b"https://id.example/%0D%0Ax:%20shop.example",
    ),
}


@pytest.mark.parametrize(("redirect", "location"), REDIRECTS.values(), ids=REDIRECTS)
def test_redirect_of_who_is_denied(redirect: str, location: bytes) -> None:
    run = Run(http(f"redirect: {redirect}"), answered(401))
    assert run.send() is None
    assert run.client.received.startswith(b"HTTP/1.1 302 ")
    assert b"\r\nlocation: %b\r\n" % location in run.client.received
    run.calls.otherwise = answered()
    assert run.send() is not None


def test_no_redirect_without_a_place_or_without_an_answer() -> None:
    run = Run(http("redirect: request.headers['x-a']"), answered(401))
    run.send()
    assert run.client.received.startswith(b"HTTP/1.1 403 ")
    run.calls.otherwise = failed("timeout")
    run.send(b"X-A: /login\r\n")
    assert run.client.received.startswith(b"HTTP/1.1 403 ")


HEADERS = {
    "the answer's take the place of the client's": (
        {"x_user": "ann", "x_team": "blue", "x_more": "1"},
        {b"x-user: ann", b"x-team: blue"},
    ),
    "those that the answer lacks are the client's no more": ({}, set()),
}


@pytest.mark.parametrize(("given", "got"), HEADERS.values(), ids=HEADERS)
def test_headers_of_the_answer(given: dict[str, str], got: set[bytes]) -> None:
    run = Run(http("allowedResponseHeaders: [X-User, x-team]"), answered(200, b"", **given))
    sent = run.send(b"x-user: root\r\nX-USER: admin\r\nX-Team: red\r\nX-More: 2\r\n")
    assert sent is not None
    lines = set(sent.lower().split(b"\r\n"))
    assert {line for line in lines if line.startswith((b"x-user", b"x-team"))} == got
    assert b"x-more: 2" in lines


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


def test_metadata_for_later_expressions() -> None:
    text = file(METADATA) + textwrap.dedent(
        """
        frontendPolicies:
          accessLog:
            add: {node: extauthz.node, all: toJson(extauthz)}
        """
    )
    calls = FakeCalls(otherwise=answered(200, b'{"Node": {"Name": "laptop"}}', x_team="blue"))
    proxy = MemoryProxy(text, calls=calls)
    proxy.connect().send(message())
    proxy.upstream.answer(UP)
    (line,) = proxy.log_lines()
    assert " node=laptop " in line
    assert all(part in line for part in ("asked", "/shop/1", "200", "team", "blue")) and "absent" not in line


def test_metadata_is_read_by_authorization() -> None:
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
    calls = FakeCalls(otherwise=answered(200, b'{"user": "ann"}'))
    proxy = MemoryProxy(text, calls=calls)
    user = proxy.connect()
    user.send(message())
    assert proxy.upstream.take()
    proxy.upstream.answer(UP)
    calls.otherwise = answered(200, b'{"user": "bob"}')
    user.take()
    user.send(message())
    assert user.received.startswith(b"HTTP/1.1 403 ") and not proxy.upstream.received


# Bodies.

BODY = "forwardBody: {maxSize: 5}" + PLAIN


def test_a_body_is_forwarded_to_both() -> None:
    run = Run(BODY)
    sent = run.send(b"Content-Type: text/plain\r\n" + BEARER, method=b"POST", body=b"12345")
    asked = run.calls.last
    assert (asked.method, asked.body) == (b"POST", b"12345")
    assert asked.headers == BEARER + b"Content-Type: text/plain\r\n"
    assert sent is not None and sent.endswith(b"\r\n\r\n12345")


def test_a_body_that_comes_later_is_waited_for() -> None:
    run = Run(BODY)
    whole = message(method=b"POST", body=b"12345")
    run.client.send(whole[:-2])
    assert not run.calls.received
    run.client.send(whole[-2:])
    assert run.calls.last.body == b"12345"
    sent = run.forwarded()
    assert sent is not None and sent.endswith(b"\r\n\r\n12345")


def test_chunks_are_read() -> None:
    run = Run(BODY)
    run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n")
    assert run.calls.last.body == b"12345"
    sent = run.forwarded()
    assert sent is not None and sent.endswith(b"\r\n\r\n5\r\n12345\r\n0\r\n\r\n")


def test_a_request_without_a_body() -> None:
    run = Run(BODY)
    assert run.send() is not None
    assert (run.calls.last.method, run.calls.last.body) == (b"GET", b"")


@pytest.mark.claims("errors: Body larger than")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large(chunked: bool, refused: Callable[..., None]) -> None:
    run = Run("failureMode: FailOpen\n" + BODY)
    if chunked:
        run.client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n")
    else:
        run.client.send(message(method=b"POST", body=b"123456"))
    refused(run.client.received)
    assert not run.calls.received and run.forwarded() is None


def test_a_body_for_one_of_several_servers() -> None:
    run = Run(CONDITIONAL.replace("{path: '\"/lax\"'}}", "{path: '\"/lax\"'}}\n    forwardBody: {maxSize: 5}"))
    for target, asked in ((b"/admin", b""), (b"/shop", b"12345")):
        sent = run.send(method=b"POST", target=target, body=b"12345")
        assert run.calls.last.body == asked
        assert sent is not None and sent.endswith(b"12345")
    run.send(method=b"POST", target=b"/shop", body=b"123456")
    assert run.client.received.startswith(b"HTTP/1.1 413 ")


def test_an_expression_may_read_the_body() -> None:
    run = Run(http("path: '\"/\" + string(json(request.body).id)'"))
    sent = run.send(method=b"POST", body=b'{"id": 7}')
    assert run.calls.targets == [b"/7"] and run.calls.last.body == b""
    assert sent is not None and sent.endswith(b'{"id": 7}')


def test_metadata_may_read_the_body_of_the_request() -> None:
    policy = PLAIN + "metadata: {id: json(request.body).id, size: size(response.body)}"
    text = file(policy) + "frontendPolicies: {accessLog: {add: {all: toJson(extauthz)}}}"
    proxy = MemoryProxy(text, calls=FakeCalls(otherwise=answered(403, b"why")))
    proxy.connect().send(message(method=b"POST", body=b'{"id": 7}'))
    (line,) = proxy.log_lines()
    assert '{\\"id\\":7,\\"size\\":3}' in line and "ExtAuthDenied" in line


# The cache.


def cached(ttl: str = "1m", key: str = 'request.headers["authorization"]', more: str = "", entries: int = 2) -> str:
    return f"{PLAIN.strip()}\ncache:\n  key: ['{key}']\n  ttl: '{ttl}'\n  maxEntries: {entries}\n{more}"


def test_an_answer_is_kept_for_its_time() -> None:
    run = Run(cached())
    assert run.send(BEARER) is not None and len(run.calls.received) == 1
    run.proxy.advance(59)
    assert run.send(BEARER) is not None and len(run.calls.received) == 1
    run.proxy.advance(2)
    assert run.send(BEARER) is not None and len(run.calls.received) == 2


KEPT = {200: True, 401: True, 403: True, 204: False, 302: False, 404: False, 500: False, 503: False}


@pytest.mark.parametrize(("status", "kept"), KEPT.items())
def test_which_answers_are_kept(status: int, kept: bool) -> None:
    run = Run(cached(), answered(status))
    assert [run.send(BEARER) is not None for _ in range(2)] == [status == 200] * 2
    assert len(run.calls.received) == (1 if kept else 2)


def test_a_kept_answer_does_all_that_the_answer_did() -> None:
    policy = cached("extauthz.ttl", more="metadata: {ttl: json(response.body).ttl}").replace(
        "{}", "{allowedResponseHeaders: [x-user]}"
    )
    run = Run(policy, answered(200, b'{"ttl": "30s"}', x_user="ann"))
    for _ in range(2):
        sent = run.send(BEARER + b"X-User: root\r\n")
        assert sent is not None and b"x-user: ann\r\n" in sent and b"root" not in sent
    assert len(run.calls.received) == 1
    run.proxy.advance(31)
    run.send(BEARER)
    assert len(run.calls.received) == 2


def test_the_redirect_of_a_kept_denial_is_of_the_request() -> None:
    run = Run(cached().replace("{}", "{redirect: request.path}"), answered(401))
    for target in (b"/a", b"/b"):
        run.send(BEARER, target=target)
        assert b"\r\nlocation: %b\r\n" % target in run.client.received
    assert len(run.calls.received) == 1


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
def test_times_to_live(ttl: str, seconds: int) -> None:
    run = Run(cached(ttl))
    run.send(BEARER)
    if seconds:
        run.proxy.advance(seconds - 1)
        run.send(BEARER)
        assert len(run.calls.received) == 1
        run.proxy.advance(2)
    run.send(BEARER)
    assert len(run.calls.received) == 2


# Expression, two heads, whether they are one key (None: no key at all).
KEYS: dict[str, tuple[str, bytes, bytes, bool | None]] = {
    "equal text": ('request.headers["x-a"]', b"X-A: 1\r\n", b"x-a: 1\r\n", True),
    "other text": ('request.headers["x-a"]', b"X-A: 1\r\n", b"X-A: 2\r\n", False),
    "long text": ('request.headers["x-a"]', b"X-A: " + b"1" * 500 + b"\r\n", b"X-A: " + b"1" * 500 + b"\r\n", True),
    "other long text": (
        'request.headers["x-a"]',
        b"X-A: " + b"1" * 500 + b"\r\n",
        b"X-A: " + b"1" * 501 + b"\r\n",
        False,
    ),
    "types": ('request.headers["x-a"] == "1" ? dyn(1) : dyn(true)', b"X-A: 1\r\n", b"X-A: 2\r\n", False),
    "truth": ('request.headers["x-a"] == "1"', b"X-A: 2\r\n", b"X-A: 3\r\n", True),
    "numbers": ('int(request.headers["x-a"])', b"X-A: 1\r\n", b"X-A: 01\r\n", True),
    "bytes": ('bytes(request.headers["x-a"])', b"X-A: 1\r\n", b"X-A: 1\r\n", True),
    "an absent header": ('request.headers["x-a"]', b"", b"", None),
    "a list": ('[request.headers["x-a"]]', b"X-A: 1\r\n", b"X-A: 1\r\n", None),
    "nothing": ("null", b"", b"", None),
    "not a number": ("0.0 / 0.0", b"", b"", None),
}


@pytest.mark.parametrize(("key", "one", "other", "same"), KEYS.values(), ids=KEYS)
def test_keys(key: str, one: bytes, other: bytes, same: bool | None) -> None:
    run = Run(cached(key=key))
    run.send(one)
    run.send(one)
    assert len(run.calls.received) == (2 if same is None else 1)
    run.send(other)
    assert len(run.calls.received) == {None: 3, True: 1, False: 2}[same]


SECRETS = {
    "by itself": ("jwt.rawToken", 2),
    "shown": ("jwt.rawToken.unredacted()", 2),
    "within a text, which hides it": ('"token " + jwt.rawToken', 4),
}


@pytest.mark.parametrize(("key", "calls"), SECRETS.values(), ids=SECRETS)
def test_secrets_in_keys_tell_clients_apart(key: str, calls: int) -> None:
    issuer = Issuer()
    jwt = json.dumps({"providers": [{"issuer": ISSUER, "jwks": {"inline": issuer.key_set()}}]})
    text = file(cached(key=key)).replace("      backends:", f"        jwtAuthentication: {jwt}\n      backends:")
    run = Run()
    run.proxy = MemoryProxy(text, calls=run.calls)
    run.client = run.proxy.connect()
    for user in ("ann", "bob"):
        for _ in range(2):
            token = issuer.token(sub=user, exp=1060)  # the proxy's clock stands at 1000
            assert run.send(f"Authorization: Bearer {token}\r\n".encode()) is not None
    assert len(run.calls.received) == calls
    assert "ann" not in repr(run.calls.received)


def test_the_digest_of_a_long_body_is_not_the_body() -> None:
    run = Run("forwardBody: {maxSize: 1000}\n" + cached(key="request.body"))
    long = b"x" * 200
    for body in (long, blake2b(long, digest_size=32).digest()):
        assert run.send(method=b"POST", body=body) is not None
    assert len(run.calls.received) == 2


def test_the_least_recently_used_is_dropped() -> None:
    run = Run(cached(entries=2))
    for name, calls in ((b"a", 1), (b"b", 2), (b"a", 2), (b"c", 3), (b"a", 3), (b"b", 4)):
        run.send(b"Authorization: %b\r\n" % name)
        assert len(run.calls.received) == calls, name


def test_kept_answers_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients choose how many there are, the server how large they are."""
    monkeypatch.setattr(cache, "MOST_BYTES", 2500)
    run = Run(cached(entries=100, more="metadata: {body: string(response.body)}"), answered(body=b"x" * 1000))
    for name, calls in ((b"a", 1), (b"b", 2), (b"a", 2), (b"c", 3), (b"a", 3), (b"b", 4)):
        run.send(b"Authorization: %b\r\n" % name)
        assert len(run.calls.received) == calls, name
    run.calls.otherwise = answered(body=b"x" * 3000)
    for calls in (5, 6):
        assert run.send(b"Authorization: large\r\n") is not None and len(run.calls.received) == calls


def test_what_is_kept_weighs_what_is_there() -> None:
    kept = cache.Cache(2)
    verdicts = [answer.Verdict(200, b"", b"", None, size) for size in (1, 10, 100, 1000)]
    for key, verdict in (("a", 0), ("a", 1), ("b", 2), ("c", 3)):
        kept.put(key, verdicts[verdict], 1.0)
    assert (kept.size, len(kept.entries)) == (1100, 2)
    assert kept.get("b", 2.0) is None and kept.size == 1000


def test_one_asks_and_the_others_wait_for_its_answer() -> None:
    run = Run(cached(), answered(401))
    run.calls.hold = True
    clients = [client(run) for _ in range(5)]
    for each in clients:
        each.send(message(BEARER))
    assert len(run.calls.received) == 1
    run.calls.release()
    assert [each.received[:12] for each in clients] == [b"HTTP/1.1 403"] * 5
    assert len(run.calls.received) == 1


def test_others_wait_for_a_failure_too() -> None:
    run = Run("failureMode: FailOpen\n" + cached(), failed("timeout"))
    run.calls.hold = True
    clients = [client(run) for _ in range(3)]
    for each in clients:
        each.send(message(BEARER))
    run.calls.release()
    assert len(run.calls.received) == 1 and len(run.proxy.connector.upstreams) == 3


def test_whoever_waited_for_an_answer_that_is_not_kept_asks() -> None:
    run = Run(cached("0s"))
    run.calls.hold = True
    for _ in range(3):
        client(run).send(message(BEARER))
    run.calls.hold = False
    run.calls.release()
    assert len(run.calls.received) == 3 and len(run.proxy.connector.upstreams) == 3


def test_other_keys_do_not_wait() -> None:
    run = Run(cached())
    run.calls.hold = True
    for name in (b"a", b"b"):
        client(run).send(message(b"Authorization: %b\r\n" % name))
    assert run.calls.waiting == 2


def test_answers_outlive_a_swap_unless_the_policy_changed() -> None:
    run = Run(cached())
    run.send(BEARER)
    run.proxy.load(file(cached()).replace("9000", "9009"))
    run.send(BEARER)
    assert len(run.calls.received) == 1
    run.proxy.load(file(cached("2m")))
    run.send(BEARER)
    assert len(run.calls.received) == 2


def test_the_cache_does_not_show_what_it_keeps() -> None:
    kept = cache.Cache(3)
    kept.put(("token",), answer.Verdict(200, b"x: secret\r\n", b"", None), 1.0)
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


@pytest.mark.parametrize(("target", "asked"), [(b"/admin", [b"/strict"]), (b"/shop", [b"/lax"]), (b"/", [])])
def test_the_first_item_whose_condition_is_true(target: bytes, asked: list[bytes]) -> None:
    run = Run(CONDITIONAL)
    assert run.send(target=target) is not None
    assert run.calls.targets == asked


# The log.


@pytest.mark.claims("errors: Socket of the daemon missing or inaccessible")
def test_a_server_that_is_lost_is_told_once(caplog: pytest.LogCaptureFixture, refused: Callable[..., None]) -> None:
    run = Run(answer=failed("connect", "connect to unix:/tmp/d.sock failed: No such file or directory"))
    with caplog.at_level(logging.INFO, "dataplane.ext_auth"):
        for _ in range(3):
            run.send()
            refused(run.client.received)
        run.proxy.load(file(PLAIN).replace("9000", "9009"))  # what was told stays told
        run.send()
        assert len(caplog.messages) == 1 and "d.sock failed" in caplog.text and SOCKETS["linux"] in caplog.text
        run.calls.otherwise = answered()
        for _ in range(3):
            run.send()
        assert len(caplog.messages) == 2 and "answers again" in caplog.messages[1]


def test_a_worker_that_takes_the_place_of_one_that_told_tells_that_the_server_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sign = Buckets.local().sign("lost")
    for _ in range(2):
        Reach("backend", lambda: 1.0, sign).failed("policy", failed("timeout"))
    for _ in range(2):
        next_one = Reach("backend", lambda: 2.0, sign)
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
    assert built is not None and built.may_wait and built.body == 0
