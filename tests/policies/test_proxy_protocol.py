"""`frontend.proxyProtocol` from the standalone file to the address that everything else counts with."""

from __future__ import annotations

import json
import logging
from struct import pack

import pytest

from dataplane.net.proxy_header import V2
from tests.fakes.certificates import Authority
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import GET, OPENING, headers
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, TlsClient, secure

FILE = """
frontendPolicies:
  proxyProtocol: {rules}
  http: {http}
  limits: {limits}
  accessLog:
    add: {{source: source.address, port: source.port, raw: source.rawAddress, rawPort: source.rawPort}}
binds:
- port: 8080
  listeners:
  - name: http
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""

BALANCER = ("192.0.2.7", 40000)
CLIENT = "198.51.100.7"
REQUEST = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

LINE = b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n"
BINARY = V2 + pack("!BBH4s4sHH", 0x21, 0x11, 12, bytes([198, 51, 100, 7]), bytes([10, 0, 0, 1]), 4711, 80)
LOCAL = V2 + pack("!BBH", 0x20, 0, 0)


def text(rules: str = "{}", http: str = "{}", limits: str = "{}") -> str:
    return FILE.format(rules=rules, http=http, limits=limits)


def memory(rules: str = "{}", http: str = "{}", limits: str = "{}") -> MemoryProxy:
    return Http1Endpoints(text(rules, http, limits))


def served(proxy: MemoryProxy, client: FakeTransport) -> str:
    """The end of the log line of the request that has been sent."""
    proxy.upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")
    return proxy.log_lines()[-1].partition(" source=")[2]


def refusals(proxy: MemoryProxy) -> dict[str, int]:
    name = "connections_refused_total"
    return {each.labels[0]: values[0] for each, values in proxy.metrics.series() if each.metric.name == name}


NAMED = f"{CLIENT} port=4711 raw=192.0.2.7 rawPort=40000"
UNNAMED = "192.0.2.7 port=40000 raw=192.0.2.7 rawPort=40000"


@pytest.mark.parametrize(
    ("rules", "header", "log"),
    [
        ("{}", BINARY, NAMED),
        ("{}", LOCAL, UNNAMED),
        ("{version: V2}", BINARY, NAMED),
        ("{version: V1}", LINE, NAMED),
        ("{version: V1}", b"PROXY UNKNOWN\r\n", UNNAMED),
        ("{version: All}", LINE, NAMED),
        ("{version: All}", BINARY, NAMED),
        ("{version: All, mode: Optional}", LINE, NAMED),
        ("{version: All, mode: Optional}", BINARY, NAMED),
        ("{version: All, mode: Optional}", b"", UNNAMED),
        ("{mode: Optional}", b"", UNNAMED),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3, 10_000])
def test_the_client_is_who_the_header_says(rules: str, header: bytes, log: str, pieces: int) -> None:
    proxy = memory(rules)
    client = proxy.connect(BALANCER)
    data = header + REQUEST
    step = max(1, len(data) // pieces)
    for at in range(0, len(data), step):
        client.send(data[at : at + step])
    assert b"x-forwarded-for: %b\r\n" % log.partition(" ")[0].encode() in proxy.upstream.received
    assert served(proxy, client) == log
    client.send(REQUEST)  # a header stands at the beginning alone
    assert served(proxy, client) == log
    assert refusals(proxy) == {}


@pytest.mark.parametrize(
    ("rules", "data", "reason"),
    [
        ("{}", REQUEST, "ProxyHeaderMissing"),
        ("{}", LINE, "ProxyHeaderMissing"),
        ("{version: V1}", BINARY, "ProxyHeaderMissing"),
        ("{version: All}", b"\x16\x03\x01", "ProxyHeaderMissing"),
        ("{version: All}", b"PROXY TCP4 a\r\n", "ProxyHeaderMalformed"),
        ("{version: All}", V2 + b"\x11\x11\x00\x0c", "ProxyHeaderMalformed"),
        ("{version: All, mode: Optional}", b"PROXY TCP4 a\r\n", "ProxyHeaderMalformed"),
        ("{mode: Optional}", V2 + b"\x21\x11\xff\xff", "ProxyHeaderMalformed"),
    ],
)
def test_what_is_refused_is_closed_without_a_word(
    rules: str, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = memory(rules)
    with caplog.at_level(logging.WARNING, logger="dataplane.server"):
        client = proxy.connect(BALANCER)
        client.send(data)
        assert not client.open and client.received == b""
        for _ in range(3):
            proxy.connect(BALANCER).send(data)
    assert refusals(proxy) == {reason: 4}
    (record,) = caplog.records
    assert record.getMessage() == (
        f"connections refused ({reason}): 1 since it was last reported; the last one is of 192.0.2.7"
    )
    assert proxy.lines == [] and len(proxy.context.connections) == 0


@pytest.mark.parametrize(
    ("begun", "reason"),
    [(b"", "ProxyHeaderMissing"), (BINARY[:-1], "ProxyHeaderTimeout"), (BINARY[:3], "ProxyHeaderTimeout")],
)
def test_a_header_has_five_seconds(begun: bytes, reason: str) -> None:
    proxy = memory()
    client = proxy.connect(BALANCER)
    if begun:
        client.send(begun)
    proxy.advance(4.9)
    assert client.open
    proxy.advance(0.2)
    assert not client.open and refusals(proxy) == {reason: 1}


def test_one_that_drips_has_no_more() -> None:
    proxy = memory()
    client = proxy.connect(BALANCER)
    for octet in BINARY[:12]:
        client.send(bytes((octet,)))
        proxy.advance(0.42)
    assert not client.open


@pytest.mark.parametrize("begun", [b"", b"P", b"PRI"])
def test_who_needs_no_header_may_wait(begun: bytes) -> None:
    """A client that connects ahead of its request; one whose first bytes may begin a header."""
    proxy = memory("{version: All, mode: Optional}")
    client = proxy.connect(BALANCER)
    if begun:
        client.send(begun)
    proxy.advance(5.1)
    assert client.open
    proxy.advance(4)
    rest = {b"": REQUEST, b"P": b"UT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n", b"PRI": b""}[begun]
    if rest:
        client.send(rest)
        assert served(proxy, client) == UNNAMED


@pytest.mark.parametrize("begun", [b"PROXY", LINE[:-1], b"\r\n\r\n", BINARY[:-1]])
def test_half_a_header_has_five_seconds_also_where_none_is_needed(begun: bytes) -> None:
    proxy = memory("{version: All, mode: Optional}")
    client = proxy.connect(BALANCER)
    client.send(begun)
    proxy.advance(4.9)
    assert client.open
    proxy.advance(0.2)
    assert not client.open and refusals(proxy) == {"ProxyHeaderTimeout": 1}


@pytest.mark.parametrize("rules", ["{version: All, mode: Optional}", "{version: All}"])
def test_http_2_follows_a_header_or_none(rules: str) -> None:
    proxy = memory(rules)
    client = FrameClient(proxy, opening=b"")
    header = b"" if "Optional" in rules else BINARY
    for octet in header + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + OPENING:
        client.transport.send(bytes((octet,)))
    client.send(headers(1, GET))
    proxy.upstream.answer(OK)
    assert any(each.value == 200 for each in client.take())
    assert proxy.log_lines()[-1].partition(" source=")[2] == (NAMED if header else UNNAMED)


def test_tls_follows_the_header() -> None:
    authority = Authority()
    proxy = SecureProxy(
        text("{version: All, mode: Optional}").replace("name: http\n", "name: http\n    hostname: shop.example\n"),
        {"http": secure(authority.issue("shop.example"))},
        spoken=1,
    )
    for header, log in ((LINE, NAMED), (BINARY, NAMED), (b"", UNNAMED)):
        transport = proxy.connect(BALANCER)
        if header:
            transport.send(header)
        client = TlsClient(transport, server_name="shop.example", authority=authority)
        client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
        proxy.connector.upstream.answer(OK)
        assert client.read().startswith(b"HTTP/1.1 200 ")
        assert proxy.log_lines()[-1].partition(" source=")[2] == log


def test_a_handshake_has_its_own_time_from_the_header_on() -> None:
    listeners = {"http": secure(Authority().issue("shop.example"))}
    proxy = SecureProxy(
        text("{version: V1}").replace("name: http\n", "name: http\n    hostname: shop.example\n"), listeners
    )
    client = proxy.connect(BALANCER)
    proxy.advance(4)
    client.send(LINE)
    proxy.advance(14.9)
    assert client.open
    proxy.advance(0.2)
    assert not client.open


class TestTrust:
    @pytest.mark.parametrize(
        ("http", "peer", "is_taken"),
        [
            ("{trustedHops: {cidrs: [192.0.2.0/24]}}", "192.0.2.7", True),
            ("{trustedHops: {cidrs: [192.0.2.0/24]}}", "203.0.113.9", False),
            ("{trustedHops: {count: 1}}", "203.0.113.9", True),
            ("{}", "203.0.113.9", True),
        ],
    )
    @pytest.mark.parametrize("mode", ["Strict", "Optional"])
    def test_a_header_is_taken_from_trusted_hops_alone(self, http: str, peer: str, is_taken: bool, mode: str) -> None:
        proxy = memory(f"{{mode: {mode}}}", http)
        client = proxy.connect((peer, 40000))
        client.send(BINARY + REQUEST)
        assert client.open == is_taken
        assert refusals(proxy) == ({} if is_taken else {"ProxyHeaderUntrusted": 1})

    def test_others_may_come_without_one_where_it_is_optional(self) -> None:
        proxy = memory("{mode: Optional}", "{trustedHops: {cidrs: [192.0.2.0/24]}}")
        client = proxy.connect(("203.0.113.9", 40000))
        client.send(REQUEST)
        assert served(proxy, client).startswith("203.0.113.9 ")

    @pytest.mark.parametrize(
        ("hops", "source"),
        [
            ("{cidrs: [192.0.2.0/24]}", CLIENT),  # the header's address is nobody who is believed
            ("{cidrs: [192.0.2.0/24, 198.51.100.0/24]}", "203.0.113.1"),
            ("{count: 1}", "203.0.113.1"),
        ],
    )
    def test_forwarded_for_is_read_after_the_header(self, hops: str, source: str) -> None:
        proxy = memory("{}", f"{{trustedHops: {hops}}}")
        client = proxy.connect(BALANCER)
        client.send(BINARY + REQUEST.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n"))
        assert b"x-forwarded-for: 203.0.113.1, 198.51.100.7\r\n" in proxy.upstream.received
        assert served(proxy, client).startswith(f"{source} port=4711 raw=192.0.2.7 ")


class TestLimits:
    def test_count_the_address_of_the_header(self) -> None:
        """Through one balancer come many clients."""
        proxy = memory("{version: V1}", limits="{maxConnectionsPerAddress: 2}")
        clients = [proxy.connect(BALANCER) for _ in range(6)]
        for number, client in enumerate(clients):
            client.send(b"PROXY TCP4 198.51.100.%d 10.0.0.1 4711 80\r\n" % (number // 3))
        assert [each.open for each in clients] == [False, True, True, False, True, True]

    def test_hold_before_a_header_is_here(self) -> None:
        proxy = memory("{version: V1}", limits="{maxConnections: 2}")
        clients = [proxy.connect(BALANCER) for _ in range(3)]
        assert [each.open for each in clients] == [False, True, True]

    def test_who_is_refused_takes_nobodys_place(self) -> None:
        proxy = memory("{version: V1, mode: Optional}", "{trustedHops: {cidrs: [192.0.2.0/24]}}")
        kept = proxy.connect(BALANCER)
        kept.send(LINE)
        proxy.connect(("203.0.113.9", 1)).send(LINE)
        assert len(proxy.context.connections) == 1 and kept.open


def test_an_edit_counts_for_connections_that_come_after_it() -> None:
    proxy = memory()
    before = proxy.connect(BALANCER)
    before.send(BINARY + REQUEST)
    assert served(proxy, before) == NAMED
    plain = text().replace("  proxyProtocol: {}\n", "")
    proxy.load(plain)
    before.send(REQUEST)
    assert served(proxy, before) == NAMED
    after = proxy.connect(BALANCER)
    after.send(REQUEST)
    assert served(proxy, after) == UNNAMED


def test_without_the_policy_a_connection_has_no_phase() -> None:
    proxy = memory()
    assert type(proxy.connect().protocol).__name__ == "Entry"
    proxy.load(text().replace("  proxyProtocol: {}\n", ""))
    assert type(proxy.connect().protocol).__module__ == "dataplane.server.h1.h1_connection"


def test_the_log_names_the_client() -> None:
    proxy = memory()
    client = proxy.connect(BALANCER)
    client.send(BINARY + REQUEST)
    proxy.upstream.answer(OK)
    assert f" src.addr={CLIENT} " in proxy.log_lines()[-1], json.dumps(proxy.log_lines())


def test_who_came_by_the_balancer_is_counted_for_it_no_more() -> None:
    """The limit of an address is that of the client, also when many have come and gone by one balancer."""
    proxy = memory("{mode: Optional}", limits="{maxConnectionsPerAddress: 2}")
    for number in range(5):
        client = proxy.connect(BALANCER)
        client.send(V2 + pack("!BBH4s4sHH", 0x21, 0x11, 12, bytes([198, 51, 100, number]), bytes(4), 4711, 80))
        client.send(REQUEST)
        assert served(proxy, client).startswith(f"198.51.100.{number} ")
        if number % 2:
            client.lose()
    for _ in range(2):  # of its own it may have two
        client = proxy.connect(BALANCER)
        client.send(REQUEST)
        assert served(proxy, client) == UNNAMED
    assert len(proxy.context.connections) == 5 and all(each.open for each in proxy.clients[:6:2])


def test_a_connection_has_its_bound_and_its_name_before_its_protocol_is_known() -> None:
    proxy = memory()
    client = proxy.connect(BALANCER)
    assert client.high_water == proxy.context.limits.write_buffer
    now = proxy.context.writes.now
    seen = []
    for data in (BINARY[:5], BINARY[5:] + REQUEST[:5], REQUEST[5:]):
        now[0] = 0
        client.send(data)
        seen.append(now[0])
    assert 0 not in seen and seen[0] != seen[2]
