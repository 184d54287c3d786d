"""Request lines that are not plain: other forms of the target, other versions, and what is no request line at all."""

from __future__ import annotations

import pytest

from dataplane.proxy.context import Limits
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

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
        (b"TRACE / HTTP/1.1", b"TRACE / HTTP/1.1"),
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


@pytest.mark.parametrize("address", [("127.0.0.1", 8080), ("::ffff:127.0.0.1", 8080, 0, 0)])
def test_an_old_client_that_names_no_host_means_ours(
    address: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"peername": ("192.0.2.7", 1), "sockname": address}
    monkeypatch.setattr(FakeTransport, "get_extra_info", lambda self, name: ends[name])
    proxy = MemoryProxy()
    proxy.connect().send(b"GET / HTTP/1.0\r\n\r\n")
    assert b"\r\nhost: 127.0.0.1:8080\r\n" in proxy.upstream.received


def test_our_own_ipv6_address_stands_in_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"peername": ("2001:db8::1", 1, 0, 0), "sockname": ("::1", 8080, 0, 0)}
    monkeypatch.setattr(FakeTransport, "get_extra_info", lambda self, name: ends[name])
    proxy = MemoryProxy()
    proxy.connect().send(b"GET / HTTP/1.0\r\n\r\n")
    assert b"\r\nhost: [::1]:8080\r\n" in proxy.upstream.received
    assert b"\r\nx-forwarded-for: 2001:db8::1\r\n" in proxy.upstream.received
