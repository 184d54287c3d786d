"""Limits of a connection to the very frame: what passes, and what the next one comes to. Figures of floods are those of
docs/operations.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import CANCEL, ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, PROTOCOL_ERROR
from dataplane.http.h2.events import Content, Failed, GoAway, Interim, OversizedRequest, Request, Reset, Response
from dataplane.http.h2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITIZED,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_wire import GET, OK, POST, Clock, client, data, frame, headers, literal, only, parse, server

PAGE = Path(__file__).parents[3] / "docs/operations.md"
ROW = re.compile(r"\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|")
OF_CLIENTS = PAGE.read_text().split("\nA client:\n", 1)[1].split("\nAn endpoint.", 1)[0]
FIGURES = {name: tuple(map(int, figures)) for name, *figures in ROW.findall(OF_CLIENTS)}

RESET = CANCEL.to_bytes(4)
AT = 1_000_001
"""Streams of the flood: far from those that are opened beside it."""

# kind -> what is sent first; what again and again, by number; how much of it a new connection has used up
FLOODS: dict[str, tuple[bytes, Callable[[int], bytes], int]] = {
    "RapidReset": (b"", lambda n: headers(AT + 2 * n, GET) + frame(RST_STREAM, 0, AT + 2 * n, RESET), 0),
    "MalformedStreams": (b"", lambda n: headers(AT + 2 * n, (*GET, (b"A", b"b"))), 0),
    "PingFlood": (b"", lambda n: frame(PING, 0, 0, bytes(8)), 0),
    "SettingsFlood": (b"", lambda n: (frame(SETTINGS), frame(SETTINGS, ACK), frame(GOAWAY, 0, 0, bytes(8)))[n % 3], 1),
    "PriorityFlood": (b"", lambda n: frame(PRIORITY, 0, 1, b"\0\0\0\3\0"), 0),
    "WindowUpdateFlood": (b"", lambda n: frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"), 0),
    "EmptyFrames": (headers(AT, POST, end=False), lambda n: data(AT), 0),
    "UnknownFrames": (b"", lambda n: frame(0xBB), 0),
    "StaleFrames": (headers(AT, (*POST, (b"A", b"b")), end=False), lambda n: data(AT), 0),
}


def test_the_page_has_each_kind() -> None:
    assert sorted(FIGURES) == sorted((*FLOODS, "OversizedHeads"))  # that one: test_h2_limits


class Flood:
    """A connection, and what is sent to it again and again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = Clock()
        self.codec = server(clock=self.clock)
        first, self.again, self.used = FLOODS[name]
        self.codec.receive(first)
        self.number = 0

    def passes(self, count: int) -> None:
        """So many pass."""
        for _ in range(count):
            self.codec.receive(self.again(self.number))
            self.codec.take()
            self.number += 1
            assert not self.codec.failed, self.number

    def is_cut(self) -> None:
        """The next one does not."""
        failed = self.codec.receive(self.again(self.number))[-1]
        assert isinstance(failed, Failed) and (failed.code, failed.reason) == (ENHANCE_YOUR_CALM, self.name)

    def streams(self, count: int, frames: int) -> None:
        """So many streams run to their end, each with so many DATA frames for the peer."""
        for _ in range(count):
            number = self.codec.last_stream + 2 if self.codec.last_stream < AT else self.codec.last_stream + 100_000
            (request,) = self.codec.receive(headers(max(number, 1) | 1, GET))
            assert isinstance(request, Request)
            self.codec.send_response(request.stream, 200, b"\r\n", not frames)
            if number % 4 == 1:
                self.codec.pause_writing()  # a frame that had to wait counts as well
            for left in range(frames - 1, -1, -1):
                self.codec.send_content(request.stream, bytes(2000), not left)  # smaller ones are put together
            self.codec.resume_writing()
            self.codec.take()


@pytest.mark.parametrize("name", FLOODS)
def test_what_passes_at_once_and_with_time(name: str) -> None:
    burst, per_second, _, _ = FIGURES[name]
    flood = Flood(name)
    flood.passes(burst - flood.used)
    flood.clock.now += 2
    flood.passes(2 * per_second)
    flood.is_cut()


@pytest.mark.parametrize("name", FLOODS)
def test_what_streams_allow(name: str) -> None:
    """Those with a DATA frame, and those without: what a frame allows is not what its stream does."""
    burst, _, per_stream, per_frame = FIGURES[name]
    for frames in (0, 3):
        flood = Flood(name)
        flood.passes(burst - flood.used)
        flood.streams(2, frames)
        flood.number += 500_000  # streams above those
        flood.passes(2 * (per_stream + frames * per_frame))
        flood.is_cut()


def test_what_waits_for_a_peer_that_does_not_read() -> None:
    """1,000 acknowledgements; counted anew when it has read."""
    clock = Clock()
    codec = server(clock=clock)
    for _ in range(2):
        codec.pause_writing()
        for _ in range(1000):
            clock.now += 1
            codec.receive(frame(PING, 0, 0, bytes(8)))
            assert not codec.failed
        codec.resume_writing()
        codec.take()
    codec.pause_writing()
    for _ in range(1001):
        clock.now += 1
        events = codec.receive(frame(PING, 0, 0, bytes(8)))
    assert isinstance(events[-1], Failed) and events[-1].reason == "HeldReplies"


# header blocks


@pytest.mark.parametrize(("parts", "passes"), [(8, True), (9, False)])
def test_a_header_block_in_eight_frames_more(parts: int, passes: bool) -> None:
    block = literal(GET)
    codec = server()
    codec.receive(frame(HEADERS, END_STREAM, 1, block[:1]))
    pieces = [block[at : at + 1] for at in range(1, parts)]
    for piece in (*pieces[:-1],):
        assert codec.receive(frame(CONTINUATION, 0, 1, piece)) == []
    (event,) = codec.receive(frame(CONTINUATION, END_HEADERS, 1, block[parts - 1 :]))
    assert isinstance(event, Request) == passes


def test_longer_blocks_may_have_more_frames() -> None:
    """One for each 16 KiB of them."""
    block = literal([*GET, *((b"a%d" % number, b"b" * 1500) for number in range(42))])
    assert len(block) > 60_000
    codec = server()
    codec.receive(frame(HEADERS, END_STREAM, 1, block[:16_000]))
    for start in (16_000, 32_000, 48_000):
        assert codec.receive(frame(CONTINUATION, 0, 1, block[start : start + 16_000])) == []
    for start in range(64_000, 64_000 + 6):
        assert codec.receive(frame(CONTINUATION, 0, 1, block[start : start + 1])) == []
    (event,) = codec.receive(frame(CONTINUATION, END_HEADERS, 1, block[64_006:]))
    assert isinstance(event, OversizedRequest) and not codec.failed


def test_a_block_of_64_kib_and_no_more() -> None:
    start = literal(GET) + b"\x00\x01a\x7f"
    for size, passes in ((65_536, True), (65_537, False)):
        codec = server()
        block = (start + bytes(size))[:size]
        codec.receive(frame(HEADERS, END_STREAM, 1, block[:16_384]))
        events = []
        for at in range(16_384, size, 16_384):
            events = codec.receive(frame(CONTINUATION, 0, 1, block[at : at + 16_384]))
        assert (events == []) == passes
        if not passes:
            assert isinstance(events[-1], Failed) and events[-1].reason == "HeaderBlock"


def test_a_head_that_begins_in_a_continuation() -> None:
    """The first frame has its priority and nothing else (RFC 9113 6.2)."""
    codec = server()
    assert codec.receive(frame(HEADERS, PRIORITIZED | END_STREAM, 1, b"\0\0\0\3\0")) == []
    only(codec.receive(frame(CONTINUATION, END_HEADERS, 1, literal(GET))), Request)


def test_a_hundred_interim_heads_and_no_more() -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    early = headers(1, [(b":status", b"103")], end=False)
    for _ in range(100):
        only(codec.receive(early), Interim)
    reset = only(codec.receive(early), Reset)
    assert isinstance(reset, Reset) and (reset.code, reset.reason) == (ENHANCE_YOUR_CALM, "Interim")


# content


@pytest.mark.parametrize("content", [b"", b"h", b"hello"])
@pytest.mark.parametrize("padding", [None, 0, 1, 7])
@pytest.mark.parametrize("ends", [False, True])
def test_a_frame_of_content_in_pieces(content: bytes, padding: int | None, ends: bool) -> None:
    """Wherever it is cut, and whatever is behind it."""
    flags = END_STREAM if ends else 0
    sent = data(1, content, ends)
    if padding is not None:
        sent = frame(DATA, PADDED | flags, 1, bytes((padding,)) + content + bytes(padding))
    sent += headers(3, GET)
    cuts = [[sent[:cut], sent[cut:]] for cut in range(len(sent))]
    for pieces in (*cuts, [sent[at : at + 1] for at in range(len(sent))]):
        codec = server()
        codec.receive(headers(1, POST, end=False))
        events = [event for piece in pieces for event in codec.receive(piece)]
        assert b"".join(event.data for event in events if isinstance(event, Content)) == content
        assert [event.end for event in events if isinstance(event, Content) and event.end] == [True] * ends
        assert isinstance(events[-1], Request) and not codec.is_amid and not codec.failed
        stream = codec.streams[1]
        assert stream.unread == len(content) and stream.receives == (not ends)


@pytest.mark.parametrize(
    ("length", "parts", "reason"),
    [
        (0, [b"x"], "ContentLength"),
        (1, [b"x", b"y"], "ContentLength"),
        (2, [b"x"], "ContentLength"),
        (2, [b"x", b"y"], ""),
        (0, [b""], ""),
    ],
)
def test_content_of_a_response_against_its_length(length: int, parts: list[bytes], reason: str) -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    only(codec.receive(headers(1, (*OK, (b"content-length", b"%d" % length)), end=False)), Response)
    events = []
    for at, part in enumerate(parts):
        events += codec.receive(data(1, part, at + 1 == len(parts)))
    last = events[-1]
    assert (last.reason if isinstance(last, Reset) else "") == reason


def test_a_tunnel_s_content_has_no_length() -> None:
    """RFC 9110 9.3.6: whatever the head says."""
    codec = client()
    codec.send_request(b"CONNECT", b"", b"a:1", b"", b"\r\n", False)
    only(codec.receive(headers(1, (*OK, (b"content-length", b"1")), end=False)), Response)
    only(codec.receive(data(1, b"more than one")), Content)


def test_acknowledged_settings_move_windows_once() -> None:
    """6.9.2. What acknowledges nothing changes nothing."""
    codec = server(Settings(stream_window=200_000))
    request = only(codec.receive(headers(1, POST, end=False)), Request)
    assert isinstance(request, Request)
    size = request.stream.receive_window
    assert codec.receive(frame(SETTINGS, ACK)) == []
    assert request.stream.receive_window == size


def test_a_window_may_be_as_large_as_a_number_and_no_larger() -> None:
    """6.9.1: 2^31-1."""
    most = (1 << 31) - 1
    for stream, room in ((0, most - 65_535), (1, most - 65_535)):
        codec = server()
        codec.receive(headers(1, GET))
        assert codec.receive(frame(WINDOW_UPDATE, 0, stream, room.to_bytes(4))) == []
        event = only(codec.receive(frame(WINDOW_UPDATE, 0, stream, (1).to_bytes(4))), Reset if stream else Failed)
        assert isinstance(event, Reset | Failed) and (event.code, event.reason) == (
            FLOW_CONTROL_ERROR,
            "WindowOverflow",
        )


def test_all_of_a_window_may_be_used() -> None:
    codec = server()
    request = only(codec.receive(headers(1, GET)), Request)
    assert isinstance(request, Request)
    codec.receive(frame(SETTINGS, 0, 0, b"\0\x04" + (100_000).to_bytes(4) + b"\0\x05" + (100_000).to_bytes(4)))
    codec.take()
    codec.send_response(request.stream, 200, b"\r\n", False)
    assert codec.send_content(request.stream, b"x" * 65_535, False) == 0, "the connection's"
    assert codec.send_content(request.stream, b"x", False) == 1
    codec.take()
    codec.receive(frame(WINDOW_UPDATE, 0, 0, (50_000).to_bytes(4)))
    assert [len(part.payload) for part in parse(codec.take())] == [1]
    assert codec.send_content(request.stream, b"x" * 34_465, False) == 1, "the stream's: one was used"


def test_all_of_a_frame_may_be_used() -> None:
    codec = server(Settings(frame_size=20_000))
    codec.receive(headers(1, POST, end=False))
    only(codec.receive(data(1, b"x" * 20_000)), Content)
    failed = only(codec.receive(data(1, b"x" * 20_001)), Failed)
    assert isinstance(failed, Failed) and failed.reason == "FrameSize"


def test_debug_data_is_cut() -> None:
    """1,024 bytes of it are reported."""
    event = only(server().receive(frame(GOAWAY, 0, 0, bytes(8) + b"d" * 2000)), GoAway)
    assert isinstance(event, GoAway) and event.debug == b"d" * 1024
    event = only(server().receive(frame(GOAWAY, 0, 0, b"\x80\0\0\5\0\0\0\2why")), GoAway)
    assert isinstance(event, GoAway) and (event.last, event.code, event.debug) == (5, 2, b"why")


def test_a_turn_reads_so_many_frames() -> None:
    codec: Connection = server()
    pings = frame(PING, 0, 0, bytes(8))
    codec.receive(pings * 5, 3)
    assert codec.has_more and codec.unused == 0 and len(parse(codec.take())) == 3
    codec.receive(b"", 3)
    assert not codec.has_more and codec.unused == 1 and len(parse(codec.take())) == 2
    codec.receive(pings * 3, 3)
    assert not codec.has_more and codec.unused == 0


@pytest.mark.parametrize(
    ("fields", "frames"),
    [
        (GET, 1),
        ((*GET, *[(b"x-%d" % number, b"1") for number in range(40)]), 1 + (len(GET) + 40 - 16) // 4),
        ((*GET, (b"x-a", b"1" * 4096)), 1 + 8),
        ((*GET, (b"A", b"1")), 1 + 64),
        ((*GET, *[(b"x-%d" % number, b"1") for number in range(101)]), 1 + (len(GET) + 101 - 16) // 4 + 64),
    ],
    ids=["ordinary", "many fields", "a long one", "malformed", "too many fields"],
)
def test_a_head_that_costs_more_takes_more_of_a_turn(fields: tuple[tuple[bytes, bytes], ...], frames: int) -> None:
    """So a client that has heads refused, or sends large ones, does not make a turn longer."""
    codec = server()
    codec.receive(headers(1, fields) + frame(PING, 0, 0, bytes(8)), 150)
    assert codec.unused == 150 - frames - 1


def test_what_is_amid() -> None:
    """A frame of which a part has come, or a header block; content is handed on and waits for nothing."""
    codec = server()
    assert not codec.is_amid
    codec.receive(frame(PING, 0, 0, bytes(8))[:5])
    assert codec.is_amid
    codec.receive(frame(PING, 0, 0, bytes(8))[5:])
    assert not codec.is_amid
    codec.receive(frame(HEADERS, 0, 1, literal(POST)))
    assert codec.is_amid
    codec.receive(frame(CONTINUATION, END_HEADERS, 1))
    assert not codec.is_amid
    codec.receive(data(1, b"hello")[:-1])
    assert not codec.is_amid


def test_streams_by_their_numbers() -> None:
    """The first bit is not the number's (4.1)."""
    codec = server()
    event = only(codec.receive(headers(0x80000001, GET)), Request)
    assert isinstance(event, Request) and event.stream.id == 1
    failed = only(codec.receive(headers(2, GET)), Failed)
    assert isinstance(failed, Failed) and failed.code == PROTOCOL_ERROR


def test_what_a_request_is_on_the_wire() -> None:
    """RFC 7541 appendix A: what is in the static table costs one octet each; a path is in no table (6.2.2)."""
    codec = client()
    codec.send_request(b"GET", b"http", b"", b"/", b"\r\n", True)
    (sent,) = parse(codec.take())
    assert (sent.kind, sent.flags, sent.stream) == (1, 0x5, 1)
    assert sent.payload[:2] == b"\x82\x86"
    codec.send_request(b"POST", b"http", b"", b"/", b"\r\n", False)
    (sent,) = parse(codec.take())
    assert (sent.flags, sent.stream) == (0x4, 3) and sent.payload[0] == 0x83


def test_a_response_that_depends_on_itself() -> None:
    """RFC 9113 5.3.1 has left nothing of priorities but the error."""
    for number, reason in ((1, "Priority"), (3, "")):
        codec = client()
        codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
        payload = number.to_bytes(4) + b"\0" + literal(OK)
        (event,) = codec.receive(frame(HEADERS, END_HEADERS | PRIORITIZED | END_STREAM, 1, payload))
        assert (event.reason if isinstance(event, Reset) else "") == reason


LATE = {
    "again": ((b":status", b"200"), (b"x-a", b"1"), (b":status", b"200")),
    "unknown": ((b":status", b"200"), (b"x-a", b"1"), (b":other", b"1")),
}


@pytest.mark.parametrize("fields", LATE.values(), ids=LATE)
def test_a_late_pseudo_header_is_late_whatever_it_is(fields: tuple[tuple[bytes, bytes], ...]) -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    reset = only(codec.receive(headers(1, fields)), Reset)
    assert isinstance(reset, Reset) and reset.reason == "LatePseudoHeader"


def test_what_only_looks_like_another_field_is_left_out_alone() -> None:
    codec = server()
    event = only(codec.receive(headers(1, (*GET, (b"content_length", b"5"), (b"x-a", b"1"), (b"x-b", b"2")))), Request)
    assert isinstance(event, Request) and event.head.block == b"\r\nx-a: 1\r\nx-b: 2\r\n"
    assert event.head.length == -1


def test_as_many_trailers_as_headers() -> None:
    for count, reason in ((3, ""), (4, "HeadersTooLarge")):
        codec = server(Settings(max_headers=3))
        codec.receive(headers(1, POST, end=False))
        events = codec.receive(headers(1, [(b"x-%d" % number, b"1") for number in range(count)]))
        assert (events[-1].reason if isinstance(events[-1], Reset) else "") == reason


def test_a_field_counts_with_32_octets_on_top() -> None:
    """6.5.2: to the very octet."""
    size = sum(len(name) + len(value) + 32 for name, value in GET)
    for more, kind in ((0, Request), (1, OversizedRequest)):
        codec = server(Settings(max_header_size=size + 34 + 5))
        only(codec.receive(headers(1, (*GET, (b"x-", b"v" * (5 + more))))), kind)


def test_as_many_headers_as_are_allowed() -> None:
    for count, kind in ((3, Request), (4, OversizedRequest)):
        codec = server(Settings(max_headers=3))
        only(codec.receive(headers(1, (*GET, *((b"x-%d" % number, b"1") for number in range(count))))), kind)


def test_crumbs_of_cookies_are_one_header() -> None:
    """8.2.3."""
    codec = server(Settings(max_headers=2))
    crumbs = [(b"cookie", b"a=1"), (b"x-a", b"1"), (b"cookie", b"b=2"), (b"cookie", b"c=3")]
    event = only(codec.receive(headers(1, (*GET, *crumbs))), Request)
    assert isinstance(event, Request) and event.head.block == b"\r\ncookie: a=1; b=2; c=3\r\nx-a: 1\r\n"
