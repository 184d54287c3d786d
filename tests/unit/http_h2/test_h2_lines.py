"""Blocks as fields for the encoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h2.events import Request, Response
from dataplane.http.h2.lines import (
    LONGEST_LINE,
    MOST_LINES,
    BadLine,
    Lines,
    fields_of,
    last_field,
    request_fields_of,
)
from dataplane.http.h2.rules import regular
from tests.fakes.h2_wire import GET, client, headers, only, parse, server


def test_names_are_lower_case_and_hop_by_hop_fields_stay_here() -> None:
    block = (
        b"\r\nContent-Type: text/HTML\r\nConnection: close\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n"
        b"Upgrade: h2c\r\nProxy-Connection: x\r\nTE: gzip\r\nX-Empty:\r\nX-A:  b \r\n"
    )
    assert fields_of(block) == [(b"content-type", b"text/HTML", False), (b"x-empty", b"", False), (b"x-a", b"b", False)]
    assert fields_of(b"\r\nte: trailers\r\n") == [(b"te", b"trailers", False)]
    assert fields_of(b"\r\n") == []


def test_credentials_and_values_that_are_new_each_time_enter_no_table() -> None:
    block = b"\r\nauthorization: Bearer x\r\nset-cookie: a=b\r\nx-request-id: 1\r\nserver: x\r\n"
    assert [secret for _, _, secret in fields_of(block)] == [True, True, True, False]


def test_fields_that_came_never_indexed_leave_so() -> None:
    down = server()
    (request,) = down.receive(headers(1, GET))
    assert isinstance(request, Request)
    down.send_response(request.stream, 200, b"\r\nx-a: 1\r\nx-b: 2\r\n", True, frozenset((b"x-b",)))
    up = client()
    up.send_request(b"GET", b"http", b"a", b"/", b"\r\n", True)
    response = only(up.receive(down.take()), Response)
    assert isinstance(response, Response) and response.head.never_indexed == {b"x-b"}


def test_host_is_no_field_of_a_request() -> None:
    block = b"\r\nHost: a.example\r\nx-a: 1\r\n"
    assert request_fields_of(block) == [(b"x-a", b"1", False)]
    assert request_fields_of(block + b"x-b: %b\r\n" % (b"y" * 3000))[0] == (b"x-a", b"1", False)


@pytest.mark.parametrize("line", [b"no colon", b"a b: c", b": c", b"a: b\x00", b"a: b\nc: d", b"a: \x7f"])
def test_bad_lines(line: bytes) -> None:
    block = b"\r\nx: y\r\n%b\r\n" % line
    with pytest.raises(BadLine):
        fields_of(block)
    codec = server()
    (request,) = codec.receive(headers(1, GET))
    assert isinstance(request, Request)
    with pytest.raises(BadLine):
        codec.send_response(request.stream, 200, block, True)
    assert codec.take() == b""
    codec.send_response(request.stream, 502, b"\r\n", True)  # the stream is as it was
    assert len(parse(codec.take())) == 1


FIELDS = st.lists(
    st.tuples(
        st.from_regex(rb"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(lambda name: name not in (b"te", b"upgrade")),
        st.from_regex(
            rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]{0,20}[\x21-\x7e\x80-\xff])?)?", fullmatch=True
        ),
    ),
    max_size=8,
)


@given(FIELDS)
def test_what_is_made_of_fields_is_made_into_the_same(fields: list[tuple[bytes, bytes]]) -> None:
    block = regular([(name, value, False) for name, value in fields], False).block
    assert [field[:2] for field in fields_of(block)] == fields


@pytest.mark.parametrize("line", [b"x-request-id: 1-a", b"x-request-id: a_b"])
def test_the_id_of_a_request_enters_no_table(line: bytes) -> None:
    assert last_field(line) == (b"x-request-id", line[14:], True)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"X-A:  1 ", (b"x-a", b"1", False)),
        (b"host: a", None),
        (b"connection: close", None),
        (b"x-request-id: ", (b"x-request-id", b"", True)),
    ],
)
def test_the_last_line_is_read_as_any_other(line: bytes, field: object) -> None:
    assert last_field(line) == field


def test_lines_that_are_remembered_are_bounded() -> None:
    """By their number, and none that is long."""
    known = Lines()
    for number in range(MOST_LINES):
        assert known[b"a: %d" % number] == (b"a", b"%d" % number, False)
    assert len(known) == MOST_LINES
    assert known[b"b: 1"] == (b"b", b"1", False) and list(known) == [b"b: 1"]
    for more, kept in ((0, True), (1, False)):
        line = b"c: ".ljust(LONGEST_LINE + more, b"x")
        assert known[line] == (b"c", line[3:], False) and (line in known) is kept
