"""Request lines that are not plain: other forms of the target, other versions, and what is no request line at all."""

from __future__ import annotations

import pytest

from dataplane.proxy.context import Limits
from tests.fakes.memory_proxy import MemoryProxy

HOST = b"\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET / HTTP/1.2", 505),
        (b"GET / HTTP/2.0", 505),
        (b"PRI * HTTP/2.0", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /%zz HTTP/1.1", 400),
        (b"GET a/b HTTP/1.1", 400),
        (b"GET * HTTP/1.1", 400),
        (b"GET https://a/ HTTP/1.1", 400),
        (b"GET http://a b/ HTTP/1.1", 400),
        (b"GET http://a_@/ HTTP/1.1", 400),
        (b"GET http://b/ HTTP/1.1", 400),
        (b"CONNECT a:1 HTTP/1.1", 405),
        (b"BREW / HTTP/1.1", 501),
        (b"BREW /%41 HTTP/1.1", 501),
        (b"OPTIONS * HTTP/1.1", 404),
    ],
)
def test_is_answered_without_an_endpoint(line: bytes, status: int) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(line + HOST)
    assert client.received.startswith(b"HTTP/1.1 %d " % status)
    assert not proxy.connector.upstreams


@pytest.mark.parametrize(
    ("line", "forwarded"),
    [
        (b"GET http://a HTTP/1.1", b"GET / HTTP/1.1"),
        (b"GET http://A/x?y HTTP/1.1", b"GET /x?y HTTP/1.1"),
        (b"GET /x? HTTP/1.1", b"GET /x? HTTP/1.1"),
        (b"GET /%7Ex?%zz HTTP/1.1", b"GET /~x?%zz HTTP/1.1"),
        (b"GET /./x HTTP/1.0", b"GET /x HTTP/1.1"),
        (b"DELETE / HTTP/1.1", b"DELETE / HTTP/1.1"),
    ],
)
def test_goes_on_in_origin_form(line: bytes, forwarded: bytes) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(line + HOST)
    assert client.received == b""
    assert proxy.upstream.received.partition(b"\r\n")[0] == forwarded


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /%b HTTP/1.1" % (b"x" * 100) + HOST, 414),
        (b"GET /%%41%b HTTP/1.1" % (b"x" * 100) + HOST, 414),
        (b"GET / HTTP/1.1\r\nX: %b" % (b"x" * 300) + HOST, 431),
        (b"GET / HTTP/1.1\r\nX: %b" % (b"x" * 300), 431),
        (b"GET /" + b"x" * 300, 414),
    ],
)
def test_has_bounds(head: bytes, status: int) -> None:
    proxy = MemoryProxy(limits=Limits(max_line=64, max_head=256))
    client = proxy.connect()
    client.send(head)
    assert client.received.startswith(b"HTTP/1.1 %d " % status)
