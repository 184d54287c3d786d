"""Flow control (RFC 9113 5.2, 6.9): windows are never exceeded, never lost, and open only as the consumer takes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import FLOW_CONTROL_ERROR, NO_ERROR, STREAM_CLOSED
from dataplane.http.h2.events import Content, Drained, Failed, Request, Reset
from dataplane.http.h2.frames import DATA, END_STREAM, HEADERS, PADDED, RST_STREAM, SETTINGS, WINDOW_UPDATE
from dataplane.http.h2.settings import Settings
from dataplane.http.h2.streams import Stream
from tests.fakes.h2_wire import GET, OPENING, POST, Clock, Frame, data, frame, headers, only, parse, server

SMALL = Settings(stream_window=70_000, connection_window=100_000)


def update(stream: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, increment.to_bytes(4))


def window(size: int) -> bytes:
    """SETTINGS_INITIAL_WINDOW_SIZE."""
    return frame(SETTINGS, 0, 0, b"\0\x04" + size.to_bytes(4))


def credits(codec: Connection) -> dict[int, int]:
    """By stream, what a codec gives back in what it is about to write."""
    found: dict[int, int] = {}
    for part in parse(codec.take()):
        if part.kind == WINDOW_UPDATE:
            found[part.stream] = found.get(part.stream, 0) + int.from_bytes(part.payload)
    return found


def upload(codec: Connection, number: int = 1) -> Stream:
    request = only(codec.receive(headers(number, POST, end=False)), Request)
    assert isinstance(request, Request)
    return request.stream


# receiving


def test_windows_are_announced() -> None:
    codec = Connection(SMALL, True, Clock())
    opening, grant = parse(codec.take())
    assert b"\0\x04" + (70_000).to_bytes(4) in opening.payload
    assert grant == (WINDOW_UPDATE, 0, 0, (100_000 - 65_535).to_bytes(4))


def test_windows_open_only_as_the_consumer_takes() -> None:
    codec = server(SMALL)
    stream = upload(codec)
    for _ in range(4):
        codec.receive(data(1, b"x" * 16_000))
    assert credits(codec) == {}
    codec.acknowledge(stream, 30_000)
    assert credits(codec) == {}  # less than half
    codec.acknowledge(stream, 20_000)
    assert credits(codec) == {0: 50_000, 1: 50_000}
    codec.acknowledge(stream, 14_000)
    assert credits(codec) == {}


def test_more_than_the_window_of_a_stream() -> None:
    codec = server(SMALL)
    upload(codec)
    for _ in range(4):
        codec.receive(data(1, b"x" * 16_000))
    reset = only(codec.receive(data(1, b"x" * 6_001)), Reset)
    assert isinstance(reset, Reset) and (reset.code, reset.reason) == (FLOW_CONTROL_ERROR, "StreamWindow")


def test_more_than_the_window_of_the_connection() -> None:
    codec = server(SMALL)
    for number in (1, 3):
        upload(codec, number)
        for _ in range(3):
            codec.receive(data(number, b"x" * 16_000))
    failed = only(codec.receive(data(1, b"x" * 4_001)), Failed)
    assert isinstance(failed, Failed) and (failed.code, failed.reason) == (FLOW_CONTROL_ERROR, "ConnectionWindow")


def test_padding_is_given_back_at_once() -> None:
    codec = server(SMALL)
    stream = upload(codec)
    for _ in range(250):
        codec.receive(frame(DATA, PADDED, 1, b"\xff" + b"x" * 10 + bytes(255)))
    codec.acknowledge(stream, 2500)
    assert stream.unread == 0
    total = credits(codec)
    assert 250 * 266 - 35_000 < total[1] <= 250 * 266 and not codec.failed


def test_a_reset_gives_back_what_the_stream_owed() -> None:
    codec = server(SMALL)
    stream = upload(codec)
    for _ in range(4):
        codec.receive(data(1, b"x" * 16_000))
    codec.reset(stream, NO_ERROR)
    assert credits(codec) == {0: 64_000}
    codec.acknowledge(stream, 64_000)  # late, and of no more effect
    assert credits(codec) == {}


def test_a_reset_by_the_peer_does_the_same() -> None:
    codec = server(SMALL)
    upload(codec)
    for _ in range(4):
        codec.receive(data(1, b"x" * 16_000))
    codec.receive(frame(RST_STREAM, 0, 1, bytes(4)))
    assert credits(codec) == {0: 64_000}


def test_what_ended_stays_owed_until_it_is_taken() -> None:
    """A slow consumer of many short messages stops the connection, not only its stream."""
    codec = server(SMALL)
    stream = upload(codec)
    for _ in range(4):
        codec.receive(data(1, b"x" * 16_000))
    codec.receive(data(1, b"", True))
    codec.send_response(stream, 204, b"\r\n", True)
    assert stream.closed and credits(codec) == {}
    codec.acknowledge(stream, 64_000)
    assert credits(codec) == {0: 64_000}
    codec.reset(stream, NO_ERROR)
    assert codec.take() == b""


def test_content_of_streams_that_are_reset_is_given_back() -> None:
    codec = server(SMALL)
    codec.reset(upload(codec), NO_ERROR)
    codec.take()
    for _ in range(50):
        assert codec.receive(data(1, b"x" * 16_000)) == []
    assert sum(credits(codec).values()) >= 50 * 16_000 - 50_000
    assert not codec.failed


def test_windows_below_the_default() -> None:
    """Until the peer knows of them it may use the default (6.9.2), and what is too much of that is not given again."""
    settings = Settings(stream_window=10_000, connection_window=20_000)
    codec = Connection(settings, True, Clock())
    codec.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS))
    codec.take()
    stream = upload(codec)
    assert [type(event) for event in codec.receive(data(1, b"x" * 16_000) * 4)] == [Content] * 4
    codec.receive(frame(SETTINGS, 1))  # acknowledged: the window is 10,000 - 64,000 now
    assert stream.receive_window == -54_000
    codec.acknowledge(stream, 64_000)
    assert credits(codec) == {0: 64_000 - 45_535, 1: 64_000}
    assert stream.receive_window == 10_000
    reset = only(codec.receive(data(1, b"x" * 10_001)), Reset)
    assert isinstance(reset, Reset) and reset.code == FLOW_CONTROL_ERROR


def test_streams_that_begin_later_have_the_window_that_the_peer_knows() -> None:
    """One below the default, once SETTINGS are acknowledged (6.9.2)."""
    codec = server(Settings(stream_window=10_000))
    upload(codec)
    assert isinstance(only(codec.receive(data(1, b"x" * 10_000)), Content), Content)
    reset = only(codec.receive(data(1, b"x")), Reset)
    assert isinstance(reset, Reset) and reset.code == FLOW_CONTROL_ERROR


def test_data_after_the_end_is_counted() -> None:
    codec = server(SMALL)
    upload(codec)
    codec.receive(data(1, b"x", True))
    reset = only(codec.receive(data(1, b"x" * 16_000)), Reset)
    assert isinstance(reset, Reset) and reset.code == STREAM_CLOSED
    assert codec.receive_window + codec.owed == 100_000


# sending


def download(codec: Connection, number: int = 1) -> Stream:
    request = only(codec.receive(headers(number, GET)), Request)
    assert isinstance(request, Request)
    codec.send_response(request.stream, 200, b"\r\n", False)
    return request.stream


def sent(codec: Connection) -> list[tuple[int, int, bool]]:
    """DATA frames that a codec is about to write: stream, size, end."""
    return [(part.stream, len(part.payload), bool(part.flags & END_STREAM)) for part in data_of(codec)]


def data_of(codec: Connection) -> list[Frame]:
    return [part for part in parse(codec.take()) if part.kind == DATA]


def test_content_leaves_as_far_as_the_stream_allows() -> None:
    codec = server()
    codec.receive(window(20_000))
    stream = download(codec)
    assert codec.send_content(stream, b"x" * 50_000, True) == 30_000
    assert sent(codec) == [(1, 16_384, False), (1, 3_616, False)]
    assert codec.receive(update(1, 10_000)) == []
    assert sent(codec) == [(1, 10_000, False)]
    assert only(codec.receive(update(1, 50_000)), Drained)
    assert sent(codec) == [(1, 16_384, False), (1, 3_616, True)]
    assert stream.closed


def test_content_leaves_as_far_as_the_connection_allows_in_turns() -> None:
    codec = server()
    codec.receive(window(1_000_000))
    first, second = download(codec), download(codec, 3)
    assert codec.send_content(first, b"x" * 65_535, False) == 0
    codec.take()
    assert codec.send_content(first, b"x" * 40_000, True) == 40_000
    assert codec.send_content(second, b"y" * 40_000, True) == 40_000
    codec.receive(update(0, 65_536))
    assert sent(codec) == [(1, 16_384, False), (3, 16_384, False)] * 2
    events = codec.receive(update(0, 100_000))
    assert [event.stream for event in events if isinstance(event, Drained)] == [first, second]
    assert sent(codec) == [(1, 7_232, True), (3, 7_232, True)]


def test_short_content_waits_for_the_connection_too() -> None:
    codec = server()
    first, second = download(codec), download(codec, 3)
    codec.send_content(first, b"x" * 65_000, False)
    codec.take()
    assert codec.send_content(second, b"y" * 536, False) == 1
    assert sent(codec) == [(3, 535, False)]


def test_a_window_of_zero_and_below() -> None:
    codec = server()
    stream = download(codec)
    codec.send_content(stream, b"x" * 1000, False)
    codec.receive(window(0))
    assert stream.send_window == -1000
    codec.take()
    assert codec.send_content(stream, b"y", False) == 1
    assert codec.receive(update(1, 1000)) == []
    assert sent(codec) == []
    only(codec.receive(update(1, 1)), Drained)
    assert sent(codec) == [(1, 1, False)]


def test_an_end_alone_needs_no_window_even_below_zero() -> None:
    codec = server()
    stream = download(codec)
    codec.send_content(stream, b"x", False)
    codec.receive(window(0))
    codec.take()
    assert codec.send_content(stream, b"", True) == 0
    assert sent(codec) == [(1, 0, True)] and stream.closed


def test_settings_that_close_the_window_of_a_stream_in_the_queue() -> None:
    codec = server()
    codec.receive(window(200_000))
    first, second = download(codec), download(codec, 3)
    codec.send_content(first, b"x" * 65_535, False)
    codec.send_content(second, b"y" * 100, False)
    codec.send_content(second, b"z" * 100, True)
    codec.receive(window(0))
    codec.take()
    codec.receive(update(0, 1000))
    assert sent(codec) == []
    codec.receive(update(3, 150))
    assert sent(codec) == [(3, 150, False)]
    codec.receive(update(3, 50))
    assert sent(codec) == [(3, 50, True)]


def test_content_given_in_twice_while_the_connection_is_closed() -> None:
    codec = server()
    first, second = download(codec), download(codec, 3)
    codec.send_content(first, b"x" * 65_535, False)
    codec.take()
    assert codec.send_content(second, b"y", False) == 1
    assert codec.send_content(second, b"z", False) == 2
    only(codec.receive(update(0, 1000)), Drained)
    assert sent(codec) == [(3, 2, False)]


def test_settings_that_open_windows() -> None:
    codec = server()
    codec.receive(window(0))
    stream = download(codec)
    assert codec.send_content(stream, b"x" * 100, True) == 100
    events = codec.receive(window(100))
    assert isinstance(events[-1], Drained) and stream.closed
    assert sent(codec) == [(1, 100, True)]


def test_ends_and_trailers_wait_behind_content() -> None:
    codec = server()
    codec.receive(window(0))
    stream = download(codec)
    assert codec.send_content(stream, b"ab", False) == 2
    codec.send_trailers(stream, b"\r\ngrpc-status: 0\r\n")
    assert codec.receive(update(1, 1)) == []
    only(codec.receive(update(1, 1)), Drained)
    kinds = [(part.kind, bool(part.flags & END_STREAM)) for part in parse(codec.take()) if part.kind in (DATA, HEADERS)]
    assert kinds[1:] == [(DATA, False), (DATA, False), (HEADERS, True)] and stream.closed


def test_ends_without_content_need_no_window() -> None:
    codec = server()
    codec.receive(window(0))
    first, second, third = download(codec), download(codec, 3), download(codec, 5)
    assert codec.send_content(first, b"", True) == 0
    codec.send_trailers(second, b"\r\na: b\r\n")
    codec.send_trailers(third, b"\r\n")
    assert first.closed and second.closed and third.closed


def test_nothing_but_content_waits_for_the_transport() -> None:
    codec = server()
    stream = download(codec)
    codec.take()
    codec.pause_writing()
    assert codec.send_content(stream, b"x" * 100, True) == 100
    codec.ping(b"abcdefgh")
    assert [part.kind for part in parse(codec.take())] == [6]
    assert codec.receive(update(0, 1000)) == [] and codec.take() == b""
    assert [type(event) for event in codec.resume_writing()] == [Drained]
    assert sent(codec) == [(1, 100, True)]


def test_what_waits_is_dropped_with_its_stream() -> None:
    codec = server()
    codec.receive(window(0))
    stream = download(codec)
    codec.take()
    codec.send_content(stream, b"x" * 100, True)
    codec.reset(stream, NO_ERROR)
    assert stream.waiting == 0
    codec.receive(window(1000))
    assert [part.kind for part in parse(codec.take())] == [RST_STREAM, SETTINGS]


def test_frames_of_the_size_that_the_peer_allows() -> None:
    codec = server()
    codec.receive(frame(SETTINGS, 0, 0, b"\0\x05" + (40_000).to_bytes(4)))
    stream = download(codec)
    codec.send_content(stream, b"x" * 65_535, False)
    assert sent(codec) == [(1, 40_000, False), (1, 25_535, False)]


def test_heads_longer_than_a_frame_are_continued() -> None:
    codec = server()
    request = only(codec.receive(headers(1, GET)), Request)
    assert isinstance(request, Request)
    codec.send_response(request.stream, 200, b"\r\na: %b\r\n" % (b"\xff" * 40_000), True)
    parts = parse(codec.take())
    assert parts[0].kind == HEADERS and all(part.kind == 9 for part in parts[1:]) and len(parts) > 2
    assert [bool(part.flags & 4) for part in parts] == [False] * (len(parts) - 1) + [True]
    assert bool(parts[0].flags & END_STREAM)


# the model: a sender against a naive account of windows


@dataclass
class Account:
    """What RFC 9113 6.9 allows our codec to send, kept by hand."""

    connection: int = 65_535
    initial: int = 65_535
    streams: dict[int, int] = field(default_factory=dict)
    given: dict[int, bytes] = field(default_factory=dict)
    seen: dict[int, bytes] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def read(self, octets: bytes) -> None:
        for part in parse(octets):
            if part.kind != DATA:
                continue
            self.connection -= len(part.payload)
            self.streams[part.stream] -= len(part.payload)
            self.seen[part.stream] += part.payload
            assert self.connection >= 0, "more than the connection's window"
            assert not part.payload or self.streams[part.stream] >= 0, "more than the stream's window"
            if part.flags & END_STREAM:
                assert part.stream not in self.ended
                self.ended.add(part.stream)
        self.nothing_is_kept_back()

    def nothing_is_kept_back(self) -> None:
        for number, octets in self.given.items():
            assert octets.startswith(self.seen[number])
            if len(self.seen[number]) < len(octets):
                assert self.connection == 0 or self.streams[number] <= 0, "content waits, and windows are open"


STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("send"), st.integers(0, 3), st.integers(0, most)) for most in (10_000, 16_384, 30_000)],
        st.tuples(st.just("stream"), st.integers(0, 3), st.integers(1, 40_000)),
        st.tuples(st.just("connection"), st.just(0), st.integers(1, 60_000)),
        st.tuples(st.just("initial"), st.just(0), st.integers(0, 80_000)),
        st.tuples(st.just("end"), st.integers(0, 3), st.just(0)),
    ),
    min_size=10,
    max_size=40,
)


@given(STEPS)
def test_model_of_sending(steps: list[tuple[str, int, int]]) -> None:
    clock = Clock()
    codec, account = server(clock=clock), Account()
    streams = [download(codec, number) for number in (1, 3, 5, 7)]
    codec.take()
    closed_for_us: set[int] = set()
    for stream in streams:
        account.streams[stream.id] = 65_535
        account.given[stream.id] = account.seen[stream.id] = b""
    for what, which, size in steps:
        clock.now += 10
        stream = streams[which]
        if what == "send" and which not in closed_for_us and size:
            octets = bytes((which + 65,)) * size
            account.given[stream.id] += octets
            waiting = codec.send_content(stream, octets, False)
            assert waiting == stream.waiting
        elif what == "end" and which not in closed_for_us:
            closed_for_us.add(which)
            codec.send_content(stream, b"", True)
        elif what == "stream":
            account.streams[stream.id] += size
            codec.receive(update(stream.id, size))
        elif what == "connection":
            account.connection += size
            codec.receive(update(0, size))
        elif what == "initial":
            for number in account.streams:
                account.streams[number] += size - account.initial
            account.initial = size
            codec.receive(window(size))
        account.read(codec.take())
    # windows wide enough: everything arrives, and each end that was asked for
    codec.receive(
        update(0, 1 << 30) + b"".join([update(stream.id, 1 << 30) for stream in streams if not stream.closed])
    )
    account.connection += 1 << 30
    for number in account.streams:
        account.streams[number] += 1 << 30
    account.read(codec.take())
    assert account.seen == account.given
    assert account.ended == {streams[which].id for which in closed_for_us}
    assert not codec.failed


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 16_000), st.booleans()), max_size=60), st.booleans())
def test_model_of_receiving(steps: list[tuple[int, int, bool]], padded: bool) -> None:
    """An honest sender that keeps to its windows is never refused; when all was taken they are wide again."""
    codec = server(SMALL)
    streams = [upload(codec, number) for number in (1, 3, 5)]
    codec.take()
    allowed = {0: 100_000, 1: 70_000, 3: 70_000, 5: 70_000}
    untaken: list[tuple[Stream, int]] = []
    for which, size, takes in steps:
        stream = streams[which]
        length = size + 8 if padded else size
        if size and length <= min(allowed[0], allowed[stream.id]):
            part = frame(DATA, PADDED, stream.id, b"\7" + bytes(size + 7)) if padded else data(stream.id, bytes(size))
            content = only(codec.receive(part), Content)
            assert isinstance(content, Content) and len(content.data) == size
            untaken.append((stream, size))
            allowed[0] -= length
            allowed[stream.id] -= length
        if takes and untaken:
            codec.acknowledge(*untaken.pop(0))
        for number, credit in credits(codec).items():
            allowed[number] += credit
    for stream, size in untaken:
        codec.acknowledge(stream, size)
    for number, credit in credits(codec).items():
        allowed[number] += credit
    assert allowed[0] > 50_000 and all(allowed[stream.id] > 35_000 for stream in streams)  # less than half is owed
    assert allowed[0] == codec.receive_window
    assert all(allowed[stream.id] == stream.receive_window for stream in streams)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536])
def test_settings_are_judged_when_they_are_made(size: int) -> None:
    if size == 0:
        with pytest.raises(ValueError, match="stream_window"):
            Settings(stream_window=size)
        return
    codec = Connection(Settings(stream_window=size), True, Clock())
    assert OPENING and b"\0\x04" + size.to_bytes(4) in codec.take()
    with pytest.raises(ValueError, match="frame_size"):
        Settings(frame_size=16_383)


@pytest.mark.parametrize("size", [1, 2, 7, 600, 2000])
def test_small_parts_that_wait_take_no_more_memory_than_their_bytes(size: int) -> None:
    """A peer may send content byte by byte to one whose window is closed."""
    codec = server()
    codec.receive(window(0) + headers(1, GET))
    (stream,) = codec.streams.values()
    codec.send_response(stream, 200, b"\r\n", False)
    codec.take()
    content = bytes(range(250)) * 80
    for at in range(0, len(content), size):
        codec.send_content(stream, content[at : at + size], False)
        if at == 5 * size:  # a part is cut in the middle
            codec.receive(update(1, size // 2 + 1))
    assert stream.waiting == len(content) - size // 2 - 1
    assert len(stream.waiting_parts) <= len(content) // min(size, 512) + 2
    codec.receive(update(1, len(content)))
    codec.send_content(stream, b"", True)
    sent = b"".join(part.payload for part in parse(codec.take()) if part.kind == DATA)
    assert sent == content and stream.closed


@pytest.mark.parametrize("more", [0, 1])
def test_settings_may_open_a_window_to_the_largest_there_is(more: int) -> None:
    """RFC 9113 6.9.2."""
    codec = server()
    upload(codec)
    codec.receive(update(1, 1000))
    found = codec.receive(window(2**31 - 1 - 1000 + more))
    assert [event.reason for event in found if isinstance(event, Failed)] == ["WindowOverflow"] * more


def test_half_a_window_is_given_back_at_once() -> None:
    codec = server(SMALL)
    stream = upload(codec)
    codec.take()
    for _ in range(4):
        codec.receive(data(1, b"x" * 10_000))
    codec.acknowledge(stream, 34_999)
    assert 1 not in credits(codec)
    codec.acknowledge(stream, 1)
    assert credits(codec)[1] == 35_000


@pytest.mark.parametrize(("size", "is_allowed"), [(16_383, False), (16_384, True), (2**24 - 1, True), (2**24, False)])
def test_frames_are_of_the_sizes_that_there_are(size: int, is_allowed: bool) -> None:
    if is_allowed:
        assert Settings(frame_size=size).frame_size == size
        return
    with pytest.raises(ValueError, match="frame_size must be from 16384 to 16777215"):
        Settings(frame_size=size)


@pytest.mark.parametrize("name", ["stream_window", "connection_window"])
@pytest.mark.parametrize(("size", "is_allowed"), [(0, False), (1, True), (2**31 - 1, True), (2**31, False)])
def test_windows_are_of_the_sizes_that_there_are(name: str, size: int, is_allowed: bool) -> None:
    if is_allowed:
        assert getattr(Settings(**{name: size}), name) == size
        return
    with pytest.raises(ValueError, match=f"{name} must be from 1 to 2147483647"):
        Settings(**{name: size})
