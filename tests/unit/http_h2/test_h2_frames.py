"""Frame by frame: what a peer sends, and what becomes of it. Sections are of RFC 9113, unless another is named."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dataplane.http.h2 import frames
from dataplane.http.h2.connection import Connection
from dataplane.http.h2.errors import (
    COMPRESSION_ERROR,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    STREAM_CLOSED,
    Misuse,
)
from dataplane.http.h2.events import (
    Content,
    Failed,
    GoAway,
    Interim,
    Pong,
    Refused,
    Request,
    Reset,
    Response,
    SettingsAcknowledged,
    SettingsChanged,
    Trailers,
)
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
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from dataplane.http.h2.hpack import BlockDecoder
from dataplane.http.h2.settings import Settings
from tests.fakes.h2_wire import (
    GET,
    OK,
    OPENING,
    POST,
    Clock,
    client,
    data,
    frame,
    headers,
    literal,
    only,
    parse,
    server,
)

BLOCK = literal(GET)
NUMBER = (7).to_bytes(4)


def setting(number: int, value: int) -> bytes:
    return frame(SETTINGS, 0, 0, number.to_bytes(2) + value.to_bytes(4))


# section, what is sent on a new connection, code and reason of the failure
CONNECTION_ERRORS = [
    ("4.2", frame(PING, 0, 0, bytes(16_385)), FRAME_SIZE_ERROR, "FrameSize"),
    ("4.3", frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x80"), COMPRESSION_ERROR, "HeaderCompression"),
    ("4.3", frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK[:-1]), COMPRESSION_ERROR, "HeaderCompression"),
    ("5.1", data(1), PROTOCOL_ERROR, "IdleStream"),
    ("5.1", frame(RST_STREAM, 0, 1, NUMBER), PROTOCOL_ERROR, "IdleStream"),
    ("5.1", frame(WINDOW_UPDATE, 0, 1, NUMBER), PROTOCOL_ERROR, "IdleStream"),
    ("5.1.1", headers(2, GET), PROTOCOL_ERROR, "StreamNumber"),
    ("5.1.1", headers(0, GET), PROTOCOL_ERROR, "StreamNumber"),
    ("5.1.1", headers(3, GET, end=False) + headers(1, GET), STREAM_CLOSED, "ClosedStream"),
    ("6.1", data(0, b"a"), PROTOCOL_ERROR, "IdleStream"),
    ("6.1", headers(1, POST, end=False) + frame(DATA, PADDED, 1), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.1", headers(1, POST, end=False) + frame(DATA, PADDED, 1, b"\x01"), PROTOCOL_ERROR, "Padding"),
    ("6.1", headers(1, POST, end=False) + frame(DATA, PADDED, 1, b"\x04abc"), PROTOCOL_ERROR, "Padding"),
    ("6.2", frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + BLOCK), PROTOCOL_ERROR, "Padding"),
    ("6.2", frame(HEADERS, END_HEADERS | PADDED, 1), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.2", frame(HEADERS, END_HEADERS | PRIORITIZED, 1, b"\0\0\0\0"), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.3", frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR, "IdleStream"),
    ("6.3", frame(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.4", frame(RST_STREAM, 0, 0, NUMBER), PROTOCOL_ERROR, "IdleStream"),
    ("6.4", headers(1, GET) + frame(RST_STREAM, 0, 1, b"\0\0\0"), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.5", frame(SETTINGS, 0, 1), PROTOCOL_ERROR, "StreamNumber"),
    ("6.5", frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.5", frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.5.2", setting(0x2, 2), PROTOCOL_ERROR, "BadSetting"),
    ("6.5.2", setting(0x4, 1 << 31), FLOW_CONTROL_ERROR, "BadSetting"),
    ("6.5.2", setting(0x5, 16_383), PROTOCOL_ERROR, "BadSetting"),
    ("6.5.2", setting(0x5, 16_777_216), PROTOCOL_ERROR, "BadSetting"),
    ("RFC 8441 3", setting(0x8, 2), PROTOCOL_ERROR, "BadSetting"),
    ("RFC 8441 3", setting(0x8, 1) + setting(0x8, 0), PROTOCOL_ERROR, "BadSetting"),
    ("6.6", frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2" + BLOCK), PROTOCOL_ERROR, "PushPromise"),
    ("6.7", frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR, "StreamNumber"),
    ("6.7", frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.8", frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR, "StreamNumber"),
    ("6.8", frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.9", frame(WINDOW_UPDATE, 0, 0, bytes(4)), PROTOCOL_ERROR, "WindowUpdate"),
    ("6.9", frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR, "FrameSize"),
    ("6.9.1", frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), FLOW_CONTROL_ERROR, "WindowOverflow"),
    (
        "6.9.2",
        headers(1, GET) + frame(WINDOW_UPDATE, 0, 1, b"\x7f\xff\0\0") + setting(0x4, 0x7FFFFFFF),
        FLOW_CONTROL_ERROR,
        "WindowOverflow",
    ),
    ("6.10", frame(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL_ERROR, "Continuation"),
    ("6.10", frame(HEADERS, 0, 1, BLOCK) + frame(PING, 0, 0, bytes(8)), PROTOCOL_ERROR, "HeadersInterrupted"),
    ("6.10", frame(HEADERS, 0, 1, BLOCK) + frame(0xFE), PROTOCOL_ERROR, "HeadersInterrupted"),
    ("6.10", frame(HEADERS, 0, 1, BLOCK) + frame(CONTINUATION, 0, 3), PROTOCOL_ERROR, "HeadersInterrupted"),
]


@pytest.mark.parametrize("row", CONNECTION_ERRORS, ids=lambda row: f"{row[0]} {row[3]}")
def test_connection_errors(row: tuple[str, bytes, int, str]) -> None:
    _, sent, code, reason = row
    for pieces in ([sent], [sent[at : at + 1] for at in range(len(sent))]):
        codec = server()
        events = [event for piece in pieces for event in codec.receive(piece)]
        failed = events[-1]
        assert isinstance(failed, Failed) and (failed.code, failed.reason) == (code, reason), events
        last = parse(codec.take())[-1]
        assert last.kind == GOAWAY and last.payload[4:8] == code.to_bytes(4)
        assert codec.failed and codec.receive(OPENING) == [] and codec.take() == b""


# section, what is sent on a new connection, code and reason with which the stream of the last frame is reset
STREAM_ERRORS = [
    ("5.1", headers(1, GET) + data(1), STREAM_CLOSED, "ClosedStream"),
    ("5.1", headers(1, GET) + headers(1, GET), STREAM_CLOSED, "ClosedStream"),
    ("5.3.1 of RFC 7540", headers(1, GET) + frame(PRIORITY, 0, 1, b"\0\0\0\1\0"), PROTOCOL_ERROR, "Priority"),
    (
        "5.3.1 of RFC 7540",
        frame(HEADERS, END_HEADERS | END_STREAM | PRIORITIZED, 1, b"\0\0\0\1\0" + BLOCK),
        PROTOCOL_ERROR,
        "Priority",
    ),
    ("6.9", headers(1, GET) + frame(WINDOW_UPDATE, 0, 1, bytes(4)), PROTOCOL_ERROR, "WindowUpdate"),
    ("6.9.1", headers(1, GET) + frame(WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff"), FLOW_CONTROL_ERROR, "WindowOverflow"),
    ("8.1", headers(1, POST, end=False) + headers(1, [(b"a", b"1")], end=False), PROTOCOL_ERROR, "Trailers"),
    ("8.1", headers(1, POST, end=False) + headers(1, GET), PROTOCOL_ERROR, "LatePseudoHeader"),
    (
        "8.1.1",
        headers(1, (*POST, (b"content-length", b"2")), end=False) + data(1, b"abc"),
        PROTOCOL_ERROR,
        "ContentLength",
    ),
    (
        "8.1.1",
        headers(1, (*POST, (b"content-length", b"2")), end=False) + data(1, b"a", True),
        PROTOCOL_ERROR,
        "ContentLength",
    ),
    (
        "8.1.1",
        headers(1, (*POST, (b"content-length", b"2")), end=False) + data(1, b"a") + headers(1, [(b"a", b"1")]),
        PROTOCOL_ERROR,
        "ContentLength",
    ),
    ("8.1.1", headers(1, (*POST, (b"content-length", b"1"))), PROTOCOL_ERROR, "ContentLength"),
]


@pytest.mark.parametrize("row", STREAM_ERRORS, ids=lambda row: f"{row[0]} {row[3]}")
def test_stream_errors(row: tuple[str, bytes, int, str]) -> None:
    _, sent, code, reason = row
    for pieces in ([sent], [sent[at : at + 1] for at in range(len(sent))]):
        codec = server()
        events = [event for piece in pieces for event in codec.receive(piece)]
        error = events[-1]
        assert isinstance(error, Reset | Refused) and error.reason == reason, events
        assert not isinstance(error, Reset) or (error.code == code and error.local and not error.unprocessed)
        assert parse(codec.take())[-1] == (RST_STREAM, 0, 1, code.to_bytes(4))
        assert not codec.failed and not codec.streams
        only(codec.receive(headers(3, GET)), Request)  # the connection goes on
        # and what was under way on the stream is ignored
        assert codec.receive(data(1, b"x") + headers(1, [(b"b", b"2")]) + frame(RST_STREAM, 0, 1, NUMBER)) == []


# what is sent, and what has no effect but for an answer
HARMLESS = [
    ("5.5", frame(0xFE, 0xFF, 1, b"anything"), b""),
    ("4.1", frame(PING, 0xFE, 0, b"12345678"), frames.ping(b"12345678", ACK)),
    ("5.1", headers(1, GET) + frame(PRIORITY, 0, 99, b"\0\0\0\1\0"), b""),
    ("6.5.2", setting(0xFE, 1), frames.SETTINGS_ACK),
    ("6.5.3", frames.SETTINGS_ACK, b""),
    ("6.7", frame(PING, 0, 0, b"12345678"), frames.ping(b"12345678", ACK)),
    ("6.9", frame(WINDOW_UPDATE, 0, 0, b"\x80\0\0\1"), b""),
]


@pytest.mark.parametrize("row", HARMLESS, ids=lambda row: row[0])
def test_harmless(row: tuple[str, bytes, bytes]) -> None:
    codec = server()
    events = codec.receive(row[1])
    assert not any(isinstance(event, Failed | Reset | Refused) for event in events)
    assert codec.take() == row[2]


def test_preface_of_a_client_is_magic_and_settings() -> None:
    codec = Connection(Settings(), False, Clock())
    sent = codec.take()
    assert sent.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    opening = parse(sent)[0]
    assert (opening.kind, opening.flags, opening.stream) == (SETTINGS, 0, 0)
    assert b"\0\x02\0\0\0\0" in opening.payload  # ENABLE_PUSH 0


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSN", b"\x16\x03\x01"])
def test_wrong_magic(sent: bytes) -> None:
    codec = Connection(Settings(), True, Clock())
    failed = only(codec.receive(sent), Failed)
    assert isinstance(failed, Failed) and failed.reason == "Preface"


@pytest.mark.parametrize("first", [headers(1, GET), frames.SETTINGS_ACK, frame(PING, 0, 0, bytes(8)), frame(0xFE)])
@pytest.mark.parametrize("is_server", [True, False])
def test_first_frame_has_to_be_settings(first: bytes, is_server: bool) -> None:
    codec = Connection(Settings(), is_server, Clock())
    failed = only(codec.receive((frames.PREFACE if is_server else b"") + first), Failed)
    assert isinstance(failed, Failed) and failed.reason == "NoSettings"


def test_settings_are_acknowledged_and_known() -> None:
    codec = server()
    events = codec.receive(frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x07\0\x04\0\0\0\x09\0\x05\0\0\x80\0\0\x06\0\0\x10\0"))
    assert [type(event) for event in events] == [SettingsChanged]
    peer = codec.peer
    assert (peer.max_streams, peer.initial_window, peer.frame_size, peer.max_header_size) == (7, 9, 32_768, 4096)
    assert codec.take() == frames.SETTINGS_ACK


def test_ours_are_acknowledged() -> None:
    codec = Connection(Settings(), True, Clock())
    events = codec.receive(frames.PREFACE + frame(SETTINGS) + frames.SETTINGS_ACK)
    assert [type(event) for event in events] == [SettingsChanged, SettingsAcknowledged]


def test_a_server_may_not_announce_push() -> None:
    codec = client()
    failed = only(codec.receive(setting(0x2, 1)), Failed)
    assert isinstance(failed, Failed) and failed.reason == "BadSetting"


def test_message_with_all_that_it_can_have() -> None:
    codec = server()
    head, first, second, trailers = codec.receive(
        headers(1, (*POST, (b"content-length", b"5")), end=False)
        + frame(DATA, PADDED, 1, b"\x03abc\0\0\0")
        + data(1, b"de")
        + headers(1, [(b"x-sum", b"1"), (b"content-length", b"5"), (b"x_request_id", b"2")])
    )
    assert isinstance(head, Request) and not head.end and head.head.length == 5
    assert isinstance(first, Content) and (first.data, first.end) == (b"abc", False)
    assert isinstance(second, Content) and (second.data, second.end) == (b"de", False)
    assert isinstance(trailers, Trailers) and trailers.block == b"\r\nx-sum: 1\r\n"


def test_content_is_handed_on_before_its_frame_is_whole() -> None:
    codec = server()
    codec.receive(headers(1, POST, end=False))
    sent = frame(DATA, END_STREAM | PADDED, 1, b"\x02hello\0\0")
    seen = [event for at in range(len(sent)) for event in codec.receive(sent[at : at + 1])]
    assert [event.data for event in seen if isinstance(event, Content)] == [b"h", b"e", b"l", b"l", b"o"]
    assert [event.end for event in seen if isinstance(event, Content)] == [False] * 4 + [True]
    only(codec.receive(headers(3, GET)), Request)


def test_unknown_frame_in_pieces() -> None:
    codec = server()
    sent = frame(0xFE, 0, 0, b"x" * 500) + headers(1, GET)
    seen = [event for at in range(0, len(sent), 7) for event in codec.receive(sent[at : at + 7])]
    only(seen, Request)


def test_reset_between_two_parts_of_a_frame() -> None:
    codec = server()
    sent = data(1, b"x" * 100)
    (event,) = codec.receive(headers(1, POST, end=False))
    assert isinstance(event, Request)
    only(codec.receive(sent[:50]), Content)
    codec.reset(event.stream, NO_ERROR)
    assert codec.receive(sent[50:]) == []
    only(codec.receive(headers(3, GET)), Request)


def test_end_in_a_frame_of_which_a_part_has_come() -> None:
    """Our own end, sent between the two parts, closes the stream only with the second."""
    codec = server()
    (event,) = codec.receive(headers(1, POST, end=False))
    assert isinstance(event, Request)
    sent = data(1, b"x" * 100, end=True)
    only(codec.receive(sent[:50]), Content)
    codec.send_response(event.stream, 200, b"\r\n", True)
    assert codec.streams
    content = only(codec.receive(sent[50:]), Content)
    assert isinstance(content, Content) and content.end and not codec.streams


def test_header_block_in_three_frames_with_priority_and_padding() -> None:
    codec = server()
    head = b"\x02\0\0\0\x03\x10" + BLOCK[:5] + b"\0\0"
    sent = frame(HEADERS, END_STREAM | PADDED | PRIORITIZED, 1, head)
    sent += frame(CONTINUATION, 0, 1, BLOCK[5:9]) + frame(CONTINUATION, END_HEADERS, 1, BLOCK[9:])
    request = only(codec.receive(sent), Request)
    assert isinstance(request, Request) and request.end and request.head.authority == b"a.example"


def test_frames_beyond_the_limit_of_a_turn_are_kept() -> None:
    codec = server()
    sent = b"".join([headers(number, GET) for number in (1, 3, 5, 7, 9)])
    assert len(codec.receive(sent, 2)) == 2 and codec.has_more
    assert len(codec.receive(b"", 2)) == 2 and codec.has_more
    assert len(codec.receive(b"", 2)) == 1 and not codec.has_more


def test_streams_above_the_limit_are_refused() -> None:
    codec = server(Settings(max_streams=2))
    events = codec.receive(b"".join([headers(number, GET) for number in (1, 3, 5)]))
    assert isinstance(events[2], Refused) and events[2].reason == "StreamLimit"
    assert parse(codec.take()) == [(RST_STREAM, 0, 5, REFUSED_STREAM.to_bytes(4))]
    assert isinstance(events[0], Request)
    codec.send_response(events[0].stream, 204, b"\r\n", True)
    only(codec.receive(headers(7, GET)), Request)


def test_frames_after_both_ends() -> None:
    for late in (data(1, b"x"), headers(1, GET)):
        codec = server()
        request = only(codec.receive(headers(1, GET)), Request)
        assert isinstance(request, Request)
        codec.send_response(request.stream, 204, b"\r\n", True)
        assert codec.receive(frame(WINDOW_UPDATE, 0, 1, NUMBER) + frame(PRIORITY, 0, 1, b"\0\0\0\3\0")) == []
        assert codec.receive(frame(RST_STREAM, 0, 1, NUMBER)) == []
        failed = only(codec.receive(late), Failed)
        assert isinstance(failed, Failed) and failed.code == STREAM_CLOSED


# the client's side


def test_interim_final_trailers() -> None:
    codec = client()
    stream = codec.send_request(b"POST", b"http", b"a.example", b"/", b"\r\n", True)
    events = codec.receive(
        headers(1, [(b":status", b"100")], end=False)
        + headers(1, [(b":status", b"103"), (b"link", b"</a>")], end=False)
        + headers(1, (*OK, (b"content-length", b"2")), end=False)
        + data(1, b"ab")
        + headers(1, [(b"grpc-status", b"0")])
    )
    assert [type(event) for event in events] == [Interim, Interim, Response, Content, Trailers]
    assert isinstance(events[1], Interim) and events[1].head.block == b"\r\nlink: </a>\r\n"
    assert stream.closed and not codec.streams


RESPONSES = [
    ("8.1", [(b":status", b"100")], True, "Interim"),
    ("8.6", [(b":status", b"101")], False, "Interim"),
    ("8.3.2", [(b":status", b"20")], True, "PseudoHeader"),
    ("8.3.2", [(b":status", b"600")], True, "PseudoHeader"),
    ("8.3.2", [(b":status", b"200"), (b":status", b"200")], True, "PseudoHeader"),
    ("8.3.2", [(b"a", b"b")], True, "PseudoHeader"),
    ("8.3", [(b":status", b"200"), (b":path", b"/")], True, "PseudoHeader"),
    ("8.2.2", [*OK, (b"connection", b"close")], True, "ConnectionHeader"),
    ("8.2.1", [*OK, (b"a", b"b\r\nc: d")], True, "FieldValue"),
    ("8.1.1", [*OK, (b"content-length", b"1")], True, "ContentLength"),
]


@pytest.mark.parametrize("row", RESPONSES, ids=lambda row: f"{row[0]} {row[3]}")
def test_malformed_responses(row: tuple[str, list[tuple[bytes, bytes]], bool, str]) -> None:
    codec = client()
    stream = codec.send_request(b"GET", b"http", b"a.example", b"/", b"\r\n", True)
    reset = only(codec.receive(headers(1, row[1], end=row[2])), Reset)
    assert isinstance(reset, Reset) and reset.stream is stream and reset.local and reset.reason == row[3]
    assert parse(codec.take())[-1] == (RST_STREAM, 0, 1, PROTOCOL_ERROR.to_bytes(4))


def test_content_before_the_head_of_a_response() -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a.example", b"/", b"\r\n", True)
    reset = only(codec.receive(data(1, b"x")), Reset)
    assert isinstance(reset, Reset) and reset.reason == "NoHead"


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", b"200"), (b"GET", b"304"), (b"GET", b"204")])
def test_lengths_that_announce_nothing(method: bytes, status: bytes) -> None:
    fields = [(b":status", status), (b"content-length", b"9")]
    codec = client()
    codec.send_request(method, b"http", b"a.example", b"/", b"\r\n", True)
    response = only(codec.receive(headers(1, fields)), Response)
    assert isinstance(response, Response) and response.head.length == 9
    codec.send_request(method, b"http", b"a.example", b"/", b"\r\n", True)
    events = codec.receive(headers(3, fields, end=False) + data(3, b"x"))
    assert isinstance(events[1], Reset) and events[1].reason == "ContentLength"


def test_pushes_and_streams_of_a_server_are_errors() -> None:
    for sent in (frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2"), headers(2, OK), headers(3, OK)):
        codec = client()
        codec.send_request(b"GET", b"http", b"a.example", b"/", b"\r\n", True)
        failed = only(codec.receive(sent), Failed)
        assert isinstance(failed, Failed) and failed.code == PROTOCOL_ERROR


def test_pings() -> None:
    codec = client()
    codec.ping(b"abcdefgh")
    assert parse(codec.take()) == [(PING, 0, 0, b"abcdefgh")]
    pong = only(codec.receive(frame(PING, ACK, 0, b"abcdefgh")), Pong)
    assert isinstance(pong, Pong) and pong.opaque == b"abcdefgh"


# the end of a connection (6.8)


def test_goaway_leaves_out_streams_that_may_be_sent_again() -> None:
    codec = client()
    streams = [codec.send_request(b"POST", b"http", b"a", b"/", b"\r\n", True) for _ in range(3)]
    codec.receive(headers(5, OK, end=False))  # the third has an answer already
    events = codec.receive(frame(GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0bye"))
    goaway, *resets = events
    assert isinstance(goaway, GoAway) and (goaway.last, goaway.code, goaway.debug) == (1, NO_ERROR, b"bye")
    seen = [(event.stream, event.unprocessed) for event in resets if isinstance(event, Reset)]
    assert seen == [(streams[1], True), (streams[2], False)]
    assert codec.can_open() == 0 and list(codec.streams) == [1]
    with pytest.raises(Misuse):
        codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    only(codec.receive(headers(1, OK)), Response)  # what was taken goes on
    assert not codec.streams


def test_refused_stream_may_be_sent_again() -> None:
    codec = client()
    codec.send_request(b"POST", b"http", b"a", b"/", b"\r\n", True)
    reset = only(codec.receive(frame(RST_STREAM, 0, 1, REFUSED_STREAM.to_bytes(4))), Reset)
    assert isinstance(reset, Reset) and reset.unprocessed and not reset.local


@pytest.mark.parametrize(
    ("code", "is_answered", "unprocessed"),
    [(REFUSED_STREAM, False, True), (REFUSED_STREAM, True, False), (NO_ERROR, False, False), (NO_ERROR, True, False)],
)
def test_what_a_peer_may_have_begun_is_not_sent_again(code: int, is_answered: bool, unprocessed: bool) -> None:
    codec = client()
    stream = codec.send_request(b"POST", b"http", b"a", b"/", b"\r\n", True)
    if is_answered:
        codec.receive(headers(1, OK, end=False))
    reset = only(codec.receive(frame(RST_STREAM, 0, 1, code.to_bytes(4))), Reset)
    assert isinstance(reset, Reset) and reset.stream is stream
    assert (reset.code, reset.unprocessed, reset.local, reset.reason) == (code, unprocessed, False, "")


def test_a_stream_that_goaway_left_out_has_no_reason_of_ours() -> None:
    codec = client()
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    _, reset = codec.receive(frame(GOAWAY, 0, 0, bytes(8)))
    assert isinstance(reset, Reset)
    assert (reset.code, reset.unprocessed, reset.local, reset.reason) == (REFUSED_STREAM, True, False, "")


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize(
    ("flags", "before", "behind"),
    [
        (0, b"", b""),
        (PADDED, b"\3", bytes(3)),
        (PRIORITIZED, b"\0\0\0\0\7", b""),
        (PADDED | PRIORITIZED, b"\3\0\0\0\0\7", bytes(3)),
    ],
)
def test_a_head_ends_its_stream_or_not_however_it_is_framed(
    flags: int, before: bytes, behind: bytes, pieces: int, end: bool
) -> None:
    codec, block = server(), literal(POST)
    cuts = [len(block) * number // pieces for number in range(pieces + 1)]
    parts = [block[a:b] for a, b in pairwise(cuts)]
    flags |= (END_STREAM if end else 0) | (END_HEADERS if pieces == 1 else 0)
    sent = frame(HEADERS, flags, 1, before + parts[0] + behind)
    for number, part in enumerate(parts[1:], 2):
        sent += frame(CONTINUATION, END_HEADERS if number == pieces else 0, 1, part)
    request = only(codec.receive(sent), Request)
    assert isinstance(request, Request) and (request.end, request.head.method) == (end, b"POST")
    if not end:
        content = only(codec.receive(data(1, b"x", end=True)), Content)
        assert isinstance(content, Content) and (content.data, content.end) == (b"x", True)


@pytest.mark.parametrize(
    ("path", "protocol", "secret"),
    [(b"/x", b"", {b":path"}), (b"/x", b"websocket", {b":path"}), (b"", b"", set())],
    ids=["a request", "an extended CONNECT", "a CONNECT"],
)
def test_of_what_a_request_is_for_no_table_has_its_path(path: bytes, protocol: bytes, secret: set[bytes]) -> None:
    """RFC 7541 6.2.3: it may have a secret in it, and an intermediary has to keep to it."""
    codec = client()
    codec.receive(frame(SETTINGS, 0, 0, b"\0\x08\0\0\0\1"))
    codec.take()
    method = b"GET" if path and not protocol else b"CONNECT"
    never = frozenset((b"x-a",))
    codec.send_request(method, b"http", b"a", path, b"\r\nx-a: 1\r\nx-b: 2\r\n", True, protocol, never)
    (head,) = [part for part in parse(codec.take()) if part.kind == HEADERS]
    fields = BlockDecoder(1 << 16).decode(head.payload)
    assert {name for name, _, is_secret in fields if is_secret} == secret | never
    assert (b":authority", b"a", False) in fields


def test_server_drains_in_two_steps() -> None:
    codec = server()
    first = only(codec.receive(headers(1, GET)), Request)
    assert isinstance(first, Request)
    codec.announce_drain()
    assert parse(codec.take()) == [(GOAWAY, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0")]
    second = only(codec.receive(headers(3, GET)), Request)  # it was under way
    assert isinstance(second, Request)
    codec.goaway(NO_ERROR)
    assert parse(codec.take()) == [(GOAWAY, 0, 0, b"\0\0\0\3\0\0\0\0")]
    assert codec.going_away
    assert codec.receive(headers(5, POST, end=False) + data(5, b"x" * 16_000) + data(5, b"", True)) == []
    updates = [part for part in parse(codec.take()) if part.kind != WINDOW_UPDATE]
    assert updates == []  # nobody answers
    for event in (first, second):
        codec.send_response(event.stream, 200, b"\r\n", True)
    assert not codec.streams and not codec.failed
    codec.goaway(NO_ERROR)
    codec.receive(frame(PING, 0, 1, bytes(8)))
    lasts = [part.payload[:4] for part in parse(codec.take()) if part.kind == GOAWAY]
    assert lasts == [b"\0\0\0\3"] * 2  # 6.8: the last stream never grows
    codec.announce_drain()
    assert codec.take() == b"", "what goes away already announces it no more"


def test_number_of_streams_that_may_be_opened() -> None:
    codec = client(Settings(max_local_streams=10))
    assert codec.can_open() == 10
    codec.receive(setting(0x3, 2))
    assert codec.can_open() == 2
    stream = codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    assert codec.can_open() == 1
    codec.reset(stream, NO_ERROR)
    assert codec.can_open() == 2
    codec.receive(setting(0x3, 0))
    assert codec.can_open() == 0


# what a carrier may not do, and what does nothing


def test_calls_out_of_order() -> None:
    codec = server()
    request = only(codec.receive(headers(1, GET)), Request)
    assert isinstance(request, Request)
    stream = request.stream
    for wrong in (
        lambda: codec.send_content(stream, b"x", False),
        lambda: codec.send_trailers(stream, b"\r\na: b\r\n"),
        lambda: codec.send_response(stream, 100, b"\r\n", False),
        lambda: codec.send_interim(stream, 101, b"\r\n"),
        lambda: codec.send_interim(stream, 200, b"\r\n"),
        lambda: codec.acknowledge(stream, 1),
    ):
        with pytest.raises(Misuse):
            wrong()
    codec.send_response(stream, 200, b"\r\n", False)
    with pytest.raises(Misuse):
        codec.send_response(stream, 200, b"\r\n", False)
    with pytest.raises(Misuse):
        codec.send_interim(stream, 100, b"\r\n")
    codec.send_content(stream, b"x", True)
    codec.send_content(stream, b"x", True)  # it is closed now: nothing
    assert sum(part.kind == DATA for part in parse(codec.take())) == 1


@pytest.mark.parametrize("window", [65_535, 1])
@pytest.mark.parametrize("part", [b"y", b"", b"y" * 70_000])
def test_what_has_ended_takes_no_more_while_the_other_end_goes_on(part: bytes, window: int) -> None:
    codec = server()
    request = only(codec.receive(setting(0x4, window) + headers(1, POST, end=False))[1:], Request)
    assert isinstance(request, Request)
    codec.send_response(request.stream, 200, b"\r\n", False)
    codec.send_content(request.stream, b"x", True)
    codec.take()
    with pytest.raises(Misuse):
        codec.send_content(request.stream, part, True)
    assert codec.take() == b""


def test_end_that_waits_is_an_end() -> None:
    codec = server()
    (event,) = codec.receive(setting(0x4, 0) + headers(1, POST, end=False))[1:]
    assert isinstance(event, Request)
    codec.send_response(event.stream, 200, b"\r\n", False)
    assert codec.send_content(event.stream, b"x", True) == 1
    with pytest.raises(Misuse):
        codec.send_content(event.stream, b"y", False)
    with pytest.raises(Misuse):
        codec.send_trailers(event.stream, b"\r\na: b\r\n")


def test_nothing_is_sent_on_a_closed_stream() -> None:
    codec = server()
    (request, reset) = codec.receive(headers(1, GET) + frame(RST_STREAM, 0, 1, NUMBER))
    assert isinstance(request, Request) and isinstance(reset, Reset) and not reset.local
    codec.send_interim(request.stream, 100, b"\r\n")
    codec.send_response(request.stream, 200, b"\r\n", False)
    assert codec.send_content(request.stream, b"x", False) == 0
    codec.send_trailers(request.stream, b"\r\na: b\r\n")
    codec.acknowledge(request.stream, 5)
    codec.reset(request.stream, NO_ERROR)
    assert codec.take() == b""


def test_extended_connect() -> None:
    """RFC 8441: both ends."""
    up, down = client(), server(Settings(connect_protocol=True))
    with pytest.raises(Misuse):
        up.send_request(b"CONNECT", b"http", b"a", b"/chat", b"\r\n", False, b"websocket")
    up.receive(setting(0x8, 1))
    stream = up.send_request(b"CONNECT", b"http", b"a", b"/chat", b"\r\n", False, b"websocket")
    request = only(down.receive(up.take()[9:]), Request)  # without the acknowledgement of the setting
    assert isinstance(request, Request)
    head = request.head
    assert (head.method, head.protocol, head.path, head.scheme) == (b"CONNECT", b"websocket", b"/chat", b"http")
    down.send_response(request.stream, 200, b"\r\n", False)
    down.send_content(request.stream, b"frame", False)
    events = up.receive(down.take())
    assert [type(event) for event in events] == [Response, Content] and not stream.closed


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (b"abc", b"\0\0\3\1\5\0\0\0\7abc"),
        (b"abcd", b"\0\0\4\1\5\0\0\0\7abcd"),
        (b"abcde", b"\0\0\4\1\1\0\0\0\7abcd\0\0\1\x09\4\0\0\0\7e"),
        (b"abcdefgh", b"\0\0\4\1\1\0\0\0\7abcd\0\0\4\x09\4\0\0\0\7efgh"),
        (b"abcdefghi", b"\0\0\4\1\1\0\0\0\7abcd\0\0\4\x09\0\0\0\0\7efgh\0\0\1\x09\4\0\0\0\7i"),
    ],
)
def test_a_block_in_frames_of_four_octets(block: bytes, sent: bytes) -> None:
    """RFC 9113 6.2, 6.10: the last frame alone has END_HEADERS (4), the first END_STREAM (1)."""
    assert frames.headers(7, block, True, 4) == sent
    assert frames.headers(7, b"", False, 4) == b"\0\0\0\1\4\0\0\0\7"
