"""Buffer from the standalone file to the bodies on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import BUFFER_LIMIT, WHOLE, Env
from dataplane.filters.steps import buffer
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.fakes.policy_run import served

GET = Request()
TOO_LARGE = b"request body is too large"

REQUESTS = "buffer: {request: {maxBytes: 8}}"
RESPONSES = "buffer: {response: {maxBytes: 8}}"


def proxy(carrier: Carrier, policies: str) -> Run:
    return carrier.proxy(served(f"policies: {{{policies}}}"))


def post(length: int) -> Request:
    """The head of a request with a body of this length."""
    return Request("POST", headers=[("content-length", str(length))])


def test_a_request_is_buffered_until_it_is_whole(carrier: Carrier) -> None:
    run = proxy(carrier, REQUESTS)
    asked = run.begin(post(8))
    asked.content(b"abcd")
    assert not run.connections and not run.arrivals
    asked.content(b"efgh")
    asked.end()
    assert run.arrival.received.body == b"abcdefgh" and run.arrival.received.ended


@pytest.mark.parametrize("sized", [True, False])
def test_a_request_over_the_limit_is_refused(sized: bool, carrier: Carrier) -> None:
    run = proxy(carrier, REQUESTS)
    if sized:
        asked = run.begin(post(9))  # known by its length: not read
    else:
        asked = run.begin(Request("POST"))
        asked.content(b"abcdefgh")
        assert asked.answer == Answer()
        asked.content(b"i")
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (413, TOO_LARGE, True)
    assert not run.connections
    (line,) = run.log_lines()
    assert " reason=BodyTooLarge " in line


def test_a_request_without_a_body_passes(carrier: Carrier) -> None:
    seen = proxy(carrier, REQUESTS).carry(GET)
    assert (seen.received.method, seen.received.target, seen.received.body) == ("GET", "/", b"")


def test_what_another_step_made_of_a_request_is_not_measured_before_it_is_made(carrier: Carrier) -> None:
    run = proxy(carrier, REQUESTS + ", transformation: {request: {body: '\"0123456789\"'}}")
    assert run.carry(Request("POST", body=b"ab")).received.body == b"0123456789"


def test_a_response_is_buffered_until_it_is_whole(carrier: Carrier) -> None:
    run = proxy(carrier, RESPONSES)
    asked = run.send(GET)
    run.arrival.head(Response(200, [("content-length", "8")]))
    run.arrival.content(b"abcd")
    assert asked.answer == Answer()
    run.arrival.content(b"efgh")
    run.arrival.end()
    assert asked.answer == Answer(200, asked.answer.headers, b"abcdefgh", ended=True)
    assert asked.answer.headers == {"content-length": "8"}


@pytest.mark.parametrize("sized", [True, False])
def test_a_response_over_the_limit_is_replaced(sized: bool, carrier: Carrier) -> None:
    run = proxy(carrier, RESPONSES)
    asked = run.send(GET)
    run.arrival.head(Response(200, [("content-length", "9")] if sized else ()))
    if not sized:
        run.arrival.content(b"abcdefghi")
    assert (asked.answer.status, asked.answer.body) == (502, b"response body is too large")
    assert asked.answer.ended and run.arrival.is_cancelled
    (line,) = run.log_lines()
    assert " reason=ResponseTooLarge " in line
    assert run.ask(GET, Response(204)).status == 204 and run.own.connections == 1


def test_a_larger_limit_of_another_step_does_not_raise_this_one(carrier: Carrier) -> None:
    run = proxy(
        carrier, RESPONSES + ", transformation: {response: {set: [{name: x-size, value: 'size(response.body)'}]}}"
    )
    assert run.ask(GET, Response(200, body=b"abcdefghi")).status == 502


EVENTS = Response(200, [("content-type", "text/event-stream; charset=utf-8"), ("content-length", "99")])


def test_what_has_no_end_passes(carrier: Carrier) -> None:
    run = proxy(carrier, RESPONSES)
    asked = run.send(GET)
    run.arrival.head(EVENTS)
    run.arrival.content(b"data")
    assert (asked.answer.status, asked.answer.headers, asked.answer.body) == (200, dict(EVENTS.headers), b"data")


@pytest.mark.parametrize(("method", "status"), [("GET", 304), ("HEAD", 200)])
def test_what_has_no_body_passes(method: str, status: int, carrier: Carrier) -> None:
    seen = proxy(carrier, RESPONSES).carry(Request(method), Response(status, [("content-length", "99")]))
    assert (seen.answer.status, seen.answer.headers) == (status, {"content-length": "99"})
    assert seen.answer.body == b"" and seen.answer.ended


def test_our_own_answers_are_not_measured(carrier: Carrier) -> None:
    seen = proxy(carrier, RESPONSES + ", directResponse: {status: 200, body: '0123456789'}").carry(GET)
    assert (seen.answer.status, seen.answer.body) == (200, b"0123456789")


def built(**sides: Any) -> Any:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    return buffer.build(traffic_pb2.Buffer(**sides), env)


@pytest.mark.claims("limits: Buffer `maxBytes` default")
def test_the_default_is_two_mebibytes(carrier: Carrier) -> None:
    made = built(request={}, response={})
    assert made.response_body == WHOLE and BUFFER_LIMIT == 2 * 1024 * 1024
    run = proxy(carrier, "buffer: {request: {}}")
    assert run.begin(post(2097152)).answer == Answer()
    assert run.begin(post(2097153)).answer.status == 413


def test_a_limit_of_nothing_lets_no_body_pass(carrier: Carrier) -> None:
    run = proxy(carrier, "buffer: {request: {maxBytes: 0}, response: {maxBytes: 0}}")
    assert run.begin(post(1)).answer.status == 413
    assert run.ask(GET, Response(200, body=b"a")).status == 502
    assert run.ask(GET, Response(200)).status == 200


def test_nothing_to_do_is_no_filter() -> None:
    assert built() is None
    only_request = built(request={"max_bytes": 1})
    assert (only_request.response, only_request.response_body) == (None, 0), "responses are streamed"
    assert built(response={"max_bytes": 1}).request is None
