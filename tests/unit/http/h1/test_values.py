"""A head that differs from a known one in values alone: what is said of it unread is what reading would say."""

from __future__ import annotations

from dataclasses import fields
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.http.h1 import request_head, response_head
from dataplane.http.h1 import values as h1_values
from dataplane.http.h1.request_head import RequestHead
from dataplane.http.h1.request_line import UNNAMED
from dataplane.http.h1.response_head import H1ResponseHead
from dataplane.http.messages import Peer

PEER = Peer("192.0.2.1", local=b"192.0.2.9:8080")

_PLAIN = (b"Accept", b"x-one", b"X-Request-Id", b"Cookie", b"authorization", b"Date", b"traceparent")
_MEANS = (b"Host", b"Connection", b"Content-Length", b"content-length", b"Transfer-Encoding", b"Upgrade", b"Expect")
_MEANS += (b"TE", b"X-Forwarded-For", b"x_forwarded_for", b"Content_Length", b"x_request_id", b"Keep-Alive")
_VALUES = (
    b"",
    b"a",
    b"a.example",
    b"5",
    b"0",
    b"17",
    b" 5 ",
    b"5\t",
    b"05",
    b"close",
    b"keep-alive",
    b"x-one",
    b"upgrade",
)
_VALUES += (
    b"chunked",
    b"websocket",
    b"100-continue",
    b"\xe4\xfc",
    b"\xa0",
    b"a\tb",
    b"a\x00b",
    b"a\nb",
    b"a\rb",
    b"a: b",
)
_VALUES += (b"9" * 18, b"9" * 19, b"5, 5", b"+5", b"0x5", b"\xb2", b"\x7f", b"a\nContent-Length: 5")

names = st.sampled_from(_PLAIN + _MEANS)
values = st.sampled_from(_VALUES) | st.binary(max_size=4)
lines = st.tuples(names, st.sampled_from((b":", b": ", b":\t", b" :", b"")), values).map(b"".join)
heads = st.lists(lines, max_size=6)


@st.composite
def successions(draw: st.DrawFn) -> list[list[bytes]]:
    """Heads of one connection: each is the last one with some lines changed, most of them in their value alone."""
    head = draw(heads)
    found = [head]
    for _ in range(draw(st.integers(1, 6))):
        head = list(head)
        for place in draw(st.sets(st.integers(0, max(0, len(head) - 1)), max_size=3)) if head else ():
            name, colon, _ = head[place].partition(b":")
            head[place] = name + colon + draw(values) if draw(st.integers(0, 4)) else draw(lines)
        if not draw(st.integers(0, 5)):
            head.insert(draw(st.integers(0, len(head))), draw(lines))
        found.append(head)
    return found


def _block(head: list[bytes]) -> bytes:
    return b"\r\n" + b"".join(line + b"\r\n" for line in (b"Host: a.example", *head))


def _same_request(one: RequestHead, other: RequestHead) -> bool:
    ours, theirs = one.meaning, other.meaning
    said = [name.name for name in fields(ours) if name.name != "like"]
    return (one.block, one.headers, one.low) == (other.block, other.headers, other.low) and all(
        getattr(ours, name) == getattr(theirs, name) for name in said
    )


soon = st.sampled_from((1, 1000))
"""After how many heads an expression takes the place of the pieces: at once, or never."""


@given(successions(), soon)
@example(
    [
        [b"Content-Length: 0", b"Upgrade: x", b"Connection: upgrade"],
        [b"Content-Length: 5", b"Upgrade: x", b"Connection: upgrade"],
    ],
    1,
)
@example([[b"Connection: x-one", b"x-one: 1", b"Accept: a"], [b"Connection: x-one", b"x-one: 2", b"Accept: b"]], 1)
@example(
    [[b"Accept: a", b"Content-Length: 1"], [b"Accept: a", b"Content-Length: 22"], [b"Accept: b", b"Content-Length: 3"]],
    1,
)
@example([[b"x-one: %d" % value, b"Content-Length: %d" % value] for value in range(7)], 1)
@example([[b"x-one: 1", b"Accept: " + value] for value in (b"1", b"2", b"", b"\xe4", b"\xa0", b"\xad", b"\x7f")], 1)
def test_a_request_head_that_is_not_read_says_what_reading_it_would_say(
    succession: list[list[bytes]], worth: int
) -> None:
    with patch.object(h1_values, "WORTH", worth):
        _read_and_compare(succession)


def _read_and_compare(succession: list[list[bytes]]) -> None:
    known: RequestHead | None = None
    for head in succession:
        block = _block(head)
        read = request_head.read(b"POST / HTTP/1.1", block, b"HTTP/1.1", UNNAMED, PEER, 100)
        again = request_head.again(known, block) if known is not None else None
        if again is not None:
            assert isinstance(read, RequestHead), f"{block!r} is {read}"
            assert _same_request(again, read), (again, read)
        known = again or (read if isinstance(read, RequestHead) else known)


_STATUS_LINES = (b"HTTP/1.1 200 OK", b"HTTP/1.1 200", b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 x")
_STATUS_LINES += (b"HTTP/1.1 101 x", b"HTTP/1.1 103 Early", b"HTTP/1.1 200 a: b", b"HTTP/1.1 200 a: c")


@given(
    successions(), st.lists(st.sampled_from(_STATUS_LINES), min_size=7, max_size=7), st.booleans(), st.booleans(), soon
)
@example([[], []], [b"HTTP/1.1 200 a: b", b"HTTP/1.1 200 a: c", b"", b"", b"", b"", b""], False, True, 1)
@example([[b"Content-Length: 5"], [b"Content-Length: 7"]], [b"HTTP/1.1 200 OK"] * 7, True, False, 1)
@example([[b"Content-Length: 5"], [b"Content-Length: 7"]], [b"HTTP/1.1 304 x"] * 7, False, False, 1)
def test_a_response_head_that_is_not_read_says_what_reading_it_would_say(
    succession: list[list[bytes]], status_lines: list[bytes], to_head: bool, mixed: bool, worth: int
) -> None:
    with patch.object(h1_values, "WORTH", worth):
        _read_and_compare_responses(succession, status_lines, to_head, mixed)


def _read_and_compare_responses(
    succession: list[list[bytes]], status_lines: list[bytes], to_head: bool, mixed: bool
) -> None:
    known: H1ResponseHead | None = None
    for place, head in enumerate(succession):
        raw = b"".join(line + b"\r\n" for line in (status_lines[place if mixed else 0], *head))
        read = response_head.read(raw, to_head)
        again = response_head.again(known, raw) if known is not None else None
        if again is not None:
            assert isinstance(read, H1ResponseHead), f"{raw!r} is {read}"
            assert again.low in (None, read.low)
            said = [name.name for name in fields(read) if name.name not in ("like", "low")]
            assert [getattr(again, name) for name in said] == [getattr(read, name) for name in said]
        known = again or (read if isinstance(read, H1ResponseHead) else known)


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ((b"x-one: 1",), (b"x-one: 2",), True),
        ((b"x-one: 1", b"Accept: a"), (b"x-one: longer", b"Accept: "), True),
        ((b"X-Request-Id: 1",), (b"X-Request-Id: 2",), True),
        ((b"Content-Length: 5",), (b"Content-Length: 123",), True),
        ((b"Connection: keep-alive", b"x-one: 1"), (b"Connection: keep-alive", b"x-one: 2"), True),
        ((b"x-one: 1",), (b"X-One: 2",), False),
        ((b"x-one: 1",), (b"x-two: 1",), False),
        ((b"x-one: 1",), (b"x-one: 1", b"x-one: 1"), False),
        ((b"x-one: 1",), (b"x-one: \xa0",), False),
        ((b"x-one: 1",), (b"x-one: a\nb",), False),
        ((b"Connection: close",), (b"Connection: keep-alive",), False),
        ((b"X-Forwarded-For: 1.1.1.1",), (b"X-Forwarded-For: 2.2.2.2",), False),
        ((b"Content-Length: 5",), (b"Content-Length: 5, 5",), False),
        ((b"Content-Length: 5",), (b"Content-Length: -1",), False),
    ],
)
def test_what_need_not_be_read(first: tuple[bytes, ...], second: tuple[bytes, ...], alike: bool) -> None:
    known = request_head.read(b"POST / HTTP/1.1", _block(list(first)), b"HTTP/1.1", UNNAMED, PEER, 100)
    assert isinstance(known, RequestHead)
    once = request_head.again(known, _block(list(second)))
    assert (once is not None) is alike
    if once is not None:  # it has learned what changes
        third = request_head.again(once, _block(list(first)))
        assert third is not None
        assert _same_request(third, known)


@pytest.mark.parametrize(
    "second",
    [
        (b"X-Forwarded-For: 2.2.2.2", b"x-one: 1"),
        (b"X-Forwarded-For: 1.1.1.1",),
        (b"X-Forwarded-For: 1.1.1.1", b"y: 1"),
    ],
)
def test_nothing_is_learned_of_heads_that_have_to_be_read_anyway(second: tuple[bytes, ...]) -> None:
    """As they come over a connection that many clients share: learning costs more than reading."""
    block = _block([b"X-Forwarded-For: 1.1.1.1", b"x-one: 1"])
    known = request_head.read(b"GET / HTTP/1.1", block, b"HTTP/1.1", UNNAMED, PEER, 100)
    assert isinstance(known, RequestHead)
    assert request_head.again(known, _block(list(second))) is None
    assert known.meaning.like is None


@pytest.mark.parametrize(
    ("value", "length"),
    [(b"v", b"7"), (b"", b" 7 "), (b"\xff", b"7"), (b"a\tb", b"7"), (b"\xad", b"7"), (b"v", b"+7"), (b"v", b"9" * 19)],
)
def test_after_some_heads_one_expression_says_what_the_pieces_said(value: bytes, length: bytes) -> None:
    known = request_head.read(b"POST / HTTP/1.1", _block(_sized(b"0", b"1")), b"HTTP/1.1", UNNAMED, PEER, 100)
    assert isinstance(known, RequestHead)
    block = _block(_sized(value, length))
    by_pieces = request_head.again(known, block)
    for number in range(2 * h1_values.WORTH):
        again = request_head.again(known, _block(_sized(b"%d" % number, b"%d" % number)))
        assert again is not None
        assert again.meaning.framing.length == number
        known = again
    like = known.meaning.like
    assert like is not None
    assert like._rest is not None
    by_expression = request_head.again(known, block)
    assert (by_expression is None) == (by_pieces is None)
    if by_expression is not None and by_pieces is not None:
        assert _same_request(by_expression, by_pieces)


def _sized(value: bytes, length: bytes) -> list[bytes]:
    return [b"x-one: " + value, b"Accept: a", b"Content-Length:" + length]


def test_pieces_that_are_long_are_compared_one_by_one() -> None:
    """What an expression costs to make grows with its text."""
    heads = [[b"x-one: %d" % number, b"x-long: " + b"a" * 600] for number in range(3 * h1_values.WORTH)]
    known = request_head.read(b"GET / HTTP/1.1", _block(heads[0]), b"HTTP/1.1", UNNAMED, PEER, 100)
    for head in heads[1:]:
        assert isinstance(known, RequestHead)
        known = request_head.again(known, _block(head))
    assert isinstance(known, RequestHead)
    like = known.meaning.like
    assert like is not None
    assert like._rest is None
