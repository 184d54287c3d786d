"""Direct responses from the standalone file to what a client gets."""

from __future__ import annotations

import textwrap

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.steps import direct_response
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Answer, Carrier, Headers, Request, Run
from tests.carriers.values import Pairs
from tests.fakes.policy_run import text_of

GET = Request("GET", "/a?b=c", [("x-name", "Bo")])


def proxy(carrier: Carrier, policies: str) -> Run:
    """With one route that leads nowhere."""
    return carrier.proxy(text_of("policies:\n" + textwrap.indent(textwrap.dedent(policies).strip("\n"), "  ")))


def answered(carrier: Carrier, policies: str, request: Request = GET) -> Answer:
    """The answer, which came whole."""
    seen = proxy(carrier, policies).carry(request)
    assert seen.answer.ended and seen.reached == ()
    return seen.answer


TEXT, JSON = ("content-type", "text/plain"), ("content-type", "application/json")
BYTES = ("content-type", "application/octet-stream")


def length(size: int) -> tuple[str, str]:
    return ("content-length", str(size))


@pytest.mark.parametrize(
    ("fields", "status", "headers", "body"),
    [
        ("status: 200", 200, [length(0)], b""),
        ("status: 204", 204, [], b""),
        ("{status: 200, headers: [{name: x-path, value: request.path}]}", 200, [("x-path", "/a"), length(0)], b""),
        ("{status: 204, body: a}", 204, [], b""),
        ("{status: 205, body: a}", 205, [length(0)], b""),
        ("{status: 304, bodyExpression: \"'a'\"}", 304, [], b""),
        ("{status: 404, body: gone}", 404, [TEXT, length(4)], b"gone"),
        (
            "{status: 200, bodyExpression: \"'hi ' + request.headers['x-name']\"}",
            200,
            [TEXT, length(5)],
            b"hi Bo",
        ),
        (
            "{status: 200, bodyExpression: \"{'path': request.path, 'n': 1}\"}",
            200,
            [JSON, length(19)],
            b'{"path":"/a","n":1}',
        ),
        (  # of what comes later nothing is there
            '{status: 200, bodyExpression: "[has(variables().response), has(variables().request.endTime)]"}',
            200,
            [JSON, length(13)],
            b"[false,false]",
        ),
        ("{status: 200, bodyExpression: \"b'\\\\x00\\\\xff'\"}", 200, [BYTES, length(2)], b"\x00\xff"),
        (
            "{status: 503, headers: [{name: Retry-After, value: '30'}, {name: x-path, value: request.path}]}",
            503,
            [length(0), ("retry-after", "30"), ("x-path", "/a")],
            b"",
        ),
        (
            "{status: 200, body: '<p>', headers: [{name: Content-Type, value: \"'text/html'\"}]}",
            200,
            [length(3), ("content-type", "text/html")],
            b"<p>",
        ),
        (
            "{status: 200, headers: [{name: set-cookie, value: \"'a=1'\"}, {name: set-cookie, value: \"'b=2'\"}]}",
            200,
            [length(0), ("set-cookie", "a=1"), ("set-cookie", "b=2")],
            b"",
        ),
    ],
)
def test_answers(fields: str, status: int, headers: Pairs, body: bytes, carrier: Carrier) -> None:
    fields = fields if fields.startswith("{") else "{" + fields + "}"
    answer = answered(carrier, f"directResponse: {fields}")
    assert (answer.status, answer.headers.but("date"), answer.body) == (status, Headers(headers), body)


def test_a_header_without_a_value_is_absent(carrier: Carrier) -> None:
    policy = r"""
    directResponse:
      status: 200
      headers:
      - {name: x-a, value: "request.headers['x-none']"}
      - {name: x-b, value: "'a\\r\\nb: c'"}
      - {name: content-type, value: "request.headers['x-none']"}
    """
    answer = answered(carrier, policy)
    assert (answer.status, answer.headers.but("date"), answer.body) == (200, {"content-length": "0"}, b"")


def test_a_body_without_a_value_is_500(carrier: Carrier) -> None:
    run = proxy(carrier, "directResponse: {status: 200, bodyExpression: \"request.headers['x-none']\"}")
    seen = run.carry(GET)
    assert (seen.answer.status, seen.answer.body) == (500, b"direct response failed")
    assert seen.reason == "DirectResponseFailed"


def test_head_has_no_body(carrier: Carrier) -> None:
    answer = answered(carrier, "directResponse: {status: 200, body: hello}", Request("HEAD"))
    assert (answer.headers["content-length"], answer.body) == ("5", b"")


ECHO = "directResponse: {status: 200, bodyExpression: request.body}"


class TestBodiesThatItReads:
    @staticmethod
    def post(size: int, *headers: tuple[str, str]) -> Request:
        return Request("POST", headers=[("content-length", str(size)), *headers])

    def test_are_waited_for(self, carrier: Carrier) -> None:
        asked = proxy(carrier, ECHO).begin(self.post(4))
        asked.content(b"ab")
        assert asked.answer == Answer()
        asked.content(b"cd")
        asked.end()
        assert asked.answer.body == b"abcd" and asked.answer.ended

    def test_are_asked_for(self, carrier: Carrier) -> None:
        asked = proxy(carrier, ECHO).begin(self.post(4, ("expect", "100-continue")))
        assert asked.answer == Answer(interim=((100, Headers()),))
        asked.content(b"abcd")
        asked.end()
        assert asked.answer.body == b"abcd" and asked.answer.ended

    def test_are_refused_when_too_large(self, carrier: Carrier) -> None:
        assert proxy(carrier, ECHO).begin(self.post(2 * 1024 * 1024 + 1)).answer.status == 413

    def test_a_large_one_costs_the_header_that_reads_it_only(self, carrier: Carrier) -> None:
        policy = """
        directResponse:
          status: 200
          bodyExpression: request.path
          headers: [{name: x-body, value: string(request.body)}]
        """
        small = proxy(carrier, policy).begin(self.post(2))
        small.content(b"ab")
        small.end()
        assert (small.answer.body, small.answer.headers["x-body"]) == (b"/", "ab")
        large = proxy(carrier, policy).begin(self.post(2 * 1024 * 1024 + 1)).answer
        assert (large.status, large.body) == (200, b"/") and "x-body" not in large.headers

    def test_need_not_be_there(self, carrier: Carrier) -> None:
        answer = answered(carrier, ECHO)
        assert (answer.headers["content-length"], answer.body) == ("0", b"")


def test_conditions(carrier: Carrier) -> None:
    policy = """
    directResponse:
      conditional:
      - {condition: "request.path == '/a'", policy: {status: 201}}
      - {condition: "request.headers['x-none'] == ''", policy: {status: 202}}
      - {policy: {status: 203, body: rest}}
    """
    assert answered(carrier, policy).status == 201
    assert answered(carrier, policy, GET.to("/b?b=c")).status == 203


def test_no_condition_holds(carrier: Carrier) -> None:
    policy = "directResponse: {conditional: [{condition: 'false', policy: {status: 201}}]}"
    assert answered(carrier, policy).status == 500, "the route has no backend"


def test_the_steps_outside_edit_it(carrier: Carrier) -> None:
    answer = answered(
        carrier,
        """
        headerModifiers: {response: {set: [{name: x-edge, value: "1"}]}}
        transformation: {response: {body: "string(response.body).upperAscii()"}}
        cors: {allowOrigins: ["http://b"]}
        directResponse: {status: 200, body: hello}
        """,
    )
    assert (answer.headers["x-edge"], answer.headers["vary"], answer.body) == ("1", "Origin", b"HELLO")


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
