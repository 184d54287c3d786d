"""Upgrades of HTTP/1.1 (RFC 9110 7.8) on routes with policies: what is behind a 101 no policy sees. And mirrors
that answer so, or worse."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from dataplane.proxy.attempt.replay import BodyCopy
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import served

MIRRORED = served("policies: {requestMirror: {host: '127.0.0.1:9001'}}")
UPGRADE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def test_a_tunnel_is_not_buffered() -> None:
    proxy = MemoryProxy(served("policies: {buffer: {request: {maxBytes: 8}, response: {maxBytes: 8}}}"))
    client = proxy.connect()
    client.send(UPGRADE)
    proxy.upstream.answer(SWITCHED)
    proxy.upstream.answer(b"0123456789")
    assert client.received.endswith(b"\r\n\r\n0123456789")


def test_a_tunnel_goes_on_while_either_side_says_something() -> None:
    """A websocket is open for hours, and ends when both sides have been silent for `streamIdleTimeout`."""
    proxy = MemoryProxy(f"frontendPolicies: {{limits: {{streamIdleTimeout: 8s}}}}\n{served('')}")
    client = proxy.connect()
    client.send(UPGRADE)
    upstream = proxy.upstream
    upstream.answer(SWITCHED)
    for _ in range(3):
        upstream.answer(b"down")
        _wait(proxy, 7)
        client.send(b"up")
        _wait(proxy, 7)
    assert client.received.count(b"down") == 3 and client.open and upstream.open
    _wait(proxy, 5)
    assert not client.open and not upstream.open
    assert "streamIdleTimeout: no byte for 8 s" in proxy.log_lines()[-1]
    assert proxy.left() == []


def _wait(proxy: MemoryProxy, seconds: int) -> None:
    for _ in range(2 * seconds):
        proxy.advance(0.5)


def test_an_upgrade_is_not_mirrored() -> None:
    proxy = MemoryProxy(MIRRORED)
    proxy.connect().send(UPGRADE)
    (upstream,) = proxy.connector.upstreams
    assert upstream.protocol.endpoint.port == 9000 and upstream.received


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "lost"),
        (b"garbage\r\n\r\n", "lost"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(2**21), "sent"),
    ],
)
def test_a_mirror_that_misbehaves(answer: bytes, outcome: str) -> None:
    proxy = MemoryProxy(MIRRORED)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    by_port = {upstream.protocol.endpoint.port: upstream for upstream in proxy.connector.upstreams}
    by_port[9001].answer(answer)
    assert not by_port[9001].open
    by_port[9000].answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    counted = {each.labels[0]: n[0] for each, n in proxy.metrics.series() if each.metric.name == "mirrors_total"}
    assert counted == {outcome: 1}
    flight = proxy.context.mirrors
    assert flight.count == flight.bytes == by_port[9001].protocol.endpoint.pending == 0


@pytest.mark.parametrize(("size", "is_kept"), [(2**20, True), (2**20 + 65_537, False)])
def test_a_connection_to_a_mirror_is_kept_when_its_answer_is_not_too_large(size: int, is_kept: bool) -> None:
    proxy = MemoryProxy(MIRRORED)
    proxy.connect().send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    (mirror,) = [each for each in proxy.connector.upstreams if each.protocol.endpoint.port == 9001]
    mirror.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    for start in range(0, size, 65_536):
        if mirror.open:
            mirror.answer(bytes(min(65_536, size - start)))
    assert mirror.open == is_kept
    assert list(mirror.protocol.endpoint.idle) == ([mirror.protocol] if is_kept else [])


def ours_in_memory() -> list[Any]:
    """Everything of mirrors that is not freed, of earlier tests too."""
    return [each for each in gc.get_objects() if type(each).__name__ in ("_Copy", "Mirroring", "BodyCopy")]


def test_a_copy_that_was_answered_with_garbage_is_freed_at_once() -> None:
    gc.collect()
    gc.disable()
    before = ours_in_memory()
    try:
        proxy = MemoryProxy(MIRRORED)
        client = proxy.connect()
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
        by_port = {upstream.protocol.endpoint.port: upstream for upstream in proxy.connector.upstreams}
        by_port[9000].answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        by_port[9001].answer(b"garbage\r\n\r\n")
        left = [each for each in ours_in_memory() if not any(each is known for known in before)]
        assert {type(each) for each in left} == {BodyCopy}  # of the exchange that waits for its log line, empty
        assert not any(each.pieces for each in left)
    finally:
        gc.enable()
