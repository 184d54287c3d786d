"""Connections of TLS through a whole proxy in memory: what clients ask for decides listener and protocol."""

from __future__ import annotations

from tests.fakes.certificates import Authority
from tests.fakes.memory_proxy import ROUTES
from tests.fakes.secure_proxy import SecureProxy, TlsClient, secure

AUTHORITY = Authority()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


def test_a_request_over_tls_is_served_and_says_so_to_the_endpoint() -> None:
    proxy = SecureProxy(ROUTES, {"http": secure(AUTHORITY.issue("shop.example"))})
    client = TlsClient(proxy.connect(), "shop.example", AUTHORITY)
    assert client.error == ""
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    assert b"x-forwarded-proto: https\r\n" in proxy.connector.upstream.received
    proxy.connector.upstream.answer(ANSWER)
    assert client.read().endswith(b"hi")
