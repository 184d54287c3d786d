"""What an exchange answers, counts and passes on where it is not the endpoint's plain answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.memory_proxy import ROUTES, MemoryProxy
from tests.fakes.policy_run import served

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
UPGRADE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"


def test_the_time_to_an_answer_counts_for_the_choice_of_endpoints() -> None:
    """Of what was sent in one piece, and until the head is here."""
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(GET)
    (endpoint,) = proxy.connector.endpoints
    before = endpoint.latency
    proxy.now += 1
    proxy.upstream.answer(OK[:-2])
    after = endpoint.latency
    assert after == pytest.approx(before + 0.1 * (1 - before))
    proxy.now += 1
    proxy.upstream.answer(b"ok")
    assert endpoint.latency == after


def test_a_backend_without_endpoints() -> None:
    proxy = MemoryProxy()
    backends = proxy.applier.current.table.backends
    (key,) = backends
    backends[key] = replace(backends[key], endpoints=(), kind="service")  # type: ignore[index]  # a table does not change otherwise
    client = proxy.connect()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 503 ") and " reason=NoEndpoints" in proxy.log_lines()[0]
    assert client.open and not proxy.connector.upstreams


@pytest.mark.parametrize(("status", "is_error"), [(399, False), (400, True), (500, True)])
def test_own_answers_to_calls_are_errors_from_400_on(status: int, is_error: bool) -> None:
    """docs/grpc.md: they are answered with a status of gRPC, in 200."""
    proxy = MemoryProxy(served(f"policies: {{directResponse: {{status: {status}}}}}"))
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\ncontent-type: application/grpc\r\ncontent-length: 1\r\n\r\nx")
    assert client.received.startswith(b"HTTP/1.1 200 " if is_error else b"HTTP/1.1 %d " % status)
    assert (b"\r\ngrpc-status: " in client.received) == is_error


def test_an_answer_of_a_route_s_step_passes_the_steps_around_it() -> None:
    steps = "directResponse: {status: 403}, headerModifiers: {response: {set: [{name: x-a, value: '1'}]}}"
    proxy = MemoryProxy(served(f"policies: {{{steps}}}"))
    client = proxy.connect()
    client.send(GET)
    assert client.received.startswith(b"HTTP/1.1 403 ") and client.received.count(b"\r\nx-a: 1\r\n") == 1


@pytest.mark.parametrize("first", [b"", b"hello"])
def test_the_bytes_of_a_tunnel_are_counted_from_the_first(first: bytes) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(UPGRADE)
    proxy.upstream.answer(SWITCH + b"\r\n" + first)
    proxy.upstream.answer(b"more")
    client.lose()
    assert f" response.bytes={len(first) + 4} " in proxy.log_lines()[0]


@pytest.mark.parametrize("sent", [b"", b"sec-websocket-accept: theirs\r\n"])
def test_no_step_changes_the_proof_of_a_handshake(sent: bytes) -> None:
    """RFC 6455 4.1: the client holds it against its own key."""
    text = served("policies: {headerModifiers: {response: {set: [{name: sec-websocket-accept, value: ours}]}}}")
    proxy = MemoryProxy(text)
    client = proxy.connect()
    client.send(UPGRADE)
    proxy.upstream.answer(SWITCH + sent + b"\r\n")
    assert client.received.count(b"sec-websocket-accept") == bool(sent) and b"ours" not in client.received
    assert sent in client.received


@pytest.mark.parametrize("route", [ROUTES, served("policies: {buffer: {request: {maxBytes: 1000}}}")])
def test_a_client_that_waits_is_invited_once(route: str) -> None:
    proxy = MemoryProxy(route)
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
    assert client.take() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"da")
    client.send(b"ta")
    assert client.take() == b"" and proxy.upstream.received.endswith(b"data")
    proxy.upstream.answer(OK)
    assert client.take() == OK
