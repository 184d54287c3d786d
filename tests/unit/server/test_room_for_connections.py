"""Limits of connections: who is closed for whom, over a whole proxy in memory."""

from __future__ import annotations

import logging

import pytest

from dataplane.server.admission import for_connections
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET as GET2
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import ROUTES, FakeTransport, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

HOG, ANN, BOB = (("192.0.2.1", 40000), ("192.0.2.2", 40000), ("192.0.2.3", 40000))


def proxy(limits: str) -> MemoryProxy:
    return MemoryProxy(f"frontendPolicies: {{limits: {limits}}}\n{ROUTES}")


def counted(made: MemoryProxy, metric: str) -> dict[str, int]:
    return {each.labels[0]: values[0] for each, values in made.metrics.series() if each.metric.name == metric}


def ask(made: MemoryProxy, client: FakeTransport) -> bytes:
    client.send(GET)
    made.upstream.answer(OK)
    return client.take()


def are_open(*clients: FakeTransport) -> list[bool]:
    return [client.open for client in clients]


def test_the_oldest_idle_one_of_who_has_most_goes() -> None:
    made = proxy("{maxConnections: 4}")
    ann = made.connect(ANN)
    hogs = []
    for _ in range(3):
        made.advance(1)
        hogs.append(made.connect(HOG))
    made.advance(1)
    assert ask(made, hogs[0]).startswith(b"HTTP/1.1 200")  # it has become the youngest of its address
    bob = made.connect(BOB)
    assert are_open(ann, *hogs, bob) == [True, True, False, True, True]
    assert counted(made, "idle_connections_closed_total") == {"maxConnections": 1}
    assert counted(made, "limits_exceeded_total") == {}
    assert ask(made, bob).startswith(b"HTTP/1.1 200") and ask(made, ann).startswith(b"HTTP/1.1 200")


def test_who_has_made_room_is_told_no_more() -> None:
    """Its transport may still be sending what it wrote; of a head that never came nothing is said any more."""
    made = proxy("{maxConnections: 1}")
    slow = made.connect(HOG)
    slow.send(GET[:-4])
    slow.close = lambda: None  # type: ignore[method-assign]
    slow.protocol.close_idle()
    made.advance(made.context.limits.header_timeout + 1)
    assert slow.take() == b""
    del slow.close  # type: ignore[method-assign]
    made.advance(made.context.limits.idle_timeout + 1)
    assert slow.aborted


def test_who_opens_more_and_more_closes_its_own() -> None:
    made = proxy("{maxConnections: 10}")
    others = [made.connect((f"198.51.100.{number}", 40000)) for number in range(5)]
    hogs = []
    for _ in range(50):
        made.advance(0.1)
        hogs.append(made.connect(HOG))
    assert all(are_open(*others)) and sum(are_open(*hogs)) == 5 and all(are_open(*hogs[-5:]))


def test_nine_hundred_idle_connections_of_one_client_cost_others_nothing() -> None:
    """With the 256 descriptors that some systems give a process."""
    made = MemoryProxy(ROUTES)
    most = for_connections(256, 1)
    made.context.descriptors = lambda: most
    others = [made.connect((f"198.51.100.{number}", 40000)) for number in range(20)]
    assert all(ask(made, client).startswith(b"HTTP/1.1 200") for client in others)
    hogs = []
    for number in range(900):
        made.advance(0.01)
        hogs.append(made.connect(HOG))
        if number % 100 == 99:
            assert ask(made, made.connect((f"203.0.113.{number // 100}", 40000))).startswith(b"HTTP/1.1 200")
    assert all(are_open(*others)) and sum(are_open(*hogs)) < most
    assert all(ask(made, client).startswith(b"HTTP/1.1 200") for client in others)
    assert counted(made, "limits_exceeded_total") == {}


def test_a_connection_with_a_request_stays() -> None:
    made = proxy("{maxConnections: 2}")
    busy = [made.connect(HOG), made.connect(HOG)]
    for client in busy:
        client.send(GET)
    new = made.connect(ANN)
    assert are_open(*busy, new) == [True, True, False] and not new.received
    assert counted(made, "limits_exceeded_total") == {"maxConnections": 1}


def test_who_holds_all_with_requests_gets_no_more_for_itself() -> None:
    """Its next connection is the idle one of the address that has most: others stay."""
    made = proxy("{maxConnections: 3}")
    ann = made.connect(ANN)
    for _ in range(2):
        made.connect(HOG).send(GET)
    made.advance(1)
    assert are_open(made.connect(HOG), ann) == [False, True]


def test_a_part_of_a_head_is_no_request() -> None:
    made = proxy("{maxConnections: 1}")
    slow = made.connect(HOG)
    slow.send(GET[:9])
    new = made.connect(ANN)
    assert are_open(slow, new) == [False, True]


def test_of_one_address() -> None:
    made = proxy("{maxConnectionsPerAddress: 2}")
    first, second = made.connect(("2001:db8::1", 1)), made.connect(("2001:db8::2", 1))
    other = made.connect(("2001:db8:0:1::1", 1))
    made.advance(1)
    third = made.connect(("2001:db8::3", 1))
    assert are_open(first, second, other, third) == [False, True, True, True]
    assert counted(made, "idle_connections_closed_total") == {"maxConnectionsPerAddress": 1}
    for client in (second, third):
        client.send(GET)
    assert not made.connect(("2001:db8::4", 1)).open
    assert counted(made, "limits_exceeded_total") == {"maxConnectionsPerAddress": 1}


def test_connections_that_ended_count_no_more() -> None:
    made = proxy("{maxConnections: 2, maxConnectionsPerAddress: 1}")
    for _ in range(5):
        client = made.connect(ANN)
        assert ask(made, client)
        client.lose()
    assert counted(made, "limits_exceeded_total") == counted(made, "idle_connections_closed_total") == {}


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_connection_of_http2(is_busy: bool) -> None:
    made = proxy("{maxConnections: 1}")
    client = FrameClient(made)
    if is_busy:
        client.send(headers(1, GET2))
    made.advance(1)
    new = made.connect(ANN)
    assert new.open is not is_busy and client.open is is_busy
    assert client.take() == ([] if is_busy else [Said("goaway", 0, 0)])  # nothing of its was lost


def test_descriptors_are_shared_with_connections_to_endpoints() -> None:
    made = MemoryProxy()
    made.context.descriptors = lambda: 3
    busy = made.connect(HOG)
    busy.send(GET)  # one of each side
    idle = made.connect(HOG)
    made.advance(1)
    new = made.connect(ANN)
    assert are_open(busy, idle, new) == [True, False, True]
    assert counted(made, "idle_connections_closed_total") == {"descriptors": 1}
    new.send(GET)
    assert not made.connect(BOB).open
    assert counted(made, "limits_exceeded_total") == {"descriptors": 1}


def test_stalled_bodies_of_one_address_leave_descriptors_to_others() -> None:
    made = MemoryProxy()
    made.context.descriptors = lambda: 90
    hogs = [made.connect(HOG) for _ in range(60)]
    for each in hogs:
        if each.open:
            each.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nsome")  # one of each side
    assert sum(are_open(*hogs)) == 30 and made.context.recorder.upstream_open() == 30
    assert [ask(made, made.connect(who)) for who in (ANN, BOB)] == [OK, OK]
    assert not made.connect(HOG).open
    assert counted(made, "limits_exceeded_total") == {"descriptors": 1}


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(64, 47), (256, 191), (1024, 959), (1_048_576, 1_048_511), (0, -1)]
)
def test_how_many_the_descriptors_are_for(descriptors: int, connections: int) -> None:
    assert for_connections(descriptors, 1) == connections


def test_it_is_logged_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    made = proxy("{maxConnections: 1}")
    with caplog.at_level(logging.WARNING, "dataplane.server"):
        for _ in range(10):
            made.connect(HOG)
        made.advance(1)
        made.connect(HOG).send(GET)
        made.connect(ANN)
        made.advance(1)
        made.connect(ANN)
    assert [record.getMessage() for record in caplog.records] == [
        "limit of connections reached (maxConnections): 1 idle ones closed, 0 new ones refused since it was last "
        "reported; the last one is of 192.0.2.1",
        "limit of connections reached (maxConnections): 9 idle ones closed, 0 new ones refused since it was last "
        "reported; the last one is of 192.0.2.1",
        "limit of connections reached (maxConnections): 0 idle ones closed, 2 new ones refused since it was last "
        "reported; the last one is of 192.0.2.2",
    ]


def test_a_client_that_changes_to_http2_counts_once() -> None:
    made = proxy("{maxConnections: 2, maxConnectionsPerAddress: 2}")
    clients = [FrameClient(made) for _ in range(2)]
    assert len(made.context.connections) == 2
    assert counted(made, "limits_exceeded_total") == counted(made, "idle_connections_closed_total") == {}
    for client in clients:
        client.transport.lose()
    assert len(made.context.connections) == 0
