"""How long a connection of HTTP/2 waits, for heads, for streams that stand still, for the end; and how it drains."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.http.h2.errors import CANCEL, NO_ERROR, SETTINGS_TIMEOUT
from dataplane.http.h2.frames import (
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    SETTING,
    SETTINGS,
    SETTINGS_ACK,
    WINDOW_UPDATE,
)
from dataplane.net.turns import Turns
from dataplane.server.h2.h2_connection import REQUESTS
from dataplane.server.h2.incoming import DRAIN
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, OPENING, POST, data, frame, headers, literal
from tests.fakes.memory_proxy import ROUTES, Http1Endpoints, MemoryProxy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO_WINDOW = frame(SETTINGS, 0, 0, SETTING.pack(4, 0)) + OPENING[9:]
EVER = 0x7FFFFFFF


def wait(proxy: MemoryProxy, seconds: float) -> None:
    """In steps, as time goes by."""
    for _ in range(int(seconds // 10)):
        proxy.advance(10)


class TestSettings:
    def test_have_ten_seconds_to_be_acknowledged(self) -> None:
        """RFC 9113 6.5.3. Requests that go on meanwhile do not prolong it."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy, opening=frame(SETTINGS))
        client.send(headers(1, GET))
        proxy.advance(9.9)
        client.send(headers(3, GET))
        client.take()
        assert not client.is_ended
        proxy.advance(0.2)
        assert client.take()[-1] == Said("goaway", 3, SETTINGS_TIMEOUT) and client.is_ended
        assert {each.labels: values[0] for each, values in proxy.metrics.series()}[("SettingsTimeout",)] == 1
        assert all(" reason=RequestTimeout " in line for line in proxy.log_lines())

    def test_that_are_acknowledged_late_are_in_time(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, opening=frame(SETTINGS))
        proxy.advance(9.9)
        client.send(SETTINGS_ACK)
        proxy.advance(30)
        client.send(headers(1, GET))
        proxy.upstream.answer(OK)
        assert client.take()[0].value == 200


class TestHeads:
    @pytest.mark.parametrize(
        "begun",
        [headers(1, GET)[:5], headers(1, GET)[:20], frame(HEADERS, END_STREAM, 1, literal(GET)[:10])],
        ids=["half a frame's head", "half a frame", "half a block"],
    )
    def test_have_ten_seconds(self, begun: bytes) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        wait(proxy, 100)
        client.send(begun)
        proxy.advance(9.9)
        assert not client.is_ended
        proxy.advance(0.2)
        assert client.take()[-1] == Said("goaway", 0, NO_ERROR) and client.is_ended
        proxy.advance(1.1)
        assert not client.open

    def test_that_come_byte_by_byte_have_no_more(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        for octet in headers(1, GET)[:6]:
            client.send(bytes((octet,)))
            proxy.advance(2)
        assert client.is_ended

    def test_of_many_small_frames_are_each_new(self) -> None:
        """Reads that end within a frame, one after the other, are no slow head."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        ping = frame(PING, 0, 0, b"8 octets")
        client.send(ping[:3])
        for _ in range(10):
            proxy.advance(5)
            client.send(ping[3:] + ping[:3])
        assert client.open and not client.is_ended

    def test_that_stand_still_end_other_streams_too(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), headers(3, GET)[:10])
        proxy.advance(10.1)
        assert not proxy.upstream.open and " reason=RequestTimeout " in proxy.log_lines()[0]


class TestStreams:
    def test_a_request_has_its_deadline(self) -> None:
        text = ROUTES.replace("      backends:", "      policies: {timeouts: {request: 1s}}\n      backends:")
        proxy = Http1Endpoints(text)
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.advance(0.5)
        client.send(headers(3, GET))
        proxy.advance(0.6)
        assert client.take()[0] == Said("head", 1, 504)
        proxy.advance(0.5)
        assert client.take()[0] == Said("head", 3, 504)

    def test_a_body_that_stands_still_is_given_up(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False), data(1, b"abc"))
        wait(proxy, 600)
        client.send(data(1, b"d"))
        wait(proxy, 590)
        assert client.take() == []
        wait(proxy, 640)
        head, _, reset = client.take()
        assert (head, reset) == (Said("head", 1, 408), Said("reset", 1, NO_ERROR))
        assert client.open

    def test_an_endpoint_that_takes_nothing_is_given_up(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        proxy.upstream.protocol.pause_writing()
        client.send(data(1, bytes(1000)))
        wait(proxy, 1230)
        assert client.take()[0] == Said("head", 1, 504)

    def test_a_client_that_reads_nothing_is_given_up(self) -> None:
        """Windows closed for ever: each stream ends by itself, and holds what it holds no longer."""
        proxy = Http1Endpoints()
        client = FrameClient(proxy, NO_WINDOW)
        client.send(headers(1, GET), headers(3, GET))
        first, second = proxy.connector.upstreams
        first.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        second.answer(OK)
        wait(proxy, 1230)
        assert not first.open
        resets = [(said.stream, said.value) for said in client.take() if said.kind == "reset"]
        assert sorted(resets) == [(1, CANCEL), (3, CANCEL)]
        assert not client.transport.protocol.codec.streams

    def test_requests_that_wait_for_a_client_to_read_do_not_wait_for_ever(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.transport.protocol.pause_writing()
        client.send(headers(1, GET), headers(3, POST, end=False))
        wait(proxy, 590)
        assert client.open
        wait(proxy, 620)
        assert not client.open and not proxy.connector.upstreams
        assert ["reason=ClientGone" in line for line in proxy.log_lines()] == [True, True]

    def test_an_answer_that_waits_for_its_endpoint_waits_on(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        wait(proxy, 3000)
        proxy.upstream.answer(OK)
        assert client.take()[0] == Said("head", 1, 200)


class TestIdle:
    def test_has_ten_minutes(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        wait(proxy, 700)
        proxy.upstream.answer(OK)
        client.take()
        wait(proxy, 590)
        assert not client.is_ended
        wait(proxy, 20)
        assert client.take() == [Said("goaway", 1, NO_ERROR)] and client.is_ended
        wait(proxy, 10)
        assert not client.open

    def test_pings_and_windows_keep_nothing_open(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        for _ in range(61):
            proxy.advance(10)
            if not client.is_ended:
                client.send(frame(PING, 0, 0, b"8 octets"), frame(WINDOW_UPDATE, 0, 0, (1).to_bytes(4)))
        assert client.is_ended


class TestDrain:
    def answered(self, client: FrameClient) -> None:
        """The client answers the proxy's PING."""
        (ping,) = [each for each in client.frames() if each.kind == PING and not each.flags]
        client.send(frame(PING, 1, 0, ping.payload))

    def test_says_so_twice_and_serves_what_was_under_way(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        client.transport.protocol.drain()
        announced, ping = client.take()
        assert announced == Said("goaway", EVER, NO_ERROR) and isinstance(ping.value, bytes)
        client.send(headers(3, GET))  # sent before it heard of it
        client.send(frame(PING, 1, 0, ping.value))
        assert client.take() == [Said("goaway", 3, NO_ERROR)]
        client.send(headers(5, GET))
        assert len(proxy.connector.upstreams) == 2
        for upstream in proxy.connector.upstreams:
            assert not client.is_ended
            upstream.answer(OK)
        assert [said.stream for said in client.take() if said.kind == "head"] == [1, 3]
        assert client.is_ended

    def test_waits_for_no_answer_for_ever(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.transport.protocol.drain()
        client.take()
        proxy.advance(1.1)
        assert client.take() == [Said("goaway", 0, NO_ERROR)] and client.is_ended
        proxy.advance(1.1)
        assert not client.open

    def test_of_a_client_that_goes_away_itself_cuts_nobody(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), frame(GOAWAY, 0, 0, bytes(8)))
        client.transport.protocol.drain()
        proxy.advance(5)
        proxy.upstream.answer(OK)
        assert client.take()[-1] == Said("data", 1, b"ok", end=True) and client.is_ended

    def test_of_an_idle_connection_takes_a_round_trip(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.transport.protocol.drain()
        client.transport.protocol.drain()
        self.answered(client)
        assert client.take() == [Said("goaway", 0, NO_ERROR)] and client.is_ended

    def test_begins_with_an_answer_where_http1_would_close(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET))
        proxy.context.draining = True
        assert client.take() == []
        proxy.upstream.answer(OK)
        assert [said.kind for said in client.take()] == ["goaway", "ping", "head", "data"]

    def test_waits_for_what_the_windows_do_not_take_yet(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, NO_WINDOW)
        client.send(headers(1, GET))
        proxy.upstream.answer(OK)
        client.transport.protocol.drain()
        self.answered(client)
        assert not client.is_ended
        client.send(frame(WINDOW_UPDATE, 0, 1, (9).to_bytes(4)))
        assert client.take()[-1] == Said("data", 1, b"ok", end=True) and client.is_ended

    def test_a_client_that_goes_away_is_served_to_the_end(self) -> None:
        proxy = Http1Endpoints()
        client = FrameClient(proxy)
        client.send(headers(1, GET), frame(GOAWAY, 0, 0, bytes(8)))
        assert not client.is_ended
        proxy.upstream.answer(OK)
        assert client.take()[-1] == Said("data", 1, b"ok", end=True) and client.is_ended


class TestWindowsThatOpenLate:
    """Of an answer that is given, and waits for the client's window."""

    def waiting(self) -> tuple[MemoryProxy, FrameClient]:
        proxy = Http1Endpoints()
        client = FrameClient(proxy, NO_WINDOW)
        client.send(headers(1, GET))
        proxy.upstream.answer(OK)
        assert client.take() == [Said("head", 1, 200)]
        return proxy, client

    def test_it_has_ten_minutes(self) -> None:
        proxy, client = self.waiting()
        wait(proxy, 590)
        client.send(frame(WINDOW_UPDATE, 0, 1, (9).to_bytes(4)))
        assert client.take() == [Said("data", 1, b"ok", end=True)]

    def test_the_connection_is_idle_from_its_end_on(self) -> None:
        proxy, client = self.waiting()
        wait(proxy, 500)
        client.send(frame(WINDOW_UPDATE, 0, 1, (9).to_bytes(4)))
        client.take()
        wait(proxy, 590)
        assert not client.is_ended
        wait(proxy, 20)
        assert client.take() == [Said("goaway", 1, NO_ERROR)] and client.is_ended

    def test_also_when_it_was_cut(self) -> None:
        proxy, client = self.waiting()
        while not (said := client.take()):
            proxy.advance(10)
        assert said == [Said("reset", 1, CANCEL)]
        wait(proxy, 590)
        assert not client.is_ended
        wait(proxy, 20)
        assert client.take() == [Said("goaway", 1, NO_ERROR)] and client.is_ended


def test_a_connection_is_idle_from_a_deadline_on() -> None:
    text = ROUTES.replace("      backends:", "      policies: {timeouts: {request: 1s}}\n      backends:")
    proxy = Http1Endpoints(text)
    client = FrameClient(proxy)
    proxy.advance(11)
    client.send(headers(1, GET))
    proxy.advance(1.1)
    assert client.take()[0] == Said("head", 1, 504)
    wait(proxy, 590)
    assert not client.is_ended
    wait(proxy, 20)
    assert client.is_ended


def test_a_client_that_reads_again_has_all_time() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, GET))
    client.transport.protocol.pause_writing()
    wait(proxy, 300)
    client.transport.protocol.resume_writing()
    wait(proxy, 1200)
    assert client.open and not client.is_ended
    proxy.upstream.answer(OK)
    assert client.take()[0] == Said("head", 1, 200)


@pytest.mark.parametrize("drains", [False, True])
def test_only_the_answer_to_our_ping_ends_a_drain(drains: bool) -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    if drains:
        client.transport.protocol.drain()
        client.take()
    client.send(frame(PING, 1, 0, b"8 octets" if drains else DRAIN))
    assert client.take() == [] and not client.is_ended
    client.send(headers(1, GET))
    proxy.upstream.answer(OK)
    assert Said("head", 1, 200) in client.take()


def test_who_made_room_is_not_listened_to_any_more() -> None:
    """Its transport may still be sending what it wrote."""
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.transport.close = lambda: None  # type: ignore[method-assign]
    client.transport.protocol.close_idle()
    assert client.take() == [Said("goaway", 0, NO_ERROR)]
    client.send(headers(1, GET))
    assert client.take() == [] and not proxy.connector.upstreams
    client.transport.protocol.pause_writing()
    client.transport.protocol.close_idle()
    assert client.transport.aborted


class TestASocketThatIsNotRead:
    """Because what came takes more than one turn."""

    next = 1

    def stopped(self) -> tuple[MemoryProxy, FrameClient, list[Callable[[], None]]]:
        proxy = Http1Endpoints()
        due: list[Callable[[], None]] = []
        proxy.context.writes.turns = Turns(due.append, lambda: 0.0)
        client = FrameClient(proxy)
        self.flood(client)
        return proxy, client, due

    def flood(self, client: FrameClient) -> None:
        client.send(*(headers(self.next + 2 * number, GET) for number in range(REQUESTS + 5)))
        self.next += 2 * (REQUESTS + 5)
        assert client.transport.reading
        client.send(frame(PING, 0, 0, b"8 octets"))
        assert not client.transport.reading

    def test_is_read_again_each_time(self) -> None:
        _, client, due = self.stopped()
        for _ in range(2):
            while due:
                due.pop(0)()
            assert client.transport.reading
            client.take()
            self.flood(client)

    def test_is_read_to_its_end_when_all_is_said(self) -> None:
        """The client has to see our last words: a socket with unread bytes would be reset."""
        _, client, due = self.stopped()
        client.transport.protocol.hang_up()
        assert client.transport.reading and client.transport.eof
        while due:
            due.pop(0)()
        assert client.open
