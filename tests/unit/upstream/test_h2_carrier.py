"""The HTTP/2 carrier to an endpoint, alone: what its consumer hears, what the endpoint gets, and what becomes of the
stream and of the connection that it shares with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.carriers import UNSENT
from dataplane.http.h2 import errors, frames
from dataplane.http.h2.settings import Settings
from dataplane.http.messages import UNKNOWN
from dataplane.net.writes import Writes
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h2.shared_connection import SharedConnection
from dataplane.upstream.h2.stream import SharedStream
from tests.fakes.h2_upstream import Endpoint2, Taken
from tests.fakes.memory_proxy import FakeUpstream
from tests.unit.upstream.test_h1_carrier import Consumer, Event

BLOCK = b"\r\nhost: a\r\nx-a: 1\r\n"
EMPTY = b"\r\ncontent-length: 0\r\n"


class Line:
    """One connection, and the endpoint behind it. Writes leave at once, unless they are `gathered`."""

    def __init__(self, settings: Settings | None = None, gathered: bool = False, opens: bool = True) -> None:
        self.flushes: list[Callable[[], None]] = []
        self.opened: list[str] = []
        self.closed = self.rooms = 0
        writes = Writes(lambda flush: self.flushes.append(flush) if gathered else flush())
        endpoint = Endpoint("192.0.2.1", 80)
        self.up = SharedConnection(endpoint, writes, self.opened.append, self._closed, lambda: 0.0)
        self.up.on_capacity = self._room
        self.transport = FakeUpstream(self.up)
        if opens:
            self.far = Endpoint2(self.transport, settings or Settings())
            self.turn()
            assert self.opened == [""] and self.up.is_open

    def _closed(self) -> None:
        self.closed += 1

    def _room(self) -> None:
        self.rooms += 1

    def turn(self) -> None:
        """What was gathered leaves, and the endpoint reads it."""
        while self.flushes:
            flushes, self.flushes = self.flushes, []
            for flush in flushes:
                flush()
        self.far.turn()

    def ask(self, consumer: Consumer | None = None, first: bytes = b"", end: bool = True) -> Asked:
        asked = Asked(self, consumer or Consumer())
        asked.up.begin(asked.consumer, BLOCK, first, end)
        self.turn()
        return asked

    @property
    def is_unused(self) -> bool:
        return self.up.streams == 0 and not self.up.codec.streams and self.up.free_streams() == 100


class Asked:
    """One request."""

    def __init__(self, line: Line, consumer: Consumer) -> None:
        self.line = line
        self.consumer = consumer
        self.up: SharedStream = line.up.lend()

    @property
    def taken(self) -> Taken:
        """As the endpoint has it; the last one."""
        return self.line.far.requests[-1]

    @property
    def heard(self) -> list[Event]:
        return self.consumer.heard

    @property
    def is_over(self) -> bool:
        """Neither knows the other any more."""
        return self.up.consumer is None


# Requests.


def test_lines_that_http2_cannot_carry() -> None:
    """They fail the request alone, and nothing of it is sent."""
    line = Line()
    asked = Asked(line, Consumer())
    asked.up.begin(asked.consumer, b"\r\nhost: a\r\nx a: 1\r\n", b"", True)
    line.turn()
    assert asked.heard == [("lost", "the request has a header line that HTTP/2 cannot carry", False)]
    assert not line.far.requests and line.is_unused
    other = line.ask(Consumer(b"POST", length=UNKNOWN), b"x", False)
    other.up.trailers(b"x a: 1\r\n")
    line.turn()
    assert other.heard == [("lost", "the request has a trailer line that HTTP/2 cannot carry", False)]
    assert other.taken.reset == errors.CANCEL and line.is_unused
    line.far.answer(line.ask().taken)


def test_much_content_is_written_before_the_turn_is_over() -> None:
    """Only what is written tells the loop that the endpoint is slow."""
    line = Line(gathered=True)
    asked = line.ask(Consumer(b"POST", length=UNKNOWN), b"", False)
    asked.up.content(b"x" * 16_384, False)
    assert not line.transport.received
    asked.up.content(b"x", False)
    assert len(line.transport.received) > 16_385
    line.turn()
    asked.up.content(b"x" * 16_384, False)
    assert not line.transport.received, "counted anew in each turn"


# Responses: what is heard.


def answering(line: Line, asked: Asked, status: int, block: bytes, content: bytes, end: bool) -> None:
    """In one piece."""
    line.far.codec.send_response(asked.taken.stream, status, block, end and not content)
    if content:
        line.far.codec.send_content(asked.taken.stream, content, end)
    line.turn()


def test_equal_heads_that_end_differently() -> None:
    """The block and the length depend on whether anything follows, and on the method."""
    line = Line()
    for _ in range(2):
        for method, content, length in ((b"GET", b"hi", UNKNOWN), (b"GET", b"", 0), (b"HEAD", b"", 0)):
            asked = line.ask(Consumer(method))
            answering(line, asked, 200, b"\r\nx-b: 2\r\n", content, True)
            ((_, _, block, found, first, end),) = asked.heard
            assert (found, first, end) == (length, content, True)
            assert (EMPTY[2:] in block) == (method == b"GET" and not content)


def test_status_lines_have_their_usual_phrase() -> None:
    line = Line()
    found: list[bytes] = []
    for status in (404, 599):
        consumer = Consumer()
        consumer.upstream_head = lambda head, first, end: found.append(head.line)  # type: ignore[method-assign]
        answering(line, line.ask(consumer), status, b"\r\n", b"", True)
    assert found == [b"HTTP/1.1 404 Not Found", b"HTTP/1.1 599 "]


def test_trailers_of_which_none_may_pass_are_an_end() -> None:
    line = Line()
    asked = line.ask()
    line.far.head(asked.taken)
    line.transport.answer(frames.headers(1, b"\x00\x04host\x01a", True, 16_384))
    assert asked.heard[1:] == [("content", b"", True)] and line.is_unused


def test_content_goes_to_its_own_stream() -> None:
    """A head and the content of another stream in one read."""
    line = Line()
    one, other = line.ask(), line.ask()
    first, second = line.far.requests
    line.far.head(second)
    line.far.codec.send_response(first.stream, 201, b"\r\n", False)
    line.far.codec.send_content(second.stream, b"mine", True)
    line.far.codec.send_content(first.stream, b"yours", True)
    line.turn()
    assert one.consumer.summary() == [("head", 201, b"\r\n", UNKNOWN), ("content", b"yours", True)]
    assert other.consumer.summary() == [("head", 200, b"\r\n", UNKNOWN), ("content", b"mine", True)]


def test_an_event_behind_a_head_that_nobody_wants_is_not_lost() -> None:
    """The first request's end makes its consumer give the second up, whose head is in the same read."""
    line = Line()
    asked: list[Asked] = []
    for number in range(3):
        consumer = Consumer(does=(lambda event: asked[1].up.reset()) if not number else lambda event: None)
        asked.append(line.ask(consumer))
    for request in line.far.requests:
        line.far.codec.send_response(request.stream, 200, b"\r\n", request is not line.far.requests[2])
    line.far.codec.send_content(line.far.requests[2].stream, b"hi", True)
    line.turn()
    assert [each.heard != [] for each in asked] == [True, False, True]
    assert asked[2].consumer.summary()[-1] == ("content", b"hi", True) and line.is_unused


# Ends.

EARLY = ("content with the head", "content", "the head", "trailers")


@pytest.mark.parametrize("how", EARLY)
def test_an_answer_before_the_request_has_ended_stops_the_request(how: str) -> None:
    """RFC 9113 8.1: what there is still to send is wanted no more."""
    line = Line()
    asked = line.ask(Consumer(b"POST", length=UNKNOWN), b"x", False)
    if how == "content with the head":
        answering(line, asked, 413, b"\r\n", b"no", True)
    elif how == "the head":
        answering(line, asked, 413, b"\r\n", b"", True)
    else:
        answering(line, asked, 413, b"\r\n", b"no", False)
        if how == "content":
            line.far.content(asked.taken, b"!", True)
        else:
            line.far.trailers(asked.taken, b"\r\nx-a: 1\r\n")
    line.turn()
    assert asked.taken.reset == errors.CANCEL and line.is_unused and asked.is_over
    count = len(asked.heard)
    asked.up.content(b"late", True)
    asked.up.trailers(b"")
    asked.up.reset()
    line.turn()
    assert len(asked.heard) == count and asked.taken.content == b"x" and line.is_unused


def test_a_consumer_that_wants_no_more() -> None:
    for how in (SharedStream.reset, SharedStream.discard):
        line = Line()
        asked, other = line.ask(), line.ask()
        line.far.head(line.far.requests[0])
        count = len(asked.heard)
        assert how(asked.up) is None
        line.turn()
        assert line.far.requests[0].reset == errors.CANCEL and len(asked.heard) == count
        how(asked.up)
        assert line.up.streams == 1
        line.far.answer(line.far.requests[1])
        assert other.heard and line.is_unused


def test_a_stream_that_was_lent_and_is_not_wanted() -> None:
    line = Line()
    asked = Asked(line, Consumer())
    assert line.up.streams == 1 and line.up.free_streams() == 99
    rooms = line.rooms
    asked.up.reset()
    assert line.is_unused and line.rooms > rooms, "whoever waits gets its place"
    asked.up.reset()
    assert line.is_unused


def test_a_connection_that_was_used_before_and_breaks_at_once_was_stale() -> None:
    """RFC 9113 has no other sign of it. A new one, or one that has said anything since, was not."""
    for served, said, stale in ((True, False, True), (False, False, False), (True, True, False)):
        line = Line()
        if served:
            line.far.answer(line.ask().taken)
        asked = line.ask()
        if said:
            line.transport.answer(frames.ping(b"12345678"))
        line.transport.lose()
        assert asked.heard == [("lost", "closed", stale)], (served, said)
        assert line.closed == 1 and line.up.streams == 0 and line.up.free_streams() == 0


def test_a_stream_lent_of_a_connection_that_is_gone() -> None:
    for lose in (lambda line: line.transport.lose(), lambda line: line.transport.answer(frames.goaway(0, 0))):
        line = Line()
        line.ask()
        asked = Asked(line, Consumer())
        lose(line)
        asked.up.begin(asked.consumer, BLOCK, b"", True)
        assert asked.heard == [("lost", UNSENT, True)]
        asked.up.reset()
        assert line.up.streams == 0


# Windows.


def owed(line: Line) -> int:
    """Bytes of the connection's window that the endpoint has not got back; half of it may wait."""
    codec = line.up.codec
    return SETTINGS_WINDOW - codec.receive_window - codec.owed


SETTINGS_WINDOW = 2 * 101 * 65_536


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("how", ["end", "reset", "lost", "trailers"])
def test_the_connection_gets_its_window_back_whatever_ends_a_stream(how: str, paused: bool) -> None:
    line = Line()
    asked = line.ask(Consumer(b"POST", length=UNKNOWN), b"x", False)
    if paused:
        asked.up.pause()
    answering(line, asked, 200, b"\r\n", b"a" * 1000, False)
    line.far.content(asked.taken, b"b" * 1000)
    assert owed(line) == 2000 * paused
    if how == "end":
        line.far.content(asked.taken, b"c" * 1000, True)
    elif how == "reset":
        asked.up.reset()
    elif how == "lost":
        line.far.reset(asked.taken, errors.CANCEL)
    else:
        line.far.trailers(asked.taken, b"\r\nx-a: 1\r\n")
    assert owed(line) == 0 and line.is_unused


def test_content_of_a_stream_that_was_given_up_is_not_owed() -> None:
    line = Line()
    asked = line.ask()
    line.far.head(asked.taken)
    line.far.codec.send_content(asked.taken.stream, b"x" * 10_000, False)
    asked.up.reset()
    line.turn()
    assert owed(line) == 0 and len(asked.heard) == 1


# Upgrades (RFC 8441).


def test_a_tunnel_without_a_key_proves_nothing() -> None:
    line = Line()
    asked = line.ask(Consumer(upgrade=b"chat"))
    assert asked.taken.head.protocol == b"chat"
    line.far.head(asked.taken)
    assert asked.heard == [("head", 101, b"\r\n", UNKNOWN, b"", False)]


def test_upgrades_that_cannot_be() -> None:
    closed = Line(Settings(connect_protocol=False))
    asked = closed.ask(Consumer(upgrade=b"websocket"))
    cause = "it does not allow extended CONNECT (RFC 8441), which an upgrade needs over HTTP/2"
    assert asked.heard == [("lost", cause, False)] and closed.is_unused
    line = Line()
    for length, end in ((5, False), (5, True), (0, False)):
        asked = line.ask(Consumer(b"POST", length=length, upgrade=b"websocket"), b"", end)
        assert asked.heard == [("lost", "an upgrade with content cannot be sent over HTTP/2", False)]
        assert line.is_unused and not line.far.requests


# The connection.


def test_what_waits_for_a_slow_endpoint_is_bounded() -> None:
    assert 0 < Line().transport.high_water <= 65_536


def test_it_opens_with_the_settings_of_its_endpoint() -> None:
    line = Line(opens=False)
    assert line.opened == [] and line.up.free_streams() == 0 and not line.up.is_open
    assert line.transport.received.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "it speaks first (RFC 9113 3.4)"
    for piece in (frames.settings(b"")[:4], frames.settings(b"")[4:]):
        assert line.opened == []
        line.transport.answer(piece)
    assert line.opened == [""] and line.up.free_streams() == 100 and line.up.is_open
    line.transport.answer(frames.settings(b""))
    assert line.opened == [""]


def test_a_connection_that_nobody_wants_while_it_opens() -> None:
    line = Line(opens=False)
    line.up.abandon()
    assert line.transport.aborted and line.opened == [] and line.closed == 0
    opened = Line()
    opened.up.abandon()
    assert opened.transport.open and opened.up.is_open


def test_streams_are_bounded_by_both_ends() -> None:
    line = Line(Settings(max_streams=2))
    assert line.up.free_streams() == 2
    one, _ = line.ask(), line.up.lend()
    assert line.up.free_streams() == 0 and line.up.streams == 2
    line.far.answer(one.taken)
    assert line.up.free_streams() == 1
    assert Line(Settings(max_streams=1000)).up.free_streams() == 100


def test_retiring() -> None:
    line = Line()
    asked = line.ask()
    line.up.retire()
    assert line.transport.open and line.up.free_streams() == 0 and line.up.is_spent
    line.far.answer(asked.taken)
    assert not line.transport.open and line.closed == 1 and len(line.far.goaways) <= 1
    unused = Line(gathered=True)
    unused.up.retire()
    assert unused.transport.open
    for flush in unused.flushes:
        flush()
    assert not unused.transport.open and unused.closed == 1


def test_more_frames_than_a_turn_reads_wait_for_the_next() -> None:
    line = Line(gathered=True)
    asked = line.ask()
    line.far.head(asked.taken)
    frame = b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x"
    line.transport.answer(frame * 2500)
    assert not line.transport.reading and len(asked.heard) <= 1001
    for most in (2001, 2501):
        flushes, line.flushes = line.flushes, []
        for flush in flushes:
            flush()
        assert len(asked.heard) <= most
    assert len(asked.heard) == 2501 and line.transport.reading


def test_a_consumer_that_begins_anew_at_once() -> None:
    """Whoever hears the end may use the connection again: the stream is free by then."""
    line = Line(Settings(max_streams=1))
    again: list[Asked] = []

    def begin_anew(event: Event) -> None:
        if event[0] == "head" and not again:
            assert line.up.free_streams() == 1
            again.append(Asked(line, Consumer()))
            again[0].up.begin(again[0].consumer, BLOCK, b"", True)

    asked = line.ask(Consumer(does=begin_anew))
    line.far.answer(asked.taken)
    assert len(line.far.requests) == 2
    line.far.answer(line.far.requests[1])
    assert again[0].heard[0][:2] == ("head", 200)


def test_a_consumer_that_resets_at_the_head() -> None:
    line = Line()
    held: list[Any] = []
    consumer = Consumer(does=lambda event: held[0].up.reset())
    held.append(asked := Asked(line, consumer))
    asked.up.begin(consumer, BLOCK, b"", True)
    line.turn()
    answering(line, asked, 200, b"\r\n", b"hi", False)
    assert len(asked.heard) == 1 and asked.taken.reset == errors.CANCEL and owed(line) == 0
