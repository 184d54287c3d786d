"""When bytes of a client are not read, are kept, or are for nobody; and how idle connections end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.filters.registry import ROWS
from dataplane.net.turns import LARGE, READS, SHARE, Turns
from tests.fakes.memory_proxy import ROUTES, FakeClient, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
PIECE = b"x" * (LARGE + 1)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class TestSlowPeers:
    def test_a_slow_client_stops_the_upstream(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        client.protocol.pause_writing()
        assert not proxy.upstream.reading
        client.protocol.resume_writing()
        assert proxy.upstream.reading

    def test_an_upstream_returns_to_the_pool_reading(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.protocol.pause_writing()
        proxy.upstream.answer(OK)
        assert proxy.upstream.reading

    def test_a_client_that_reads_nothing_gets_no_further_requests_served(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.protocol.pause_writing()
        proxy.upstream.answer(OK)
        client.send(GET)
        client.send(b"G" * 70_000)
        assert client.received == OK
        assert not client.reading
        client.protocol.resume_writing()
        assert proxy.upstream.received.count(b"GET /") == 2

    def test_a_slow_upstream_stops_the_client(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc")
        proxy.upstream.protocol.pause_writing()
        assert not client.reading
        proxy.upstream.protocol.resume_writing()
        assert client.reading


class TestLargeReads:
    """Hundreds of connections may have large pieces of bodies that can be read at once."""

    def test_wait_where_the_share_of_the_turn_is_used_up(self) -> None:
        loop = Late()
        first, second = loop.uploads(2)
        first.send(PIECE)
        assert first.reading, "nothing was read before it in this turn"
        second.send(PIECE)
        assert not second.reading
        loop.turn()
        assert second.reading
        loop.end()

    def test_small_ones_do_not_wait(self) -> None:
        loop = Late()
        first, second = loop.uploads(2)
        first.send(PIECE)
        second.send(b"x" * LARGE)
        assert second.reading
        loop.end()

    def test_so_many_go_on_in_one_turn(self) -> None:
        loop = Late()
        clients = loop.uploads(2 * READS + 4)
        for client in clients:
            client.send(PIECE)
        going_on = [sum(client.reading for client in clients)]
        while going_on[-1] < len(clients):
            loop.turn()
            going_on.append(sum(client.reading for client in clients))
        steps = [after - before for before, after in pairwise(going_on)]
        assert going_on[0] == 1 and max(steps) <= READS
        loop.end()


class Late:
    """A proxy whose loop is turned by hand. Each look at its clock finds the share of a turn used up, but in `turn`."""

    def __init__(self) -> None:
        self.proxy = MemoryProxy()
        self.calls: list[Callable[[], None]] = []
        self.now, self.tick = 0.0, SHARE
        self.proxy.context.writes.turns = Turns(self.calls.append, self.clock)
        self.clients: list[FakeClient] = []

    def clock(self) -> float:
        self.now += self.tick
        return self.now

    def uploads(self, number: int) -> list[FakeClient]:
        self.clients = [self.proxy.connect((f"192.0.2.{1 + each}", 40000)) for each in range(number)]
        for client in self.clients:
            client.send(POST + b"%d\r\n\r\n" % (10 * len(PIECE)))
        return self.clients

    def turn(self) -> None:
        self.tick = 0.0
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()
        self.tick = SHARE

    def end(self) -> None:
        for client in self.clients:
            client.lose()
        while self.calls:
            self.turn()


class TestIdleConnections:
    def test_end_when_the_client_sends_no_more(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        proxy.upstream.answer(OK)
        client.half_close()
        assert client.received == OK
        assert not client.open and not client.aborted

    def test_end_when_they_are_drained(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.protocol.drain()
        assert not client.open

    def test_are_not_ended_in_the_middle_of_a_head(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET[:10])
        client.protocol.drain()
        client.send(GET[10:])
        proxy.upstream.answer(OK)
        assert client.received == OK


class TestPipelining:
    def test_a_request_that_comes_meanwhile_is_kept(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.send(GET)
        assert proxy.upstream.take().count(b"GET / ") == 1
        proxy.upstream.answer(OK)
        assert proxy.upstream.take().count(b"GET / ") == 1

    def test_a_head_that_is_not_whole_is_kept(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET + GET[:10])
        proxy.upstream.answer(OK)
        client.send(GET[10:])
        proxy.upstream.answer(OK)
        assert client.received == OK * 2

    def test_too_much_of_it_is_not_read(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(GET)
        client.send(GET + b"x" * 70_000)
        assert not client.reading
        proxy.upstream.answer(OK)
        assert not client.reading
        proxy.upstream.answer(OK)
        assert client.received.startswith(OK * 2 + b"HTTP/1.1 414 ")


class TestReasonsNotToRead:
    def test_all_have_to_go(self) -> None:
        proxy = MemoryProxy()
        client = proxy.connect()
        client.send(POST + b"4\r\n\r\nabcd")
        proxy.upstream.protocol.pause_writing()
        client.send(b"x" * 70_000)
        proxy.upstream.protocol.resume_writing()
        assert not client.reading
        assert proxy.upstream.open

    def test_end_with_the_request(self) -> None:
        proxy = MemoryProxy()
        proxy.connector.hold = True
        client = proxy.connect()
        client.send(POST + b"70000\r\n\r\n" + b"x" * 70_000)
        assert not client.reading
        proxy.connector.refuse = "refused"
        proxy.connector.release()
        assert client.take().startswith(b"HTTP/1.1 503 ")
        assert client.reading
        client.send(GET)
        proxy.connector.release()
        assert client.received.startswith(b"HTTP/1.1 503 ")


def buffering() -> MemoryProxy:
    """A proxy whose responses are buffered until they are whole."""
    rows = [row for row in ROWS if row.name != "header_modifiers"]
    step = Filter("test", response=lambda x: None, response_body=100)
    rows.append(Row("header_modifiers", lambda config, env: step, STEP, "test"))
    policy = "      policies: {headerModifiers: {request: {set: [{name: x-gw, value: '1'}]}}}\n      backends:"
    return MemoryProxy(ROUTES.replace("      backends:", policy), rows)


def test_a_client_that_reads_again_does_not_hurry_a_response_that_is_buffered() -> None:
    proxy = buffering()
    client = proxy.connect()
    client.send(GET)
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
    client.protocol.pause_writing()
    client.protocol.resume_writing()
    assert proxy.upstream.reading
    assert client.received == b""
    proxy.upstream.answer(b"cd")
    assert client.received.endswith(b"\r\n\r\nabcd")
