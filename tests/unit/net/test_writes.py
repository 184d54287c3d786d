"""Writes of one turn of the loop leave together, in order, each connection's in one piece."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.http.h1.response_head import TUNNEL
from dataplane.net.writes import AT_ONCE, Writes
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy


class Turn:
    """A turn of the loop that ends when the test says so."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.writes = Writes(self.calls.append)

    def end(self) -> None:
        calls, self.calls[:] = self.calls[:], []
        for call in calls:
            call()

    def connection(self) -> tuple[UpstreamConnection, FakeTransport]:
        connection = UpstreamConnection(Endpoint("192.0.2.1", 1), self.writes)
        return connection, FakeTransport(connection)


def test_what_a_connection_is_given_within_a_turn_leaves_in_one_piece() -> None:
    turn = Turn()
    (one, first), (other, second) = turn.connection(), turn.connection()
    one.write(b"a")
    other.write(b"x")
    one.write(b"b")
    assert not first.writes
    assert len(turn.calls) == 1
    turn.end()
    assert (first.writes, second.writes) == ([b"ab"], [b"x"])
    one.write(b"c")
    turn.end()
    assert first.writes == [b"ab", b"c"]


def test_much_leaves_at_once_so_that_the_transport_can_say_stop() -> None:
    turn = Turn()
    connection, transport = turn.connection()
    connection.write(b"a")
    connection.write(b"b" * AT_ONCE)
    assert transport.writes == [b"a" + b"b" * AT_ONCE]
    connection.write(b"c" * (AT_ONCE + 1))
    assert transport.received.endswith(b"bc" + b"c" * AT_ONCE)
    connection.write(b"d")
    turn.end()
    assert transport.received.endswith(b"cd")


def test_sixteen_kibibytes_wait_for_the_end_of_the_turn_and_a_byte_more_does_not() -> None:
    turn = Turn()
    connection, transport = turn.connection()
    connection.write(b"a" * 16_384)
    connection.write(b"")
    assert not transport.writes
    turn.end()
    connection.write(b"b" * 16_383)
    connection.write(b"b")
    assert len(transport.writes) == 1
    connection.write(b"c")
    assert [len(piece) for piece in transport.writes] == [16_384, 16_385]
    turn.end()
    connection.write(b"d" * 16_385)
    assert len(transport.writes) == 3
    connection.write(b"")
    assert turn.calls == []


def test_a_connection_that_is_gone_writes_nothing() -> None:
    turn = Turn()
    connection, transport = turn.connection()
    connection.write(b"a")
    connection.close()
    turn.end()
    assert not transport.writes


def test_the_end_of_writing_comes_behind_what_was_written() -> None:
    turn = Turn()
    connection, transport = turn.connection()
    connection.write(b"a")
    connection.state = TUNNEL
    connection.content(b"", True)
    assert transport.writes == [b"a"]
    assert transport.eof


def test_an_answer_of_the_turn_in_which_the_client_closes_still_goes_out() -> None:
    turn = Turn()
    proxy = MemoryProxy(writes=turn.writes)
    client = proxy.connect()
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    turn.end()
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    client.half_close()
    turn.end()
    assert client.received == b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    assert not client.open


GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize("request_", [GET, POST])
def test_bytes_that_came_before_the_request_was_written_are_no_answer(request_: bytes) -> None:
    turn = Turn()
    proxy = MemoryProxy(writes=turn.writes)
    one = proxy.connect()
    one.send(GET)
    turn.end()
    proxy.upstream.answer(OK + b"ok")
    turn.end()
    two = proxy.connect()
    two.send(request_)
    proxy.upstream.answer(OK + b"no")  # on the idle connection that the request is meant for
    turn.end()
    assert len(proxy.connector.upstreams) == 2
    assert proxy.upstream.received.startswith(request_[:4])
    proxy.upstream.answer(OK + b"ok")
    turn.end()
    assert two.received == OK + b"ok"


def test_a_connection_that_cannot_be_written_does_not_silence_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def flush(self) -> None:
            raise RuntimeError("bug")

    turn = Turn()
    connection, transport = turn.connection()
    turn.writes.add(Broken())
    connection.write(b"a")
    turn.end()
    assert transport.writes == [b"a"]
    assert "bug" in caplog.text
