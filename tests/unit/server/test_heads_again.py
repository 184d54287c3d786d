"""Heads of a connection that differ in values: each exchange has its own, and none is good because the last one was."""

from __future__ import annotations

import pytest

from tests.fakes.memory_proxy import MemoryProxy

HEAD = b"POST /a HTTP/1.1\r\nHost: a.example\r\nX-Id: %b\r\nAuthorization: %b\r\nContent-Length: %d\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nX-Served: %b\r\nContent-Length: %d\r\n\r\n"


def test_each_request_and_answer_has_its_own_values_and_length() -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    for number, body in enumerate((b"one", b"", b"longer than that", b"x")):
        own = b"%d" % number
        client.send(HEAD % (own, b"Bearer " + own * 20, len(body)) + body)
        sent = proxy.upstream.received
        proxy.upstream.received = b""
        assert (
            b"\r\nX-Id: %b\r\nAuthorization: Bearer %b\r\nContent-Length: %d\r\n" % (own, own * 20, len(body)) in sent
        )
        assert sent.endswith(b"\r\n\r\n" + body)
        answer = OK % (own * 3, len(body)) + body
        proxy.upstream.answer(answer)
        assert client.received == answer
        client.received = b""


@pytest.mark.parametrize(
    "second",
    [
        HEAD % (b"2\nX-Admin: 1", b"b", 0),
        HEAD % (b"2\rX-Admin: 1", b"b", 0),
        HEAD % (b"2\0", b"b", 0),
        HEAD.replace(b"X-Id:", b"X-Id :") % (b"2", b"b", 0),
        HEAD.replace(b"%d", b"+%d") % (b"2", b"b", 5),
        HEAD.replace(b"%d", b"%d, 5") % (b"2", b"b", 5),
        HEAD.replace(b"X-Id: %b", b"Content-Length: %b") % (b"5", b"b", 5),
        HEAD.replace(b"X-Id: %b", b"Host: %b") % (b"b.example", b"b", 0),
    ],
)
def test_a_bad_head_behind_good_ones_is_refused(second: bytes) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    for number in (b"0", b"1"):
        client.send(HEAD % (number, b"a", 0))
        proxy.upstream.received = b""
        proxy.upstream.answer(OK % (number, 0))
    client.received = b""
    client.send(second)
    assert client.received.startswith(b"HTTP/1.1 400 ")
    assert proxy.upstream.received == b""
    assert not client.open or b"connection: close" in client.received


def test_a_bad_answer_behind_good_ones_is_refused() -> None:
    for bad in (b"5, 5", b"+5", b"5\r\nContent-Length: 6", b"5\nX: y"):
        proxy = MemoryProxy()
        client = proxy.connect()
        for number in (b"0", b"1"):
            client.send(HEAD % (number, b"a", 0))
            proxy.upstream.answer(OK % (number, 0))
        client.received = b""
        client.send(HEAD % (b"2", b"a", 0))
        proxy.upstream.answer((OK % (b"2", 5)).replace(b": 5", b": " + bad) + b"hello")
        assert client.received.startswith(b"HTTP/1.1 502 "), bad
