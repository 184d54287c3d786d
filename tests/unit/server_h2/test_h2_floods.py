"""Hostile clients: what costs us more than them is cut and counted, and what they make us hold is bounded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count

import pytest

from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, PROTOCOL_ERROR, REFUSED_STREAM
from dataplane.http.h2.frames import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    RST_STREAM,
    SETTING,
    SETTINGS,
    WINDOW_UPDATE,
)
from dataplane.net import turns as net_turns
from dataplane.net.writes import Writes
from dataplane.server.h2.h2_connection import FRAMES, REQUESTS
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, OPENING, POST, data, frame, headers
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO_WINDOW = frame(SETTINGS, 0, 0, SETTING.pack(4, 0)) + OPENING[9:]
RESET = (8).to_bytes(4)
ONE = (1).to_bytes(4)
LARGE = (*GET, *[(b"x-%d" % number, b"a") for number in range(101)])


def _rapid_reset(number: int) -> bytes:
    return headers(1 + 2 * number, GET) + frame(RST_STREAM, 0, 1 + 2 * number, RESET)


FLOODS: list[tuple[str, Callable[[int], bytes], bytes]] = [
    ("RapidReset", _rapid_reset, b""),
    ("MalformedStreams", lambda number: headers(1 + 2 * number, GET[1:]), b""),
    ("PingFlood", lambda number: frame(PING, 0, 0, b"8 octets"), b""),
    ("SettingsFlood", lambda number: frame(SETTINGS), b""),
    ("PriorityFlood", lambda number: frame(PRIORITY, 0, 1, bytes(5)), b""),
    ("WindowUpdateFlood", lambda number: frame(WINDOW_UPDATE, 0, 0, ONE), b""),
    ("EmptyFrames", lambda number: data(1), headers(1, POST, end=False)),
    ("UnknownFrames", lambda number: frame(0xFA, 0, 0, b"x"), b""),
    (
        "OversizedHeads",
        lambda number: headers(1 + 2 * number, LARGE) + frame(RST_STREAM, 0, 1 + 2 * number, RESET),
        b"",
    ),
    ("Continuation", lambda number: frame(CONTINUATION, 0, 1, b""), frame(HEADERS, 0, 1, b"")),
    ("HeaderBlock", lambda number: frame(CONTINUATION, 0, 1, bytes(16_384)), frame(HEADERS, 0, 1, b"")),
]


@pytest.mark.parametrize("is_one_piece", [True, False], ids=["in one piece", "frame by frame"])
@pytest.mark.parametrize(("kind", "make", "first"), FLOODS, ids=[kind for kind, _, _ in FLOODS])
def test_is_cut_counted_and_logged_once(
    kind: str, make: Callable[[int], bytes], first: bytes, is_one_piece: bool, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    with caplog.at_level(logging.WARNING, "dataplane.server"):
        if is_one_piece:
            client.send(first, *[make(number) for number in range(10_000)])
        else:
            client.send(first)
            for number in range(10_000):
                client.send(make(number))
    assert client.take()[-1].value == ENHANCE_YOUR_CALM and client.is_ended
    counted = {each.labels: values[0] for each, values in proxy.metrics.series() if each.labels == (kind,)}
    assert counted == {(kind,): 1}
    assert [record.getMessage() for record in caplog.records] == [f"http2 connection of 192.0.2.7 is cut: {kind}"]
    proxy.advance(1.1)
    assert not client.open and proxy.left() == []
    assert len(proxy.log_lines()) <= 201  # a request that was reset has its line, also where it came in a flood


def test_other_broken_rules_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, GET), frame(DATA, 0, 0, b"x"), headers(3, GET))
    assert client.take()[-1] == Said("goaway", 1, PROTOCOL_ERROR) and client.is_ended
    assert not any(upstream.open for upstream in proxy.connector.upstreams)
    assert not caplog.records
    (line,) = proxy.log_lines()
    assert " reason=BadRequest " in line and ' error="IdleStream" ' in line


def test_streams_above_the_limit_are_refused() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(*[headers(1 + 2 * number, GET) for number in range(101)])
    assert client.take() == [Said("reset", 201, REFUSED_STREAM)]
    assert len(proxy.connector.upstreams) == 100


def test_a_hundred_slow_readers_hold_what_came_in_one_read_each() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy, NO_WINDOW)
    client.send(*[headers(1 + 2 * number, GET) for number in range(100)])
    for upstream in proxy.connector.upstreams:
        upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(1000))
    assert not any(upstream.reading for upstream in proxy.connector.upstreams)
    streams = client.transport.protocol.codec.streams.values()
    assert sum(stream.waiting for stream in streams) == 100_000


def test_bodies_that_nobody_reads_hold_the_window_of_the_connection() -> None:
    proxy = Http1Endpoints()
    proxy.connector.hold = True
    client = FrameClient(proxy, opening=b"")
    client.send(PREFACE + OPENING)
    client.frames()
    client.send(*[headers(1 + 2 * number, POST, end=False) for number in range(100)])
    for number in range(32):
        client.send(data(1 + 2 * number, bytes(16_384)))
    client.frames()
    assert client.windows == {0: 524_288}
    client.send(data(65, b"x"))
    assert client.take()[-1].value == 3 and client.is_ended  # FLOW_CONTROL_ERROR


def test_whole_bodies_that_nobody_takes_hold_the_window_of_the_connection_too() -> None:
    """They came in one read with their heads, and are acknowledged as an endpoint takes them."""
    proxy = Http1Endpoints()
    proxy.connector.hold = True
    client = FrameClient(proxy, opening=b"")
    client.send(PREFACE + OPENING)
    client.frames()
    for number in range(32):
        stream = 1 + 2 * number
        client.send(headers(stream, POST, end=False) + data(stream, bytes(16_384), end=True))
    client.frames()
    assert client.windows == {0: 524_288}
    proxy.connector.release()
    client.frames()
    assert client.windows[0] > 524_288 + 200_000
    assert all(bytes(16_384) in upstream.received for upstream in proxy.connector.upstreams)
    client.send(headers(65, POST, end=False) + data(65, b"x", end=True))
    assert proxy.connector.upstreams and not client.is_ended


def test_content_behind_a_refusal_in_the_same_read_costs_no_window() -> None:
    """Its stream is over by then, and the window of the connection is everybody's."""
    proxy = Http1Endpoints("binds: [{port: 8080, listeners: [{name: http, protocol: HTTP}]}]")
    client = FrameClient(proxy)
    for number in range(100):
        stream = 1 + 2 * number
        client.send(headers(stream, POST, end=False) + data(stream, bytes(16_384)))
        client.frames()
    assert not client.is_ended and client.windows.get(0, 0) > 1_000_000


def test_answers_that_nobody_reads_do_not_pile_up() -> None:
    """Heads know no window: a client that reads nothing and asks on gets no further answers, nor streams."""
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.transport.protocol.pause_writing()
    for number in range(400):
        if not client.is_ended:
            client.send(headers(1 + 2 * number, GET))
    assert not proxy.connector.upstreams
    said = client.take()
    assert all(each.kind in ("reset", "goaway") for each in said) and len(said) <= 201


class Turns:
    """Turns of a loop, by hand. No computing time passes in them, so what is counted alone bounds them."""

    def __init__(self, proxy: MemoryProxy) -> None:
        self.next: list[Callable[[], None]] = []
        proxy.context.writes.turns = net_turns.Turns(self.next.append, lambda: 0.0)

    def turn(self) -> None:
        due, self.next[:] = self.next[:], []
        for call in due:
            call()

    def end(self, client: FrameClient) -> None:
        """The client goes, and what it asked for ends."""
        client.transport.lose()
        while self.next:
            self.turn()


class TestTurns:
    """What one connection may cost in a turn of the loop, over all callbacks of that turn."""

    def test_so_many_requests_begin(self) -> None:
        proxy = Http1Endpoints()
        turns = Turns(proxy)
        client = FrameClient(proxy)
        client.send(*[headers(1 + 2 * number, GET) for number in range(100)])
        begun = [len(proxy.connector.upstreams)]
        while turns.next:
            turns.turn()
            begun.append(len(proxy.connector.upstreams))
        assert begun == [REQUESTS, 2 * REQUESTS, 3 * REQUESTS, 100]

    def test_so_many_frames_are_read_and_the_socket_rests(self) -> None:
        proxy = Http1Endpoints()
        turns = Turns(proxy)
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        before = len(proxy.upstream.received)
        for _ in range(4):
            client.send(*[data(1, b"x") for _ in range(FRAMES // 2)])
        assert not client.transport.reading
        assert proxy.upstream.received[before:].count(b"x") <= FRAMES
        while turns.next:
            turns.turn()
        assert proxy.upstream.received[before:].count(b"x") == 2 * FRAMES
        assert client.transport.reading

    def test_of_two_bodies_that_end_at_once_one_waits_where_the_other_took_long(self) -> None:
        """The end of a body sets off what waited for all of it."""
        proxy = Http1Endpoints()
        turns = Turns(proxy)
        ticks = count(0.0, net_turns.SHARE)  # each look at the clock is a share later
        proxy.context.writes.turns = net_turns.Turns(turns.next.append, lambda: next(ticks))
        client = FrameClient(proxy)
        client.send(headers(1, POST, end=False))
        client.send(headers(3, POST, end=False))
        client.send(data(1, b"x", end=True), data(3, b"x", end=True))
        assert [each.received.endswith(b"0\r\n\r\n") for each in proxy.connector.upstreams] == [True, False]
        while turns.next:
            turns.turn()
        assert [each.received.endswith(b"0\r\n\r\n") for each in proxy.connector.upstreams] == [True, True]
        turns.end(client)

    @pytest.mark.parametrize("was_blocked", [False, True], ids=["in one read", "while nothing was read"])
    def test_of_two_requests_that_begin_at_once_one_waits_where_the_other_took_long(self, was_blocked: bool) -> None:
        proxy = Http1Endpoints()
        turns = Turns(proxy)
        ticks = count(0.0, net_turns.SHARE)  # each look at the clock is a share later
        proxy.context.writes.turns = net_turns.Turns(turns.next.append, lambda: next(ticks))
        client = FrameClient(proxy)
        if was_blocked:
            client.transport.protocol.pause_writing()
            client.send(headers(1, GET))
            client.send(headers(3, GET))
            assert not proxy.connector.upstreams
            while turns.next:
                turns.turn()
            client.transport.protocol.resume_writing()
        else:
            client.send(headers(1, GET), headers(3, GET))
        assert len(proxy.connector.upstreams) == 1
        while turns.next:
            turns.turn()
        assert len(proxy.connector.upstreams) == 2
        turns.end(client)

    def test_what_waits_for_a_turn_ends_with_the_connection(self) -> None:
        proxy = Http1Endpoints()
        turns = Turns(proxy)
        client = FrameClient(proxy)
        client.send(*[headers(1 + 2 * number, GET) for number in range(100)])
        client.transport.lose()
        turns.turn()
        assert len(proxy.connector.upstreams) == REQUESTS and not turns.next and proxy.left() == []

    def test_what_a_turn_answers_leaves_in_one_piece(self) -> None:
        later: list[Callable[[], None]] = []
        proxy = Http1Endpoints(writes=Writes(later.append))
        client = FrameClient(proxy, opening=b"")
        client.send(PREFACE + OPENING, *[headers(1 + 2 * number, GET) for number in range(10)])
        while later:
            later.pop(0)()
        client.transport.writes.clear()
        for upstream in proxy.connector.upstreams:
            upstream.answer(OK)
        assert not client.transport.writes
        later.pop(0)()
        assert len(client.transport.writes) == 1
