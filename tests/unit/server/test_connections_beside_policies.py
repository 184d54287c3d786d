"""Which HTTP/1.1 connections are kept and which are closed (RFC 9112 9.3) when policies try again, and how what is
sent again is framed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.carriers import Names
from tests.fakes.memory_proxy import FakeUpstream, MemoryProxy
from tests.fakes.policy_run import text_of

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def proxy_with(retry: str, *addresses: str) -> MemoryProxy:
    """A proxy with this retry policy and a backend with these addresses."""
    proxy = MemoryProxy(text_of(f"policies: {{retry: {retry}}}\nbackends: [{{host: 'origin.test:9000'}}]"))
    names = Names({"origin.test": addresses or ("10.0.0.1", "10.0.0.2", "10.0.0.3")})
    proxy.context.resolver = names  # type: ignore[assignment]
    return proxy


def body_of(upstream: FakeUpstream) -> bytes:
    """The body of the request that an endpoint was sent, as framed."""
    return upstream.received.partition(b"\r\n\r\n")[2]


def test_connections_of_tries_stay_open() -> None:
    proxy = proxy_with("{attempts: 2, codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    for answer in (BUSY, BUSY, OK):
        proxy.upstream.answer(answer)
        proxy.advance(1)
    assert client.take() == OK
    upstreams = proxy.connector.upstreams
    assert len(upstreams) == 3 and all(upstream.open for upstream in upstreams)


@pytest.mark.parametrize(
    ("reply", "stays_open"),
    [
        (BUSY, True),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbu", True),  # the rest comes below
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\n", False),
        (b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n", False),  # it never ends
        (b"HTTP/1.1 503 Busy\r\n\r\nuntil the end", False),
        (b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy", False),
    ],
)
def test_the_connection_of_a_response_that_nobody_takes(reply: bytes, stays_open: bool) -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(GET)
    first = proxy.upstream
    first.answer(reply)
    if reply.endswith(b"bu"):
        first.answer(b"sy")
    proxy.advance(0.1)
    proxy.upstream.answer(OK)
    assert client.received == OK
    proxy.advance(2)
    connection: Any = first.protocol
    assert first.open == stays_open
    assert (connection in connection.endpoint.idle) == stays_open
    assert connection.endpoint.pending == 0


AGAIN = "{condition: 'string(response.body).contains(\"again\")'}"


@pytest.mark.parametrize(
    "reply",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\nagain",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nagain\r\n",
    ],
)
def test_a_response_that_is_not_tried_again_keeps_its_bytes(reply: bytes) -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(reply)
    assert client.received == reply
    assert len(proxy.connector.upstreams) == 1


def test_chunks_and_trailers_of_a_buffered_response_stay() -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(POST)
    first = proxy.upstream
    for piece in (CHUNKED, b"2\r\nag\r\n3\r\nain\r\n", b"0\r\n\r\n"):
        first.answer(piece)
    assert client.received == b"" and first.open  # the response was read to its end
    proxy.advance(1)
    proxy.upstream.answer(CHUNKED + b"4\r\nfine\r\n")
    assert client.received == b""
    proxy.upstream.answer(b"0\r\nx-trailer: 1\r\n\r\n")
    head, _, body = client.received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b"4\r\nfine\r\n0\r\nx-trailer: 1\r\n\r\n"
    assert client.open


def test_chunks_of_a_buffered_response_that_gets_too_large_stay() -> None:
    proxy = proxy_with(AGAIN)
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(CHUNKED)
    for _ in range(33):
        assert client.received == b""
        proxy.upstream.answer(b"10000\r\n" + bytes(0x10000) + b"\r\n")
    assert client.received.count(bytes(0x10000)) == 33
    proxy.upstream.answer(b"0\r\n\r\n")
    assert client.received.endswith(b"0\r\n\r\n")


def test_what_was_sent_before_is_sent_again_as_one_chunk() -> None:
    proxy = proxy_with("{attempts: 3, codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
    proxy.upstream.answer(BUSY)
    assert not proxy.upstream.open  # it still waits for the rest: it cannot carry another request
    client.send(b"3\r\ntwo\r\n")  # nobody takes it now
    proxy.advance(1)
    assert body_of(proxy.upstream) == b"6\r\nonetwo\r\n"
    client.send(b"5\r\nthree\r\n")
    assert body_of(proxy.upstream) == b"6\r\nonetwo\r\n5\r\nthree\r\n"
    proxy.upstream.lose(ConnectionResetError())
    client.send(b"0\r\n\r\n")
    proxy.advance(1)
    assert body_of(proxy.upstream) == b"b\r\nonetwothree\r\n0\r\n\r\n"
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert body_of(proxy.upstream) == b"b\r\nonetwothree\r\n0\r\n\r\n"
    proxy.upstream.answer(OK)
    assert client.received == OK and client.open


def test_one_chunk_over_the_limit_is_sent_once() -> None:
    proxy = proxy_with("{codes: [503]}")
    client = proxy.connect()
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.send(b"200001\r\n" + bytes(0x200001) + b"\r\n0\r\n\r\n")
    proxy.upstream.answer(BUSY)
    assert client.received == BUSY
    assert " retry.given_up=too_large " in proxy.log_lines()[-1]


def test_the_next_request_of_a_pipeline_begins_anew() -> None:
    proxy = proxy_with("{codes: [503]}", "10.0.0.1")
    client = proxy.connect()
    client.send(POST + POST)
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    proxy.upstream.answer(OK)
    assert client.take() == OK
    proxy.upstream.answer(BUSY)
    proxy.advance(1)
    assert proxy.upstream.received.count(b"x-retry-attempt: 1\r\n\r\nbody") == 2
    proxy.upstream.answer(OK)
    assert client.take() == OK
