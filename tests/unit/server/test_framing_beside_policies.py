"""How bodies are framed on HTTP/1.1 connections when policies hold, measure, make, keep or copy them (RFC 9112 6)."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable

import pytest

from gatewright.api.standalone import standalone
from tests.fakes.calls import FakeCalls, answered
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import served
from tests.fakes.table_state import change

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


def proxy_with(policies: str) -> MemoryProxy:
    return MemoryProxy(served(f"policies: {{{policies}}}"))


# --- buffer


def test_a_client_that_leaves_before_a_step_that_reads_its_body_had_its_turn() -> None:
    """The step never runs, and what it was to await is closed: nothing complains that nobody awaited it."""
    proxy = proxy_with("transformation: {request: {set: [{name: x-a, value: 'size(request.body)'}]}}")
    turn: list[Callable[[], None]] = []
    proxy.context.call_soon = turn.append
    client = proxy.connect()
    client.send(POST + b"Content-Length: 5\r\n\r\nhe")
    with warnings.catch_warnings(record=True) as complaints:
        client.lose()
        for call in turn:
            call()
        gc.collect()
    assert turn and not complaints and not proxy.connector.upstreams
    assert " http.status=499 " in proxy.log_lines()[0]


def test_chunks_are_measured() -> None:
    proxy = proxy_with("buffer: {request: {maxBytes: 8}}")
    client = proxy.connect()
    client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n")
    assert client.received == b""
    client.send(b"1\r\ni\r\n")
    assert client.received.startswith(b"HTTP/1.1 413 ") and not proxy.connector.upstreams


def test_a_buffered_response_leaves_framed_as_it_came() -> None:
    proxy = proxy_with("buffer: {response: {maxBytes: 8}}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcd")
    assert client.received == b""
    proxy.upstream.answer(b"efgh")
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabcdefgh"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabcdefghi\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nabcdefghi",  # until the connection ends
    ],
)
def test_a_response_over_the_limit_is_replaced_and_its_connection_closed(answer: bytes) -> None:
    proxy = proxy_with("buffer: {response: {maxBytes: 8}}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(answer)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert client.received.endswith(b"\r\n\r\nresponse body is too large")
    assert not proxy.upstream.open and client.open
    client.lose()
    (line,) = proxy.log_lines()
    assert "reason=ResponseTooLarge" in line


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (GET, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Length: 99\r\n\r\ndata"),
        (GET, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    ],
)
def test_what_a_buffer_lets_pass_keeps_its_bytes(request_: bytes, answer: bytes) -> None:
    proxy = proxy_with("buffer: {response: {maxBytes: 8}}")
    client = proxy.connect()
    client.send(request_)
    proxy.upstream.answer(answer)
    assert client.received == answer


# --- transformation


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2097153\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
    ],
)
def test_a_response_that_cannot_be_buffered_is_not_transformed(answer: bytes) -> None:
    proxy = proxy_with("transformation: {response: {body: \"string(response.body) + '!'\"}}")
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(answer)
    assert client.received.startswith(b"HTTP/1.1 502 ")
    assert client.received.endswith(b"\r\n\r\nresponse transformation failed")


def test_a_stream_passes_with_its_bytes_where_only_a_header_asks_for_it() -> None:
    proxy = proxy_with("transformation: {response: {set: [{name: x-size, value: size(response.body)}]}}")
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-size: 1\r\nContent-Length: 99\r\n\r\ndata"
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(answer)
    assert client.received == answer.replace(b"x-size: 1\r\n", b"")


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 4\r\n\r\nab", b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"]
)
def test_a_body_that_was_made_has_a_length_in_each_copy(begun: bytes) -> None:
    made = "transformation: {request: {body: \"'new'\"}}"
    proxy = proxy_with(f"{made}, retry: {{codes: [503], backoff: 10ms}}, requestMirror: {{host: '127.0.0.1:9001'}}")
    client = proxy.connect()
    client.send(POST + begun)
    if begun.startswith(b"Content"):
        assert not proxy.connector.upstreams, "it waits for a body that it may keep the connection for"
        client.send(b"cd")
    first = proxy.connector.upstreams[:]
    assert all(each.take().endswith(b"content-length: 3\r\n\r\nnew") for each in first)
    assert len(first) == 2
    for each in first:
        each.answer(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    proxy.advance(1.0)
    again = b"".join(each.take() for each in proxy.connector.upstreams)
    assert again.count(b"POST / ") == 1 and again.endswith(b"\r\n\r\nnew")


# --- mirrors

MIRRORED = served("policies: {requestMirror: {host: '127.0.0.1:9001'}}")


def mirror_of(proxy: MemoryProxy) -> bytes:
    """What the mirror got."""
    (upstream,) = [each for each in proxy.connector.upstreams if each.protocol.endpoint.port == 9001]
    return upstream.received


@pytest.mark.parametrize(
    ("framing", "pieces"),
    [
        (b"Content-Length: 6", [b"one", b"two"]),
        (b"Transfer-Encoding: chunked", [b"3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"]),
    ],
)
def test_a_copy_is_framed_as_the_request_was(framing: bytes, pieces: list[bytes]) -> None:
    proxy = MemoryProxy(MIRRORED)
    client = proxy.connect()
    client.send(POST + framing + b"\r\n\r\n")
    client.send(pieces[0])
    assert len(proxy.connector.upstreams) == 1
    client.send(pieces[1])
    head, _, body = mirror_of(proxy).partition(b"\r\n\r\n")
    assert framing.lower() in head.lower()
    assert body == (b"onetwo" if b"Length" in framing else b"6\r\nonetwo\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "sent", [b"", b"Content-Length: 4\r\n\r\nbody", b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"]
)
def test_a_copy_is_framed_for_the_body_that_it_has(sent: bytes) -> None:
    """A body that a step of the backend reference made."""
    proxy = MemoryProxy(MIRRORED)
    loaded = standalone.load(MIRRORED, "config.yaml").resources
    (resource,) = [each for each in loaded if each.key.startswith("route/")]
    resource.route.backends[0].policies.add().transformation.request.body = "'something longer'"
    list(proxy.applier.apply([change(resource)]))
    proxy.connect().send(POST + (sent or b"\r\n"))
    head, _, body = mirror_of(proxy).partition(b"\r\n\r\n")
    if b"chunked" in sent:
        assert b"transfer-encoding: chunked" in head.lower() and b"content-length" not in head.lower()
        assert body == b"10\r\nsomething longer\r\n0\r\n\r\n"
    else:
        assert head.lower().count(b"\r\ncontent-length: 16") == head.lower().count(b"content-length") == 1
        assert body == b"something longer"


def test_a_body_of_one_chunk_over_the_limit_is_not_mirrored() -> None:
    proxy = MemoryProxy(MIRRORED)
    client = proxy.connect()
    client.send(POST.replace(b"POST", b"PUT") + b"Transfer-Encoding: chunked\r\n\r\n")
    client.send(b"200001\r\n" + bytes(0x200001) + b"\r\n0\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert client.received.endswith(b"\r\n\r\nok") and len(proxy.connector.upstreams) == 1


# --- external authorization

FORWARDS = "extAuthz: {host: '127.0.0.1:9001', protocol: {http: {}}, forwardBody: {maxSize: 5}, failureMode: FailOpen}"


def test_chunks_are_read_for_the_authorization_server() -> None:
    calls = FakeCalls(otherwise=answered())
    proxy = MemoryProxy(served(f"policies: {{{FORWARDS}}}"), calls=calls)
    proxy.connect().send(POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n")
    assert calls.last.body == b"12345"
    assert proxy.upstream.received.endswith(b"\r\n\r\n5\r\n12345\r\n0\r\n\r\n")


def test_a_chunk_that_is_too_large_for_the_authorization_server() -> None:
    calls = FakeCalls(otherwise=answered())
    proxy = MemoryProxy(served(f"policies: {{{FORWARDS}}}"), calls=calls)
    client = proxy.connect()
    client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n")
    assert client.received.startswith(b"HTTP/1.1 413 ")
    assert not calls.received and not proxy.connector.upstreams
