"""When bytes of a client are not read, are kept, or are for nobody; and how idle connections end."""

from __future__ import annotations

from itertools import pairwise

from dataplane.chain.filter import STEP, Filter, Row
from dataplane.filters.registry import ROWS
from dataplane.net.arrivals import FEW
from dataplane.net.reads import READS
from dataplane.net.turns import LARGE
from tests.fakes.late import PIECE, POST, Late
from tests.fakes.memory_proxy import ROUTES, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
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

    def test_one_that_is_late_stops_all_before_they_are_read(self) -> None:
        loop = Late()
        clients = loop.uploads(5)
        done = loop.client()
        done.send(POST + b"1\r\n\r\nx")
        for client in clients[:2]:
            client.send(PIECE)
        assert [client.reading for client in clients] == [False] * 5
        assert done.reading, "its body is here"
        loop.end()

    def test_so_many_go_on_in_one_turn(self) -> None:
        loop = Late()
        clients = loop.uploads(2 * READS + 4)
        for client in clients[:2]:
            client.send(PIECE)
        going_on = [sum(client.reading for client in clients)]
        while going_on[-1] < len(clients):
            loop.turn()
            going_on.append(sum(client.reading for client in clients))
        steps = [after - before for before, after in pairwise(going_on)]
        assert going_on[0] == 0 and steps == [READS, READS, 4]
        loop.end()

    def test_who_may_read_again_does_so_before_the_next_one_is_stopped(self) -> None:
        loop = Late()
        clients = loop.uploads(READS + 1)
        for client in clients[:2]:
            client.send(PIECE)
        loop.turn()
        reading = [client for client in clients if client.reading]
        for client in reading[:2]:
            client.send(PIECE)
        assert all(client.reading for client in reading[2:]) and not reading[1].reading
        loop.end()

    def test_each_address_reads_before_one_reads_twice(self) -> None:
        loop = Late()
        many = loop.uploads(3 * READS, "192.0.2.1")
        (one,) = loop.uploads(1, "192.0.2.2")
        for client in many[:2]:
            client.send(PIECE)
        assert not one.reading
        loop.turn()
        assert one.reading and sum(client.reading for client in many) == READS - 1
        loop.end()

    def test_connections_that_end_meanwhile_are_forgotten(self) -> None:
        loop = Late()
        clients = loop.uploads(3)
        for client in clients[:2]:
            client.send(PIECE)
        clients[0].lose()
        loop.turn()
        assert clients[1].reading and clients[2].reading and not clients[0].reading
        loop.end()
        assert not len(loop.proxy.context.writes.reads)


class TestManyRequests:
    """Thousands of connections may have a light request in one moment."""

    def test_of_one_address_wait_where_the_share_of_the_turn_is_used_up(self) -> None:
        loop = Late()
        clients = [loop.client("192.0.2.1") for _ in range(4 * FEW)]
        for client in clients:
            client.send(GET)
        assert FEW < loop.begun() < 3 * FEW
        loop.end_turns()
        assert loop.begun() == len(clients)
        loop.end()

    def test_another_address_does_not_wait_for_them(self) -> None:
        loop = Late()
        for _ in range(4 * FEW):
            loop.client("192.0.2.1").send(GET)
        begun = loop.begun()
        loop.client("192.0.2.2").send(GET)
        assert loop.begun() == begun + 1
        loop.client("192.0.2.2").send(GET)
        assert loop.begun() == begun + 1, "it has had one in this turn"
        loop.end()

    def test_few_in_each_turn_never_wait(self) -> None:
        loop = Late()
        for number in range(8):
            for _ in range(FEW // 2):
                loop.client("192.0.2.1").send(GET)
            assert loop.begun() == (number + 1) * (FEW // 2)
            loop.turn()
        loop.end()

    def test_what_follows_a_request_that_waits_is_kept_to_a_bound(self) -> None:
        loop = Late()
        clients = [loop.client("192.0.2.1") for _ in range(4 * FEW)]
        for client in clients:
            client.send(GET)
        last = clients[-1]
        assert last.reading
        last.send(GET + b"x" * 70_000)
        assert not last.reading
        last.half_close()
        assert last.open, "what it asked for is answered"
        loop.end()

    def test_who_leaves_while_it_waits_asks_for_nothing(self) -> None:
        loop = Late()
        clients = [loop.client("192.0.2.1") for _ in range(4 * FEW)]
        for client in clients:
            client.send(GET)
        clients[-1].lose()
        loop.end_turns()
        assert loop.begun() == len(clients) - 1
        loop.end()


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
