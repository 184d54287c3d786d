"""Writes that are gathered until the turn of the loop ends: what was said arrives, also when the connection ends first,
and a connection asks once in a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.net.writes import AT_ONCE, Writer, Writes
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET as GET2
from tests.fakes.h2_wire import headers
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
UPGRADE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
CONNECT = ((b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET2[1:])


class Asked(Writes):
    """Notes who asks for a flush at the end of this turn."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        super().__init__(call_soon)
        self.asked: list[Writer] = []

    def add(self, writer: Writer) -> None:
        self.asked.append(writer)
        super().add(writer)


class Loop:
    """A proxy whose turns are ended by hand."""

    def __init__(self, make: type[MemoryProxy] = MemoryProxy) -> None:
        self.next: list[Callable[[], None]] = []
        self.writes = Asked(self.next.append)
        self.proxy = make(writes=self.writes)

    def turn(self) -> None:
        while self.next:
            due, self.next[:] = self.next[:], []
            for call in due:
                call()
        self.writes.asked.clear()

    def answered(self, request: bytes = GET, answer: bytes = OK) -> FakeTransport:
        """A client whose answer waits for the end of the turn."""
        client = self.proxy.connect()
        client.send(request)
        self.turn()
        self.proxy.upstream.answer(answer)
        assert client.received == b""
        return client

    def h2_client(self) -> FrameClient:
        client = FrameClient(self.proxy)
        self.turn()
        client.take()
        return client


ENDS: dict[str, Callable[[FakeTransport], None]] = {
    "the worker ends": lambda client: client.protocol.drain(),
    "another one needs its place": lambda client: client.protocol.close_idle(),
    "the client sends no more": lambda client: client.half_close(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_answer_arrives_before_the_connection_ends(end: Callable[[FakeTransport], None]) -> None:
    loop = Loop()
    client = loop.answered()
    end(client)
    assert client.received == OK and not client.open and not client.aborted
    loop.turn()
    assert client.received == OK


@pytest.mark.parametrize("end", list(ENDS.values())[1:], ids=list(ENDS)[1:])
def test_an_answer_over_http2_arrives_before_the_connection_ends(end: Callable[[FakeTransport], None]) -> None:
    loop = Loop(Http1Endpoints)
    client = loop.h2_client()
    client.send(headers(1, GET2))
    loop.turn()
    loop.proxy.upstream.answer(OK)
    assert client.transport.received == b""
    end(client.transport)
    assert client.take()[:2] == [Said("head", 1, 200), Said("data", 1, b"ok", end=True)] and not client.open


def test_the_last_bytes_of_a_tunnel_arrive_before_its_end() -> None:
    loop = Loop()
    client = loop.answered(UPGRADE, SWITCH)
    loop.turn()
    client.take()
    loop.proxy.upstream.answer(b"last words")
    loop.proxy.upstream.half_close()
    assert client.received == b"last words" and client.eof


def test_a_refusal_arrives_before_the_end_of_our_side() -> None:
    loop = Loop()
    client = loop.proxy.connect()
    client.send(b"nonsense\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 400 ") and client.eof and client.open


def test_what_a_client_that_sends_no_more_had_asked_is_answered_before_the_end() -> None:
    loop = Loop()
    client = loop.proxy.connect()
    client.send(GET)
    client.half_close()
    loop.turn()
    loop.proxy.upstream.answer(OK)
    assert client.received == OK and not client.open


def test_a_client_without_http2_s_end_gets_ours_in_the_same_turn() -> None:
    """Idle for ten minutes: GOAWAY, and the end of our side behind it."""
    loop = Loop(Http1Endpoints)
    client = loop.h2_client()
    loop.proxy.advance(601)
    assert client.take() == [Said("goaway", 0, 0)] and client.is_ended


class TestOverHttp2:
    def begun(self, count: int = 1) -> tuple[Loop, FrameClient]:
        loop = Loop(Http1Endpoints)
        client = loop.h2_client()
        client.send(*(headers(1 + 2 * number, GET2) for number in range(count)))
        loop.turn()
        client.take()
        return loop, client

    def test_many_answers_of_a_turn_leave_together(self) -> None:
        loop, client = self.begun(3)
        for upstream in loop.proxy.connector.upstreams:
            upstream.answer(OK)
        assert loop.writes.asked.count(client.transport.protocol) == 1
        loop.turn()
        assert len(client.transport.writes[-1:]) == 1 and len(client.take()) == 6
        assert len(client.transport.writes[-1]) > 3 * len(b"ok")

    def test_a_head_leaves_though_its_content_is_not_here(self) -> None:
        loop, client = self.begun()
        loop.proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        assert client.take() == []
        loop.turn()
        assert client.take() == [Said("head", 1, 200)]

    def test_an_interim_response_leaves_before_the_answer_is_here(self) -> None:
        loop, client = self.begun()
        loop.proxy.upstream.answer(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        loop.turn()
        assert client.take() == [Said("head", 1, 103)]

    def test_the_answer_to_an_extended_connect_leaves_before_the_endpoint_speaks(self) -> None:
        loop = Loop(Http1Endpoints)
        client = loop.h2_client()
        client.send(headers(1, CONNECT, end=False))
        loop.turn()
        client.take()
        loop.proxy.upstream.answer(SWITCH)
        assert client.take() == []
        loop.turn()
        assert client.take() == [Said("head", 1, 200)]

    @pytest.mark.parametrize(("size", "leaves"), [(AT_ONCE, False), (AT_ONCE + 1, True)])
    def test_much_content_leaves_at_once(self, size: int, leaves: bool) -> None:
        """So that the transport can say that it is too much."""
        loop, client = self.begun()
        loop.proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + bytes(size - 9))
        assert client.transport.received == b""
        loop.proxy.upstream.answer(bytes(9))
        assert bool(client.transport.received) is leaves
        loop.turn()
        client.take()
        loop.proxy.upstream.answer(bytes(size - AT_ONCE + 9))
        assert client.transport.received == b"", "counted from the last write on"

    def test_a_window_that_opens_in_a_pause_leaves_by_itself(self) -> None:
        """The endpoint takes what it had left: the client may send more, although nothing else is to be written."""
        loop = Loop(Http1Endpoints)
        client = loop.h2_client()
        client.send(headers(1, ((b":method", b"POST"), *GET2[1:]), end=False))
        loop.turn()
        loop.proxy.upstream.protocol.pause_writing()
        for _ in range(3):
            client.send(b"\x00\x3e\x80\x00\x00\x00\x00\x00\x01" + bytes(16_000))
        loop.turn()
        client.frames()
        before = client.windows.get(1, 0)
        loop.proxy.upstream.protocol.resume_writing()
        loop.turn()
        client.frames()
        assert client.windows[1] - before >= 32_000
