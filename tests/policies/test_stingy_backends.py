"""Backends of HTTP/2 that allow no stream: requests wait as long as for a connection, and get a 503."""

from __future__ import annotations

import pytest

from dataplane.http.h2.settings import Settings
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import text_of

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
BACKEND = "backends: [{host: '127.0.0.1:9000', policies: {http: {version: HTTP2}%s}}]"


@pytest.mark.parametrize(("tcp", "seconds"), [("", 10.0), (", tcp: {connectTimeout: 2s}", 2.0)])
def test_a_request_waits_for_a_stream_as_long_as_for_a_connection(tcp: str, seconds: float) -> None:
    proxy = MemoryProxy(text_of(BACKEND % tcp))
    client = proxy.connect()
    client.send(GET)
    Endpoint2(proxy.upstream, Settings(max_streams=0))
    proxy.connector.advance(seconds - 0.1)
    assert client.received == b""
    proxy.connector.advance(0.2)
    assert client.received.startswith(b"HTTP/1.1 503 ")
    line = proxy.log_lines()[-1]
    assert "reason=ConnectFailed" in line and f"no HTTP/2 stream free within {seconds:g} s" in line


@pytest.mark.parametrize("timeouts", ["", "timeouts: {request: 3s}"])
def test_a_connection_without_streams_is_left_when_they_were_waited_for(timeouts: str) -> None:
    """Also where nobody waits any more: a backend that takes no more requests on one connection takes them on another.
    It would be asked for none as long as the first one is open."""
    proxy = MemoryProxy(text_of(f"policies: {{{timeouts}}}\n" + BACKEND % ""))
    first = proxy.connect()
    first.send(GET)
    stingy = proxy.upstream
    Endpoint2(stingy, Settings(max_streams=0))
    proxy.advance(3.1)
    assert first.received.startswith(b"HTTP/1.1 504") is bool(timeouts)
    proxy.connector.advance(10.1)
    assert not stingy.open and first.received
    second = proxy.connect()
    second.send(GET)
    endpoint = Endpoint2(proxy.upstream)
    endpoint.answer(endpoint.requests[0])
    assert second.received.startswith(b"HTTP/1.1 200")


def test_who_waits_for_the_next_connection_has_its_streams() -> None:
    proxy = MemoryProxy(text_of(BACKEND % ""))
    first = proxy.connect()
    first.send(GET)
    Endpoint2(proxy.upstream, Settings(max_streams=0))
    proxy.connector.advance(6.0)
    second = proxy.connect()
    second.send(GET)
    assert len(proxy.connector.upstreams) == 1
    proxy.connector.advance(4.1)
    assert first.received.startswith(b"HTTP/1.1 503 ") and second.received == b""
    endpoint = Endpoint2(proxy.upstream)
    endpoint.answer(endpoint.requests[0])
    assert second.received.startswith(b"HTTP/1.1 200")
