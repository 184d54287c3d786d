"""Buffer from the standalone file to the bytes on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import BUFFER_LIMIT, Env
from dataplane.filters import buffer
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import ROUTES, MemoryProxy

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 413 "


def proxy(policies: str) -> MemoryProxy:
    return MemoryProxy(ROUTES.replace("      backends:", f"      policies: {{{policies}}}\n      backends:"))


REQUESTS = "buffer: {request: {maxBytes: 8}}"
RESPONSES = "buffer: {response: {maxBytes: 8}}"


def test_a_request_is_held_until_it_is_whole() -> None:
    run = proxy(REQUESTS)
    client = run.connect()
    client.send(POST + b"Content-Length: 8\r\n\r\nabcd")
    assert not run.connector.upstreams
    client.send(b"efgh")
    assert run.upstream.received.endswith(b"\r\n\r\nabcdefgh")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_over_the_limit_is_refused(chunked: bool) -> None:
    run = proxy(REQUESTS)
    client = run.connect()
    if chunked:
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n")
        assert client.received == b""
        client.send(b"1\r\ni\r\n")
    else:
        client.send(POST + b"Content-Length: 9\r\n\r\n")  # known by its length: not read
    assert client.received.startswith(TOO_LARGE)
    assert client.received.endswith(b"\r\n\r\nrequest body is too large")
    assert not run.connector.upstreams
    client.lose()
    (line,) = run.log_lines()
    assert "reason=BodyTooLarge" in line


def test_a_request_without_a_body_passes() -> None:
    run = proxy(REQUESTS)
    run.connect().send(GET)
    assert run.upstream.received.startswith(b"GET / ")


def test_what_another_step_made_of_a_request_is_not_measured_before_it_is_made() -> None:
    run = proxy(REQUESTS + ", transformation: {request: {body: '\"0123456789\"'}}")
    run.connect().send(POST + b"Content-Length: 2\r\n\r\nab")
    assert run.upstream.received.endswith(b"\r\n\r\n0123456789")


def test_a_response_is_held_until_it_is_whole() -> None:
    run = proxy(RESPONSES)
    client = run.connect()
    client.send(GET)
    run.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcd")
    assert client.received == b""
    run.upstream.answer(b"efgh")
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcdefgh"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabcdefghi\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nabcdefghi",
    ],
)
def test_a_response_over_the_limit_is_replaced(answer: bytes) -> None:
    run = proxy(RESPONSES)
    client = run.connect()
    client.send(GET)
    run.upstream.answer(answer)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert client.received.endswith(b"\r\n\r\nresponse body is too large")
    assert not run.upstream.open
    assert client.open
    client.lose()
    (line,) = run.log_lines()
    assert "reason=ResponseTooLarge" in line


def test_a_larger_limit_of_another_step_does_not_raise_this_one() -> None:
    run = proxy(RESPONSES + ", transformation: {response: {set: [{name: x-size, value: 'size(response.body)'}]}}")
    client = run.connect()
    client.send(GET)
    run.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcdefghi")
    assert client.received.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (GET, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Length: 99\r\n\r\ndata"),
        (GET, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    ],
)
def test_what_has_no_end_or_no_body_passes(request_: bytes, answer: bytes) -> None:
    run = proxy(RESPONSES)
    client = run.connect()
    client.send(request_)
    run.upstream.answer(answer)
    assert client.received == answer


def test_a_tunnel_passes() -> None:
    run = proxy("buffer: {request: {maxBytes: 8}, response: {maxBytes: 8}}")
    client = run.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    run.upstream.answer(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    run.upstream.answer(b"0123456789")
    assert client.received.endswith(b"\r\n\r\n0123456789")


def test_our_own_answers_are_not_measured() -> None:
    run = proxy(RESPONSES + ", directResponse: {status: 200, body: '0123456789'}")
    client = run.connect()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 200 ")


def built(**sides: Any) -> Any:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    return buffer.build(traffic_pb2.Buffer(**sides), env)


@pytest.mark.claims("limits: Buffer `maxBytes` default")
def test_the_default_is_two_mebibytes() -> None:
    made = built(request={}, response={})
    assert BUFFER_LIMIT == made.response_body == 2 * 1024 * 1024
    run = proxy("buffer: {request: {}}")
    client = run.connect()
    client.send(POST + b"Content-Length: 2097152\r\n\r\n")
    assert client.received == b""
    client = run.connect()
    client.send(POST + b"Content-Length: 2097153\r\n\r\n")
    assert client.received.startswith(TOO_LARGE)


def test_a_limit_of_nothing_lets_no_body_pass() -> None:
    run = proxy("buffer: {request: {maxBytes: 0}, response: {maxBytes: 0}}")
    client = run.connect()
    client.send(POST + b"Content-Length: 1\r\n\r\n")
    assert client.received.startswith(TOO_LARGE)
    client = run.connect()
    client.send(GET)
    run.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
    assert client.received.startswith(b"HTTP/1.1 502 ")


def test_nothing_to_do_is_no_filter() -> None:
    assert built() is None
    assert built(request={"max_bytes": 1}).response is None
    assert built(response={"max_bytes": 1}).request is None
