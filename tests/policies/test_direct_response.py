"""Direct responses from the standalone file to the bytes that a client gets."""

from __future__ import annotations

import re
import textwrap

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters import direct_response
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
{policies}
"""
GET = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\nx-name: Bo\r\n\r\n"


def proxy(policies: str) -> MemoryProxy:
    """With one route that leads nowhere."""
    return MemoryProxy(FILE.format(policies=textwrap.indent(textwrap.dedent(policies), " " * 8)))


def answered(policies: str, request: bytes = GET) -> bytes:
    """The answer, without what every answer of ours has."""
    client = proxy(policies).connect()
    client.send(request)
    return re.sub(rb"date: [^\r]*\r\n", b"", client.received)


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ("status: 200", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("status: 204", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("{status: 204, body: a}", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("{status: 205, body: a}", b"HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n"),
        ("{status: 304, bodyExpression: \"'a'\"}", b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        (
            "{status: 404, body: gone}",
            b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ngone",
        ),
        (
            "{status: 200, bodyExpression: \"'hi ' + request.headers['x-name']\"}",
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhi Bo",
        ),
        (
            "{status: 200, bodyExpression: \"{'path': request.path, 'n': 1}\"}",
            b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n{"path":"/a","n":1}',
        ),
        (  # of what comes later nothing is there
            '{status: 200, bodyExpression: "[has(variables().response), has(variables().request.endTime)]"}',
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n[false,false]",
        ),
        (
            "{status: 200, bodyExpression: \"b'\\\\x00\\\\xff'\"}",
            b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 2\r\n\r\n\x00\xff",
        ),
        (
            "{status: 503, headers: [{name: Retry-After, value: '30'}, {name: x-path, value: request.path}]}",
            b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nRetry-After: 30\r\nx-path: /a\r\n\r\n",
        ),
        (
            "{status: 200, body: '<p>', headers: [{name: Content-Type, value: \"'text/html'\"}]}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nContent-Type: text/html\r\n\r\n<p>",
        ),
        (
            "{status: 200, headers: [{name: set-cookie, value: \"'a=1'\"}, {name: set-cookie, value: \"'b=2'\"}]}",
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\n",
        ),
    ],
)
def test_answers(fields: str, answer: bytes) -> None:
    fields = fields if fields.startswith("{") else "{" + fields + "}"
    assert answered(f"directResponse: {fields}") == answer


def test_a_header_without_a_value_is_absent() -> None:
    policy = r"""
    directResponse:
      status: 200
      headers:
      - {name: x-a, value: "request.headers['x-none']"}
      - {name: x-b, value: "'a\\r\\nb: c'"}
      - {name: content-type, value: "request.headers['x-none']"}
    """
    assert answered(policy) == b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def test_a_body_without_a_value_is_500() -> None:
    run = proxy("directResponse: {status: 200, bodyExpression: \"request.headers['x-none']\"}")
    client = run.connect()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 500 ")
    assert client.received.endswith(b"\r\n\r\ndirect response failed")
    client.lose()
    (line,) = run.log_lines()
    assert "reason=DirectResponseFailed" in line


def test_head_has_no_body() -> None:
    answer = answered("directResponse: {status: 200, body: hello}", GET.replace(b"GET", b"HEAD"))
    assert answer.endswith(b"content-length: 5\r\n\r\n")


ECHO = "directResponse: {status: 200, bodyExpression: request.body}"


class TestBodiesThatItReads:
    POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"

    def send(self, size: int) -> FakeTransport:
        client = proxy(ECHO).connect()
        client.send(self.POST % size)
        return client

    def test_are_waited_for(self) -> None:
        client = self.send(4)
        client.send(b"ab")
        assert client.received == b""
        client.send(b"cd")
        assert client.received.endswith(b"\r\n\r\nabcd")

    def test_are_asked_for(self) -> None:
        client = proxy(ECHO).connect()
        client.send((self.POST % 4).replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"abcd")
        assert client.take().endswith(b"\r\n\r\nabcd")

    def test_are_refused_when_too_large(self) -> None:
        assert self.send(2 * 1024 * 1024 + 1).received.startswith(b"HTTP/1.1 413 ")

    def test_need_not_be_there(self) -> None:
        assert answered(ECHO).endswith(b"content-length: 0\r\n\r\n")


def test_conditions() -> None:
    policy = """
    directResponse:
      conditional:
      - {condition: "request.path == '/a'", policy: {status: 201}}
      - {condition: "request.headers['x-none'] == ''", policy: {status: 202}}
      - {policy: {status: 203, body: rest}}
    """
    assert answered(policy).startswith(b"HTTP/1.1 201 ")
    assert answered(policy, GET.replace(b"/a", b"/b")).startswith(b"HTTP/1.1 203 ")


def test_no_condition_holds() -> None:
    policy = "directResponse: {conditional: [{condition: 'false', policy: {status: 201}}]}"
    assert answered(policy).startswith(b"HTTP/1.1 500 "), "the route has no backend"


def test_the_steps_outside_edit_it() -> None:
    answer = answered("""
    headerModifiers: {response: {set: [{name: x-edge, value: "1"}]}}
    transformation: {response: {body: "string(response.body).upperAscii()"}}
    cors: {allowOrigins: ["http://b"]}
    directResponse: {status: 200, body: hello}
    """)
    assert b"x-edge: 1\r\n" in answer and b"vary: Origin\r\n" in answer
    assert answer.endswith(b"\r\n\r\nHELLO")


def built(**fields: object) -> object:
    config = traffic_pb2.DirectResponse(**fields)  # type: ignore[arg-type]
    return direct_response.build(config, Env(clock=lambda: 0.0, random=lambda: 0.0))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "status: 0 is not between 200 and 599"),
        ({"status": 600}, "status: 600 is not"),
        ({"status": 200, "body": "a", "body_expression": "'b'"}, "bodyExpression: must be absent"),
        ({"status": 200, "body_expression": "nothing"}, "bodyExpression: "),
        ({"status": 200, "headers": [{"name": "a", "value": "nothing"}]}, "headers[a]: "),
        ({"status": 200, "headers": [{"name": "a b", "value": "'1'"}]}, "headers: 'a b' is not a header name"),
        ({"status": 200, "headers": [{"name": "Content-Length", "value": "'1'"}]}, "headers: Content-Length belongs"),
        ({"status": 200, "headers": [{"name": ":status", "value": "'1'"}]}, "headers: ':status' is not a header name"),
    ],
)
def test_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        built(**fields)
    assert reason in str(refused.value)
