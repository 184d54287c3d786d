"""What connections say of themselves: whose bytes are looked at, for the agent; how many there are, for metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataplane.link import last_served
from dataplane.link.last_served import SECTIONS, LastServed
from dataplane.link.shared import Region
from dataplane.net.turns import Turns
from dataplane.net.writes import Writes
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import GET as GET2
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy

pytestmark = pytest.mark.leaves("a region of shared memory is kept for the life of its process, as in the product")

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
ANN, BOB = ("192.0.2.2", 40000), ("192.0.2.3", 40000)
STREAMS = """
binds:
- port: 9000
  listeners:
  - name: db
    protocol: TCP
    tcpRoutes: [{name: main, backends: [{host: "127.0.0.1:9001"}]}]
"""


@pytest.fixture
def region() -> Iterator[Region]:
    made = Region.create("test", SECTIONS)
    yield made
    made.close()


def proxy_of(region: Region, text: str = ROUTES) -> MemoryProxy:
    return MemoryProxy(text, writes=Writes(lambda flush: flush(), LastServed.of(region)))


class TestTheAgentReads:
    def test_whose_request_it_is(self, region: Region) -> None:
        proxy = proxy_of(region)
        ann, bob = proxy.connect(ANN), proxy.connect(BOB)
        assert last_served.read(region) == ""
        for client, address in ((ann, ANN[0]), (bob, BOB[0]), (ann, ANN[0])):
            client.send(b"GET")
            assert last_served.read(region).startswith(f"client HTTP/1.1 {address} bind=")

    def test_whose_frames_they_are(self, region: Region) -> None:
        proxy = proxy_of(region)
        ann, bob = FrameClient(proxy, transport=proxy.connect(ANN)), FrameClient(proxy, transport=proxy.connect(BOB))
        for client, address in ((ann, ANN[0]), (bob, BOB[0])):
            client.send(headers(1, GET2)[:5])
            assert last_served.read(region).startswith(f"client HTTP/2 {address} bind=")

    def test_whose_bytes_pass_as_they_are(self, region: Region) -> None:
        proxy = proxy_of(region, STREAMS)
        ann, bob = proxy.connect(ANN), proxy.connect(BOB)
        for client, address in ((ann, ANN[0]), (bob, BOB[0])):
            client.send(b"x")
            assert last_served.read(region).startswith(f"client TCP {address} bind=")

    def test_whose_turn_it_is(self, region: Region) -> None:
        """What waited is looked at without new bytes."""
        proxy = proxy_of(region, ROUTES.replace("    - name: all", "    - name: all\n      hostnames: [only.test]"))
        due: list[object] = []
        proxy.context.writes.turns = Turns(due.append, lambda: 0.0)
        ann, bob = proxy.connect(ANN), proxy.connect(BOB)
        ann.send(GET * 100)
        frames = FrameClient(proxy, transport=proxy.connect(("192.0.2.4", 40000)))
        frames.send(*(headers(1 + 2 * number, GET2) for number in range(100)))
        seen = set()
        for _ in range(20):
            bob.send(b"G") if bob.open and not bob.received else None
            for call in due[:]:
                due.remove(call)
                assert callable(call)
                call()
                seen.add(last_served.read(region).partition(" bind=")[0])
        assert {"client HTTP/1.1 192.0.2.2", "client HTTP/2 192.0.2.4"} <= seen
        assert ann.received.count(b"404 Not") == 100


def counted(proxy: MemoryProxy, metric: str) -> list[int]:
    return [values[0] for each, values in proxy.metrics.series() if each.metric.name == metric]


def plain(proxy: MemoryProxy) -> FakeTransport:
    return proxy.connect()


def frames(proxy: MemoryProxy) -> FakeTransport:
    return FrameClient(proxy).transport


@pytest.mark.parametrize(
    ("text", "begin"), [(ROUTES, plain), (ROUTES, frames), (STREAMS, plain)], ids=["1", "2", "TCP"]
)
def test_connections_are_counted_up_and_down(text: str, begin: object) -> None:
    proxy = MemoryProxy(text)
    assert callable(begin)
    clients = [begin(proxy) for _ in range(3)]
    assert counted(proxy, "downstream_connections_active") == [3]
    clients[0].lose()
    clients[1].lose(ConnectionResetError())
    assert counted(proxy, "downstream_connections_active") == [1]
    assert counted(proxy, "downstream_connections_total") == [3]


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"nonsense\r\n\r\n", "BadRequest"),
        (b"GET / HTTP/1.1\r\n\r\n", "BadRequest"),
        (b"GET /" + b"a" * 70_000, "TargetTooLong"),
        (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "MethodNotImplemented"),
        (GET[:-2] + b"x: y\r\n" * 200 + b"\r\n", "HeadersTooLarge"),
    ],
)
def test_refused_requests_are_counted_by_reason(sent: bytes, reason: str) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(sent)
    found = {
        each.labels: values[0] for each, values in proxy.metrics.series() if each.metric.name == "http_rejected_total"
    }
    assert found == {(reason,): 1} and client.received.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501"))


def test_headers_that_are_left_out_for_their_names_are_counted() -> None:
    proxy = MemoryProxy()
    proxy.connect().send(GET[:-2] + b"a_b: 1\r\nc_d: 2\r\ne-f: 3\r\n\r\n")
    assert counted(proxy, "request_headers_dropped_total") == [2]
    client = FrameClient(proxy)
    for number in range(3):  # also of a head that says the same as the one before
        client.send(headers(1 + 2 * number, (*GET2, (b"a_b", b"1"), (b"c-d", b"2"))))
    assert counted(proxy, "request_headers_dropped_total") == [5]
    client.send(headers(7, GET2))
    assert counted(proxy, "request_headers_dropped_total") == [5]
