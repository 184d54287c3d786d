"""The header table: every rule of RFC 9113 8.1 to 8.3 as fields in, and a head or a reason out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h2 import rules
from dataplane.http.h2.errors import StreamFailure
from dataplane.http.h2.events import Content, OversizedRequest, Refused, Request, Reset, Trailers
from dataplane.http.h2.frames import END_HEADERS, END_STREAM, HEADERS, RST_STREAM
from dataplane.http.h2.settings import Settings
from dataplane.http.heads import Head
from tests.fakes.h2_wire import GET, POST, client, data, frame, headers, literal, only, parse, server

M, S, A, P = GET
CONNECT = ((b":method", b"CONNECT"), (b":authority", b"a.example:443"))
EXTENDED = ((b":method", b"CONNECT"), S, A, P, (b":protocol", b"websocket"))

REFUSED = [
    # 8.2: names
    ("FieldName", (*GET, (b"Accept", b"a"))),
    ("FieldName", (*GET, (b"a b", b"a"))),
    ("FieldName", (*GET, (b"a:", b"a"))),
    ("FieldName", (*GET, (b"a\r\nb", b"a"))),
    ("FieldName", (*GET, (b"", b"a"))),
    ("FieldName", (*GET, (b"a\x00", b"a"))),
    ("FieldName", (*GET, (b"caf\xe9", b"a"))),
    # 8.2.1: values
    ("FieldValue", (*GET, (b"a", b"b\r\nc: d"))),
    ("FieldValue", (*GET, (b"a", b"b\nc"))),
    ("FieldValue", (*GET, (b"a", b"b\rc"))),
    ("FieldValue", (*GET, (b"a", b"b\x00"))),
    ("FieldValue", (*GET, (b"a", b"b\x7f"))),
    ("FieldValue", (*GET, (b"a", b" b"))),
    ("FieldValue", (*GET, (b"a", b"b "))),
    ("FieldValue", (*GET, (b"a", b"\tb"))),
    ("FieldValue", (*GET, (b"a", b"b\t"))),
    ("FieldValue", (*GET, (b"a", b" "))),
    # 8.2.2: fields of one connection
    ("ConnectionHeader", (*GET, (b"connection", b"close"))),
    ("ConnectionHeader", (*GET, (b"proxy-connection", b"keep-alive"))),
    ("ConnectionHeader", (*GET, (b"keep-alive", b"timeout=5"))),
    ("ConnectionHeader", (*GET, (b"transfer-encoding", b"chunked"))),
    ("ConnectionHeader", (*GET, (b"upgrade", b"h2c"))),
    ("ConnectionHeader", (*GET, (b"te", b"gzip"))),
    ("ConnectionHeader", (*GET, (b"te", b"trailers, gzip"))),
    # 8.3: pseudo-headers
    ("PseudoHeader", (M, S, A)),
    ("PseudoHeader", (M, A, P)),
    ("PseudoHeader", (S, A, P)),
    ("PseudoHeader", (M, S, A, P, P)),
    ("PseudoHeader", (M, S, A, P, (b":status", b"200"))),
    ("PseudoHeader", (M, S, A, P, (b":other", b"x"))),
    ("LatePseudoHeader", (M, S, A, (b"a", b"b"), P)),
    ("PseudoHeader", ((b":method", b"G T"), S, A, P)),
    ("PseudoHeader", ((b":method", b"GET / HTTP/1.1\r\nx: y"), S, A, P)),
    ("PseudoHeader", ((b":method", b""), S, A, P)),
    ("PseudoHeader", (M, (b":scheme", b""), A, P)),
    ("PseudoHeader", (M, (b":scheme", b"http\r\n"), A, P)),
    ("PseudoHeader", (M, S, A, (b":path", b""))),
    ("PseudoHeader", (M, S, A, (b":path", b"a"))),
    ("PseudoHeader", (M, S, A, (b":path", b"*"))),
    ("PseudoHeader", (M, S, A, (b":path", b"/a b"))),
    ("PseudoHeader", (M, S, A, (b":path", b"/a\r\n"))),
    ("PseudoHeader", (M, S, A, (b":path", b"/a#b"))),
    ("PseudoHeader", (M, S, A, (b":path", b"/\x80"))),
    ("PseudoHeader", (M, S, A, (b":path", b"http://b.example/"))),
    # 8.3.1: who is meant
    ("Authority", (M, S, P)),
    ("Authority", (M, S, (b":authority", b""), P)),
    ("Authority", (M, S, (b":authority", b"user@a.example"), P)),
    ("Authority", (M, S, (b":authority", b"a.example/b"), P)),
    ("Authority", (M, S, (b":authority", b"a.example\r\nx: y"), P)),
    ("Authority", (*GET, (b"host", b"b.example"))),
    ("Authority", (*GET, (b"host", b""))),
    ("Authority", (*GET, (b"host", b"a.example"), (b"host", b"a.example"))),
    ("Authority", (M, S, P, (b"host", b"user@a.example"))),
    # 8.1.1, and RFC 9110 8.6
    ("ContentLength", (*POST, (b"content-length", b"1"), (b"content-length", b"1"))),
    ("ContentLength", (*POST, (b"content-length", b"1, 1"))),
    ("ContentLength", (*POST, (b"content-length", b"+1"))),
    ("ContentLength", (*POST, (b"content-length", b"-1"))),
    ("ContentLength", (*POST, (b"content-length", b""))),
    ("ContentLength", (*POST, (b"content-length", b"9" * 19))),
    # 8.5, and RFC 8441 4
    ("Connect", ((b":method", b"CONNECT"),)),
    ("Connect", (*CONNECT, S)),
    ("Connect", (*CONNECT, P)),
    ("Connect", (*GET, (b":protocol", b"websocket"))),
    ("Connect", (*EXTENDED[:4], (b":protocol", b"a b"))),
    ("PseudoHeader", (EXTENDED[0], A, P, EXTENDED[4])),
    ("Authority", (EXTENDED[0], S, P, EXTENDED[4])),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row[0]} {row[1][-1]}")
def test_malformed_requests(row: tuple[str, tuple[tuple[bytes, bytes], ...]]) -> None:
    reason, fields = row
    codec = server()
    refused = only(codec.receive(headers(1, fields, end=False)), Refused)
    assert isinstance(refused, Refused) and (refused.stream_id, refused.reason) == (1, reason)
    assert parse(codec.take()) == [(RST_STREAM, 0, 1, b"\0\0\0\x01")]
    only(codec.receive(headers(3, GET)), Request)


def test_every_reason_has_a_row() -> None:
    """The others are about frames: `test_h2_frames`."""
    assert {reason for reason, _ in REFUSED} == set(rules.REASONS) - {"Trailers", "Interim", "NoHead"}


def request(*fields: tuple[bytes, bytes]) -> Request:
    event = only(server().receive(headers(1, fields)), Request)
    assert isinstance(event, Request)
    return event


TAKEN = [
    # fields behind the pseudo-headers, block
    ((), b"\r\n"),
    (((b"accept", b"*/*"), (b"x-a", b"B C")), b"\r\naccept: */*\r\nx-a: B C\r\n"),
    (((b"a", b""),), b"\r\na: \r\n"),
    (((b"a", b"b: c"),), b"\r\na: b: c\r\n"),
    (((b"a", b"1"), (b"a", b"2")), b"\r\na: 1\r\na: 2\r\n"),
    (((b"a", b"caf\xc3\xa9 \t x"),), b"\r\na: caf\xc3\xa9 \t x\r\n"),
    (
        ((b"cookie", b"a=1"), (b"x", b"y"), (b"cookie", b"b=2"), (b"cookie", b"c")),
        b"\r\ncookie: a=1; b=2; c\r\nx: y\r\n",
    ),
    (((b"host", b"A.Example"), (b"x", b"y")), b"\r\nx: y\r\n"),
    (((b"te", b"trailers"), (b"expect", b"100-continue"), (b"x", b"y")), b"\r\nx: y\r\n"),
    (((b"content_length", b"5"), (b"transfer_encoding", b"chunked"), (b"http2-settings", b"x")), b"\r\n"),
]


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row[1].decode("latin-1").strip() or "nothing")
def test_blocks(row: tuple[tuple[tuple[bytes, bytes], ...], bytes]) -> None:
    head = request(*GET, *row[0]).head
    assert head.block == row[1] and head.low == row[1].lower()


def test_what_a_head_says_beside_its_block() -> None:
    head = request(*GET, (b"te", b"Trailers"), (b"expect", b"100-continue")).head
    assert head.takes_trailers and head.expect == b"100-continue" and head.length == -1
    head = request(M, S, P, (b"host", b"b.example:81")).head
    assert head.authority == b"b.example:81" and not head.takes_trailers and head.expect == b""
    assert request((b":method", b"OPTIONS"), S, A, (b":path", b"*")).head.path == b"*"
    assert request((b":method", b"brew"), S, A, P).head.method == b"brew"  # the carrier answers 501
    assert request(M, S, A, (b":path", b"/a?b=c//d")).head.path == b"/a?b=c//d"


def test_connect() -> None:
    head = request(*CONNECT).head
    assert (head.method, head.authority, head.path, head.scheme) == (b"CONNECT", b"a.example:443", b"", b"")
    head = request(*EXTENDED).head
    assert (head.method, head.path, head.protocol) == (b"CONNECT", b"/", b"websocket")
    refused = only(server(Settings(connect_protocol=False)).receive(headers(1, EXTENDED)), Refused)
    assert isinstance(refused, Refused) and refused.reason == "Connect"


def test_reprs_have_no_values() -> None:
    event = request(M, S, A, (b":path", b"/?token=secret"), (b"authorization", b"secret"))
    assert "secret" not in repr(event)


def test_trailers() -> None:
    def trailers(*fields: tuple[bytes, bytes]) -> list[object]:
        return server().receive(headers(1, POST, end=False) + headers(1, fields))[1:]  # type: ignore[return-value]

    (event,) = trailers((b"grpc-status", b"0"), (b"x", b"y"))
    assert isinstance(event, Trailers) and event.block == b"\r\ngrpc-status: 0\r\nx: y\r\n"
    (event,) = trailers((b"content-length", b"3"), (b"host", b"b"), (b"cookie", b"c"), (b"x_forwarded_for", b"d"))
    assert isinstance(event, Trailers) and event.block == b"\r\n"
    for reason, field in (
        ("LatePseudoHeader", (b":path", b"/")),
        ("FieldValue", (b"a", b"b\r\nc: d")),
        ("FieldName", (b"A", b"b")),
        ("ConnectionHeader", (b"connection", b"x")),
    ):
        (event,) = trailers((b"grpc-status", b"0"), field)
        assert isinstance(event, Reset) and event.reason == reason


# sizes (RFC 9113 6.5.2, 10.5.1)


def padded(size: int, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """GET with fields of exactly so many bytes as 6.5.2 counts."""
    fields = [*GET, *more]
    used = sum(len(name) + len(value) + 32 for name, value in fields)
    return [*fields, (b"x", b"y" * (size - used - 33))]


@pytest.mark.parametrize("crumbs", [(), ((b"cookie", b"a=1"), (b"cookie", b"b=2"))])
def test_size_of_a_head(crumbs: tuple[tuple[bytes, bytes], ...]) -> None:
    for size in (400, 16_384, 40_000):
        codec = server(Settings(max_header_size=size, frame_size=50_000))
        only(codec.receive(headers(1, padded(size, *crumbs))), Request)
        over = only(codec.receive(headers(3, padded(size + 1, *crumbs))), OversizedRequest)
        assert isinstance(over, OversizedRequest)
        codec.send_response(over.stream, 431, b"\r\n", True)
        assert list(codec.streams) == [1]
        only(codec.receive(headers(5, GET)), Request)


def test_number_of_lines() -> None:
    codec = server(Settings(max_headers=100, max_header_size=65_536))
    lines = [(b"x-%d" % number, b"1") for number in range(100)]
    only(codec.receive(headers(1, [*GET, *lines])), Request)
    only(codec.receive(headers(3, [*GET, *lines, (b"y", b"1")])), OversizedRequest)
    crumbs = [(b"cookie", b"c%d=1" % number) for number in range(200)]
    only(codec.receive(headers(5, [*GET, *lines[:99], *crumbs])), Request)


def test_content_of_an_oversized_request_is_given_back_unreported() -> None:
    codec = server(Settings(stream_window=65_536, connection_window=65_536))
    codec.receive(headers(1, padded(16_385), end=False))
    for _ in range(20):
        assert codec.receive(data(1, b"x" * 16_000)) == []
    assert codec.receive(headers(1, [(b"a", b"b")])) == []
    only(codec.receive(headers(3, GET)), Request)


def test_oversized_responses_and_trailers_reset_their_stream() -> None:
    codec = client(Settings(max_header_size=1000))
    codec.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    reset = only(codec.receive(headers(1, [(b":status", b"200"), (b"a", b"b" * 1000)])), Reset)
    assert isinstance(reset, Reset) and reset.reason == "HeadersTooLarge"
    down = server(Settings(max_header_size=1000))
    down.receive(headers(1, POST, end=False))
    reset = only(down.receive(headers(1, [(b"a", b"b" * 1000)])), Reset)
    assert isinstance(reset, Reset) and reset.reason == "HeadersTooLarge"


# blocks that are remembered


def request_of(block: bytes, number: int) -> bytes:
    return frame(HEADERS, END_HEADERS | END_STREAM, number, literal(GET) + block)


def test_the_same_octets_mean_something_else_when_the_table_has_changed() -> None:
    codec, number, seen = server(), 1, []
    for block in (b"\x40\x01a\x011", b"\xbe", b"\xbe", b"\x40\x01a\x012", b"\xbe", b"\xbf"):
        event = only(codec.receive(request_of(block, number)), Request)
        assert isinstance(event, Request)
        seen.append(event.head.block)
        number += 2
    assert seen == [b"\r\na: %d\r\n" % value for value in (1, 1, 1, 2, 2, 1)]


def test_a_block_that_changes_the_table_changes_it_each_time() -> None:
    codec = server()
    for number in (1, 3):
        codec.receive(request_of(b"\x40\x01a\x011", number))
    event = only(codec.receive(request_of(b"\xbf", 5)), Request)  # the second entry is there
    assert isinstance(event, Request) and event.head.block == b"\r\na: 1\r\n"


# against a naive reading


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"a", b"x-b", b"cookie", b"te", b"host", b"A", b"", b":path", b"content-length", b"a:"]),
            st.sampled_from([b"", b"1", b"a b", b" a", b"a\n", b"trailers", b"a\r\nb: c", b"\x00", b"a.example"]),
        ),
        max_size=5,
    )
)
def test_a_block_reads_back_as_its_fields(fields: list[tuple[bytes, bytes]]) -> None:
    try:
        made = rules.regular([(name, value, False) for name, value in fields], True)
    except StreamFailure as failure:
        assert failure.reason in rules.REASONS
        return
    kept = [pair for pair in fields if pair[0] not in (b"te", b"host", b"cookie")]
    assert [pair for pair in Head(made.block).items() if pair[0] != b"cookie"] == kept
    crumbs = [value for name, value in fields if name == b"cookie"]
    assert Head(made.block).get(b"cookie") == (b"; ".join(crumbs).strip() if crumbs else None)
    assert re.fullmatch(rb"\r\n(?:[a-z-]+: [^\r\n\x00]*\r\n)*", made.block)
    assert made.low == made.block.lower()


def test_content_event_is_reported_for_a_plain_request() -> None:
    events = server().receive(headers(1, POST, end=False) + data(1, b"x", True))
    assert [type(event) for event in events] == [Request, Content]
