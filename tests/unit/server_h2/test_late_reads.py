"""What comes over many connections of HTTP/2 in one moment: who waits, and for how long."""

from __future__ import annotations

from dataplane.http.h2.frames import PREFACE
from dataplane.net.arrivals import FEW
from dataplane.net.reads import READS
from tests.fakes.h2_wire import OPENING, data, headers
from tests.fakes.late import PIECE, Late
from tests.fakes.memory_proxy import FakeClient

HELLO = PREFACE + OPENING
ASKS = [(b":method", b"GET"), (b":path", b"/"), (b":scheme", b"http"), (b":authority", b"a")]
SENDS = [(b":method", b"POST"), *ASKS[1:]]
MANY = 2 * READS + 4


def _opened(loop: Late, number: int, address: str) -> list[FakeClient]:
    found = [loop.client(address) for _ in range(number)]
    for client in found:
        client.send(HELLO)
    loop.end_turns()
    return found


def test_requests_of_one_address_wait_where_the_share_of_the_turn_is_used_up() -> None:
    loop = Late()
    (other,) = _opened(loop, 1, "192.0.2.2")
    clients = _opened(loop, 4 * FEW, "192.0.2.1")
    for client in clients:
        client.send(headers(1, ASKS))
    begun = loop.begun()
    assert FEW < begun < 3 * FEW
    other.send(headers(1, ASKS))
    assert loop.begun() == begun + 1
    loop.end_turns()
    assert loop.begun() == len(clients) + 1
    loop.end()


def test_a_late_read_stops_all_whose_bodies_are_under_way() -> None:
    loop = Late()
    (idle,) = _opened(loop, 1, "192.0.2.2")
    clients = _opened(loop, MANY, "192.0.2.1")
    for client in clients:
        client.send(headers(1, SENDS, end=False))
    loop.end_turns()
    for client in clients[:2]:
        client.send(data(1, PIECE))
    assert not any(client.reading for client in clients) and idle.reading
    loop.turn()
    assert sum(client.reading for client in clients) in (READS, READS + 1), "and one whose bytes had waited"
    loop.end_turns()
    assert all(client.reading for client in clients)
    loop.end()
    assert not len(loop.proxy.context.writes.reads)
