"""The HTTP/1.1 carrier to an endpoint, alone: what it writes for a request, what its consumer hears of a response, and
what becomes of the connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dataplane.carriers import UNSENT
from dataplane.http.messages import NO_NAMES, UNKNOWN, ResponseHead
from dataplane.net.writes import Writes
from dataplane.upstream.endpoint import Endpoint
from dataplane.upstream.h1 import UpstreamConnection
from tests.fakes.memory_proxy import FakeUpstream

Event = tuple[Any, ...]


def nothing(event: Event) -> None:
    """What a consumer does when it hears something."""


@dataclass(eq=False)
class Consumer:
    method: bytes = b"GET"
    target: bytes = b"/a?b"
    length: int = 0
    upgrade: bytes = b""
    takes_trailers: bool = False
    never_indexed: frozenset[bytes] = NO_NAMES
    heard: list[Event] = field(default_factory=list)
    does: Callable[[Event], None] = nothing

    def _hears(self, *event: Any) -> None:
        self.heard.append(event)
        self.does(event)

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        """It passes nothing on."""

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._hears("head", head.status, head.block, head.length, first, end)

    def upstream_interim(self, head: ResponseHead) -> None:
        self._hears("interim", head.status, head.block)

    def upstream_content(self, data: bytes, end: bool) -> None:
        self._hears("content", data, end)

    def upstream_trailers(self, lines: bytes) -> None:
        self._hears("trailers", lines)

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self._hears("lost", cause, stale)

    def upstream_blocked(self) -> None:
        self._hears("blocked")

    def upstream_drained(self) -> None:
        self._hears("drained")

    def summary(self) -> list[Event]:
        """What was heard, however it came in pieces: content is one, with the head's."""
        found: list[Event] = []
        content, ended = b"", False
        for event in self.heard:
            if event[0] == "head":
                found.append(event[:4])
                content, ended = event[4], event[5]
            elif event[0] == "content":
                assert event[1] or event[2], "an empty content without end is never given"
                content, ended = content + event[1], event[2]
            else:
                found.append(event)
        return [*found, ("content", content, ended)] if any(e[0] == "head" for e in found) else found


class Line:
    """One connection, and the endpoint behind it. Writes leave at once, unless they are `gathered`."""

    def __init__(self, gathered: bool = False) -> None:
        self.endpoint = Endpoint("192.0.2.1", 80)
        self.flushes: list[Callable[[], None]] = []
        self.closed = 0
        writes = Writes(lambda flush: self.flushes.append(flush) if gathered else flush())
        self.up = UpstreamConnection(self.endpoint, writes, self._closed)
        self.far = FakeUpstream(self.up)

    def _closed(self) -> None:
        self.closed += 1

    def begin(self, consumer: Consumer | None = None, first: bytes = b"", end: bool = True) -> Consumer:
        consumer = consumer or Consumer()
        self.up.begin(consumer, b"\r\nhost: a\r\n", first, end)
        return consumer

    def turn(self) -> None:
        flushes, self.flushes = self.flushes, []
        for flush in flushes:
            flush()

    def used(self) -> Line:
        """It has served a request, and is idle."""
        self.begin()
        self.far.answer(OK)
        self.far.take()
        assert self.is_idle
        self.endpoint.idle.remove(self.up)
        return self

    @property
    def is_idle(self) -> bool:
        return self.endpoint.idle == [self.up] and self.far.open and self.far.reading


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


# Requests.


def test_a_connection_whose_request_has_not_ended_carries_no_other() -> None:
    line = Line()
    line.begin(Consumer(b"POST", length=5), b"he", False)
    line.far.answer(OK)
    assert not line.endpoint.idle and not line.far.open


# Responses: method, bytes, what is heard, whether the connection is kept.

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


TOO_MUCH = {
    "a length": (OK + b"!", b"hi"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n", b""),
    "chunks": (CHUNKED + b"2\r\nhi\r\n0\r\n\r\n!", b"hi"),
}


@pytest.mark.parametrize(("octets", "content"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_bytes_behind_a_response_cost_the_connection(octets: bytes, content: bytes) -> None:
    """RFC 9112 9.2: what comes unasked is no part of any response."""
    for pieces in ([octets], [octets[:-3], octets[-3:]]):
        line = Line()
        consumer = line.begin()
        for piece in pieces:
            if line.far.open:
                line.far.answer(piece)
        assert consumer.summary()[-1] == ("content", content, True)
        assert not line.far.open and not line.endpoint.idle


LOST = {
    "nothing came": (b"", True),
    "a part of the head": (b"HTTP/1.1 2", False),
    "an interim head": (b"HTTP/1.1 103 Early Hints\r\n\r\n", False),
    "a part of the content": (OK[:-1], False),
    "a part of the chunks": (CHUNKED + b"2\r\nh", False),
}


@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["closed", "reset"])
@pytest.mark.parametrize("is_used", [False, True], ids=["new", "used before"])
@pytest.mark.parametrize(("octets", "is_first"), LOST.values(), ids=LOST)
def test_a_loss_is_stale_where_a_used_connection_ends_before_any_response(
    octets: bytes, is_first: bool, is_used: bool, error: Exception | None
) -> None:
    line = Line().used() if is_used else Line()
    consumer = line.begin()
    if octets:
        line.far.answer(octets)
    line.far.lose(error)
    assert consumer.heard[-1] == ("lost", "closed" if error is None else "reset", is_used and is_first)
    assert line.closed == 1 and not line.endpoint.idle


def test_what_came_of_an_earlier_response_makes_no_loss_less_stale() -> None:
    line = Line()
    line.begin()
    line.far.answer(b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK)
    line.endpoint.idle.clear()
    consumer = line.begin()
    line.far.lose()
    assert consumer.heard == [("lost", "closed", True)]


BAD = {
    "no line at all": (b"\r\n\r\n", "malformed status line"),
    "no status line": (b"SSH-2.0-x\r\n\r\n", "malformed status line"),
    "a bad line": (b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n", "malformed response head"),
    "two codings": (CHUNKED.replace(b"chunked", b"gzip, chunked"), "ambiguous framing"),
    "bad chunks with the head": (CHUNKED + b"x\r\n", "malformed chunk size"),
    "bad chunks": (CHUNKED + b"2\r\nhiXX", "chunk is longer than its size says"),
}


@pytest.mark.parametrize(("octets", "why"), BAD.values(), ids=BAD)
def test_what_is_no_response(octets: bytes, why: str) -> None:
    head = octets.find(b"\r\n\r\n") + 4
    for pieces in ([octets], [octets[:head], octets[head:]]):
        line = Line().used()
        consumer = line.begin()
        for piece in filter(None, pieces):
            line.far.answer(piece)
        assert consumer.heard[-1] == ("lost", why, False)
        assert line.far.aborted and not line.endpoint.idle and line.closed == 1


def head_of(size: int) -> bytes:
    """A response head of so many bytes, its empty line included."""
    start, end = b"HTTP/1.1 204 No Content\r\nx: ", b"\r\n\r\n"
    return start + b"v" * (size - len(start) - len(end)) + end


def test_a_head_of_64_kib_and_no_more() -> None:
    line = Line()
    consumer = line.begin()
    octets = head_of(65_540)
    line.far.answer(octets[:65_536])
    line.far.answer(octets[65_536:])
    assert consumer.heard[0][:2] == ("head", 204)
    line.endpoint.idle.clear()
    consumer = line.begin()
    line.far.answer(b"HTTP/1.1 200 OK\r\nx: " + b"v" * 65_600)
    assert consumer.heard == [("lost", "response head is too large", False)] and not line.far.open


def test_sixteen_interim_heads_and_no_more() -> None:
    """Of one response: the count begins anew with the next."""
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    line = Line()
    for _ in range(2):
        consumer = line.begin()
        line.far.answer(early * 16 + OK)
        assert len(consumer.heard) == 17 and line.is_idle
        line.endpoint.idle.clear()
    consumer = line.begin()
    line.far.answer(early * 17)
    assert consumer.heard[16:] == [("lost", "too many informational responses", False)] and not line.far.open


@pytest.mark.parametrize("rest", [b"", b"2\r\nhi\r\n", b"2\r\nhi\r\n0\r\n\r\n"])
def test_a_consumer_that_gives_up_at_a_head_in_chunks_hears_no_more(rest: bytes) -> None:
    line = Line()
    consumer = Consumer(does=lambda event: line.up.reset())
    line.begin(consumer)
    line.far.answer(CHUNKED + rest)
    assert [each[0] for each in consumer.heard] == ["head"] and line.far.aborted and not line.endpoint.idle


def test_a_head_is_understood_for_its_own_request() -> None:
    """The same head again, to HEAD and to GET: only the latter has content."""
    line = Line()
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    for method, content in ((b"GET", b"hi"), (b"HEAD", b""), (b"HEAD", b""), (b"GET", b"hi")):
        consumer = line.begin(Consumer(method))
        line.far.answer(head + content)
        assert consumer.summary()[-1] == ("content", content, True) and line.is_idle
        line.endpoint.idle.clear()


# Chunks that pass as they are.


class Taker:
    def __init__(self) -> None:
        self.framed = b""
        self.size = 0

    def chunks(self, framed: bytes, size: int) -> None:
        self.framed += framed
        self.size += size


@pytest.mark.parametrize("step", [1, 5, 1000])
@pytest.mark.parametrize("trailers", [b"", b"x-a: 1\r\n"])
def test_chunks_may_pass_past_the_consumer(step: int, trailers: bytes) -> None:
    line, taker = Line(), Taker()
    body = b"2\r\nhi\r\nA\r\n0123456789\r\n0\r\n%b\r\n" % trailers
    octets = CHUNKED + body
    consumer = Consumer(does=lambda event: handed.append(line.up.hand_chunks(taker)) if event[0] == "head" else None)
    handed: list[bool] = []
    line.begin(consumer)
    for at in range(0, len(octets), step):
        line.far.answer(octets[at : at + step])
    assert handed == [True] and (taker.framed, taker.size) == (body, 12)
    assert consumer.heard == [("head", 200, b"\r\n", UNKNOWN, b"", False), ("content", b"", True)]
    assert line.is_idle
    line.endpoint.idle.clear()
    later = line.begin()
    line.far.answer(CHUNKED + b"2\r\nhi\r\n0\r\n\r\n")
    assert taker.size == 12 and later.summary()[-1] == ("content", b"hi", True), "the next response is its own"


def test_chunks_of_which_some_were_read_do_not_pass() -> None:
    line, taker = Line(), Taker()
    consumer = line.begin()
    line.far.answer(CHUNKED + b"2\r\nhi\r\n")
    assert not line.up.hand_chunks(taker)
    line.far.answer(b"2\r\nyo\r\n0\r\n\r\n")
    assert consumer.summary()[-1] == ("content", b"hiyo", True) and not taker.framed


def test_content_with_a_length_has_no_chunks_to_pass() -> None:
    line = Line()
    line.begin()
    line.far.answer(OK[:-1])
    assert not line.up.hand_chunks(Taker())


# Pace.


def test_a_consumer_that_asks_for_a_pause_is_not_given_more() -> None:
    line = Line()
    consumer = line.begin()
    line.far.answer(OK[:-1])
    line.up.pause()
    line.up.pause()
    assert not line.far.reading
    line.up.resume()
    assert line.far.reading
    line.up.pause()
    line.far.answer(b"i")  # was on the way
    assert consumer.summary()[-1] == ("content", b"hi", True)
    assert line.is_idle, "an idle connection is read: else it would not notice that it is closed"


# What nobody asked for.


def test_bytes_on_an_idle_connection_close_it() -> None:
    line = Line().used()
    line.up.park()
    line.far.answer(b"H")
    assert line.far.aborted and not line.endpoint.idle and line.closed == 1


def test_bytes_before_a_request_was_written_are_no_answer_to_it() -> None:
    line = Line(gathered=True)
    consumer = line.begin()
    line.far.answer(OK)
    assert consumer.heard == [("lost", UNSENT, True)] and line.far.aborted
    line.turn()
    assert line.far.received == b"" and line.closed == 1


def test_a_connection_lost_before_a_request_was_written() -> None:
    line = Line(gathered=True)
    consumer = line.begin()
    line.far.lose(ConnectionResetError())
    line.turn()
    assert consumer.heard == [("lost", UNSENT, True)] and line.far.received == b""


def test_the_end_of_an_idle_connection_is_noticed_at_once() -> None:
    line = Line().used()
    line.up.park()
    assert line.up.eof_received() is False
    assert not line.endpoint.idle, "no request may take it any more"


def test_parking() -> None:
    line = Line()
    line.up.park()
    assert line.is_idle and line.closed == 0
    gone = Line()
    gone.endpoint.closed = True
    gone.up.park()
    assert not gone.endpoint.idle and gone.far.aborted
    busy = Line()
    busy.begin()
    busy.up.park()
    assert not busy.endpoint.idle and busy.far.aborted, "its response is still to come"


def test_a_parked_connection_is_not_new_any_more() -> None:
    """The endpoint may have closed it meanwhile: RFC 9112 9.3.1."""
    line = Line()
    line.up.park()
    consumer = line.begin()
    line.far.lose()
    assert consumer.heard == [("lost", "closed", True)]


def test_no_connection_is_kept_to_an_endpoint_that_left_the_table() -> None:
    line = Line()
    consumer = line.begin()
    line.endpoint.closed = True
    line.far.answer(OK)
    assert consumer.summary()[-1] == ("content", b"hi", True)
    assert not line.far.open and not line.endpoint.idle


# Responses that nobody wants any more.

DISCARDED: dict[str, tuple[bytes, int, bool]] = {
    # what came of the response, the request's length, whether its rest is read
    "a short rest": (b"HTTP/1.1 503 No\r\ncontent-length: 65537\r\n\r\nx", 0, True),
    "a long rest": (b"HTTP/1.1 503 No\r\ncontent-length: 65538\r\n\r\nx", 0, False),
    "chunks": (CHUNKED, 0, True),
    "until it closes": (b"HTTP/1.1 503 No\r\n\r\nx", 0, False),
    "a request that has not ended": (CHUNKED, 5, False),
}


@pytest.mark.parametrize(("came", "length", "is_read"), DISCARDED.values(), ids=DISCARDED)
def test_which_responses_are_read_to_their_end(came: bytes, length: int, is_read: bool) -> None:
    line = Line()
    consumer = line.begin(Consumer(length=length), b"", not length)
    line.far.answer(came)
    line.up.pause()
    count = len(consumer.heard)
    assert (line.up.discard() is not None) == is_read
    assert line.far.open == is_read and len(consumer.heard) == count
    assert not is_read or line.far.reading


def discarding() -> tuple[Line, Consumer, Any]:
    line = Line()
    consumer = line.begin()
    line.far.answer(CHUNKED)
    sleeper = line.up.discard()
    assert sleeper is not None
    return line, consumer, sleeper


def test_a_discarded_response_that_ends_leaves_its_connection() -> None:
    for end in (b"0\r\n\r\n", b"0\r\nx-a: 1\r\n\r\n"):
        line, consumer, sleeper = discarding()
        line.far.answer(b"2\r\nhi\r\n")
        line.up.pause_writing()
        line.up.resume_writing()
        line.far.answer(end)
        assert line.is_idle and len(consumer.heard) == 1
        sleeper.wake(0.0)
        assert line.is_idle, "what its end has freed is not reset"
        line.endpoint.idle.clear()
        line.begin()
        sleeper.wake(0.0)
        assert line.far.open, "nor the request after it"


def test_a_discarded_response_that_takes_too_long() -> None:
    line, _, sleeper = discarding()
    sleeper.wake(0.0)
    assert line.far.aborted and line.closed == 1
    sleeper.wake(0.0)
    assert line.closed == 1


@pytest.mark.parametrize(("size", "is_open"), [(65_536, True), (65_537, False)])
def test_a_discarded_response_that_is_too_long(size: int, is_open: bool) -> None:
    line, _, _ = discarding()
    line.far.answer(b"%x\r\n" % size + b"x" * size)
    assert line.far.open == is_open


def test_a_discarded_response_takes_its_chunks_along() -> None:
    line, taker = Line(), Taker()
    line.begin(Consumer(does=lambda event: line.up.hand_chunks(taker) and None))
    line.far.answer(CHUNKED + b"2\r\nhi\r\n")
    line.up.discard()
    line.far.answer(b"2\r\nyo\r\n0\r\n\r\n")
    assert taker.framed == b"2\r\nhi\r\n" and line.is_idle


# Tunnels.

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n"


def test_the_end_of_a_tunnel_takes_along_what_was_gathered() -> None:
    line = Line(gathered=True)
    line.begin(Consumer(upgrade=b"chat"))
    line.turn()
    line.far.answer(SWITCH)
    line.far.take()
    line.up.content(b"last", True)
    assert line.far.received == b"last" and line.far.eof
