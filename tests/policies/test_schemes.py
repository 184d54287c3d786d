"""The scheme of the URI that a client asks for: that of its connection, or what a trusted gateway in front says.

RFC 9110 7.4: a request for `https` in plain text is refused unless a trusted gateway sent it, as a proxy does that ends
TLS and passes frames (`:scheme`) or the absolute form on. Who is trusted is configured: `trustedHops`, or a PROXY
header that each connection has to bring.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import pytest

from dataplane.net.proxy_header import V2
from tests.fakes.certificates import Authority
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import OPENING, headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, TlsClient, secure

FILE = """
frontendPolicies:
  {frontend}
  accessLog: {{add: {{scheme: request.scheme, said: 'request.headers["x-forwarded-proto"]'}}}}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: shop.example
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""

NEAR, FAR = ("192.0.2.7", 40000), ("203.0.113.9", 40000)
BINARY = V2 + pack("!BBH4s4sHH", 0x21, 0x11, 12, bytes([198, 51, 100, 7]), bytes([10, 0, 0, 1]), 4711, 80)
LOCAL = V2 + pack("!BBH", 0x20, 0, 0)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

CIDRS = "http: {trustedHops: {cidrs: [192.0.2.0/24]}}"
COUNT = "http: {trustedHops: {count: 1}}"
STRICT = "proxyProtocol: {}"
BOTH = f"{CIDRS}\n  {STRICT}"
OPTIONAL = "proxyProtocol: {mode: Optional}"

# What is configured, who connects, what stands before the first request, whether its word counts.
TRUST = {
    "nothing": ("http: {}", NEAR, b"", False),
    "a trusted network": (CIDRS, NEAR, b"", True),
    "another network": (CIDRS, FAR, b"", False),
    "a number of hops": (COUNT, FAR, b"", True),
    "a required PROXY header": (STRICT, FAR, BINARY, True),
    "a required PROXY header that names nobody": (STRICT, FAR, LOCAL, True),
    "a required PROXY header from a trusted network": (BOTH, NEAR, BINARY, True),
    "a PROXY header that need not come": (OPTIONAL, FAR, BINARY, False),
}


Ask = Callable[[MemoryProxy, tuple[str, int], bytes, bytes], int]


def asked_http1(proxy: MemoryProxy, peer: tuple[str, int], first: bytes, scheme: bytes) -> int:
    client = proxy.connect(peer)
    client.send(first + b"GET %b://shop.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n" % scheme)
    answer_upstream(proxy)
    return int(client.take().split(b" ", 2)[1])


def asked_http2(proxy: MemoryProxy, peer: tuple[str, int], first: bytes, scheme: bytes) -> int:
    client = FrameClient(proxy, opening=b"", transport=proxy.connect(peer))
    head = ((b":method", b"GET"), (b":scheme", scheme), (b":authority", b"shop.example"), (b":path", b"/"))
    client.transport.send(first + PREFACE + OPENING + headers(1, head))
    answer_upstream(proxy)
    return next(int(each.value) for each in client.take() if each.kind == "head")


def answer_upstream(proxy: MemoryProxy) -> None:
    if proxy.connector.upstreams and proxy.upstream.take():
        proxy.upstream.answer(OK)


@pytest.mark.parametrize("ask", [asked_http1, asked_http2])
@pytest.mark.parametrize(("frontend", "peer", "first", "counts"), TRUST.values(), ids=TRUST)
def test_https_in_plain_text_is_believed_of_a_trusted_gateway(
    ask: Ask, frontend: str, peer: tuple[str, int], first: bytes, counts: bool
) -> None:
    proxy = Http1Endpoints(FILE.format(frontend=frontend))
    assert ask(proxy, peer, first, b"https") == (200 if counts else 400)
    if counts:
        assert proxy.log_lines()[-1].endswith(" scheme=https said=https")
    assert ask(proxy, peer, first, b"HTTP") == 200, "what the connection speaks is always right"
    assert proxy.log_lines()[-1].endswith(" scheme=http said=http")
    assert ask(proxy, peer, first, b"ftp") == 400


@pytest.mark.parametrize(("frontend", "status"), [("http: {}", 400), (COUNT, 200)])
def test_http_over_tls_is_believed_of_a_trusted_gateway(frontend: str, status: int) -> None:
    """A balancer that opens TLS to the proxy for whatever its own client spoke."""
    authority = Authority()
    proxy = SecureProxy(FILE.format(frontend=frontend), {"http": secure(authority.issue("shop.example"))}, spoken=1)
    client = TlsClient(proxy.connect(NEAR), server_name="shop.example", authority=authority)
    client.send(b"GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\n\r\n")
    answer_upstream(proxy)
    assert client.read().startswith(b"HTTP/1.1 %d " % status)


def test_a_request_with_the_same_fields_and_another_scheme_is_another_one() -> None:
    """HTTP/2 remembers what a block of fields came to: not across schemes."""
    proxy = Http1Endpoints(FILE.format(frontend=COUNT))
    client = FrameClient(proxy)
    schemes = []
    for number, scheme in enumerate([b"https", b"http", b"https"]):
        head = ((b":method", b"GET"), (b":scheme", scheme), (b":authority", b"shop.example"), (b":path", b"/"))
        client.send(headers(2 * number + 1, (*head, (b"x-a", b"1"))))
        schemes.append(b"x-forwarded-proto: " + scheme in proxy.upstream.take())
        proxy.upstream.answer(OK)
    assert schemes == [True, True, True]
