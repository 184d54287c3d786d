"""Server-sent events: any split of bytes gives the same events, and what is written means what was read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.http.sse import Aside, Event, EventReader, EventTooLarge, comment, retry, write, write_aside

BOM = b"\xef\xbb\xbf"

CASES: dict[str, tuple[bytes, list[Event]]] = {
    "one line": (b"data: a\n\n", [Event(b"a")]),
    "without a space": (b"data:a\n\n", [Event(b"a")]),
    "one space is taken": (b"data:  a\n\n", [Event(b" a")]),
    "lines are joined": (b"data: a\ndata:\ndata: b\n\n", [Event(b"a\n\nb")]),
    "a field without colon": (b"data\n\n", [Event(b"")]),
    "two without colon": (b"data\ndata\n\n", [Event(b"\n")]),
    "CR": (b"data: a\rdata: b\r\r", [Event(b"a\nb")]),
    "CR LF": (b"data: a\r\ndata: b\r\n\r\n", [Event(b"a\nb")]),
    "line ends mixed": (b"data: a\r\ndata: b\rdata: c\n\r\n", [Event(b"a\nb\nc")]),
    "LF CR is two": (b"data: a\n\rdata: b\n\n", [Event(b"a"), Event(b"b")]),
    "a byte order mark": (BOM + b"data: a\n\n", [Event(b"a")]),
    "a second mark": (BOM + BOM + b"data: a\n\ndata: b\n\n", [Event(b"b")]),
    "a mark later": (b"data: a\n\n" + BOM + b"data: b\n\n", [Event(b"a")]),
    "half a mark": (b"\xef\xbbdata: a\n\ndata: b\n\n", [Event(b"b")]),
    "comments": (b": hello\n:\ndata: a\n:data: b\n\n", [Event(b"a")]),
    "comments alone": (b": ping\n\n: ping\n\n", []),
    "a type": (b"event: add\ndata: 1\n\ndata: 2\n\n", [Event(b"1", b"add"), Event(b"2")]),
    "the last type counts": (b"event: a\nevent: b\ndata: 1\n\n", [Event(b"1", b"b")]),
    "a type without data": (b"event: a\n\ndata: 1\n\n", [Event(b"1")]),
    "an id": (b"id: 7\ndata: a\n\ndata: b\n\n", [Event(b"a", id=b"7"), Event(b"b")]),
    "an empty id resets": (b"id\ndata: a\n\n", [Event(b"a", id=b"")]),
    "an id with NUL": (b"id: 1\nid: a\0b\ndata: a\n\n", [Event(b"a", id=b"1")]),
    "an id without data": (b"id: 7\n\ndata: a\n\n", [Event(b"a", id=b"7")]),
    "retry": (b"retry: 100\ndata: a\n\n", [Event(b"a", retry=100)]),
    "retry without data": (b"retry: 100\n\ndata: a\n\n", [Event(b"a", retry=100)]),
    "retry is digits": (b"retry: 1s\nretry: -1\nretry: \nretry: +1\ndata: a\n\n", [Event(b"a")]),
    "retry of other digits": ("retry: \u0661\ndata: a\n\n".encode(), [Event(b"a")]),
    "retry of fifteen digits": (b"retry: 123456789012345\ndata: a\n\n", [Event(b"a", retry=123456789012345)]),
    "retry of sixteen digits": (b"retry: 1234567890123456\ndata: a\n\n", [Event(b"a")]),
    "retry beyond reason": (b"retry: 1" + b"0" * 5000 + b"\ndata: a\n\n", [Event(b"a")]),
    "unknown fields": (b"Data: a\nfoo: b\ndata : c\ndata: d\n\n", [Event(b"d")]),
    "colons in values": (b"data: a: b\n\n", [Event(b"a: b")]),
    "bytes that are no UTF-8": (b"data: \xff\0\n\n", [Event(b"\xff\0")]),
    "no end": (b"data: a\n\ndata: b\n", [Event(b"a")]),
    "nothing": (b"\n\r\n\r\r", []),
}


def read(pieces: list[bytes]) -> list[Event]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)]


def parts(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


@pytest.mark.parametrize(("stream", "events"), CASES.values(), ids=CASES)
def test_a_stream_means_its_events_however_it_comes(stream: bytes, events: list[Event]) -> None:
    assert read([stream]) == events
    assert read([stream[place : place + 1] for place in range(len(stream))]) == events
    for cut in range(min(len(stream), 60)):
        assert read([stream[:cut], b"", stream[cut:]]) == events


PIECES = st.sampled_from(
    [b"data", b"event", b"id", b"retry", b":", b" ", b"\r", b"\n", b"\r\n", b"\0", b"a", b"7", b"\xff", BOM, BOM[:2]]
)
STREAMS = st.lists(PIECES, max_size=60).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=12))
@example(b"data\r\n\r\n", [5])
def test_any_split_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    assert read(parts(stream, cuts)) == read([stream])


@given(STREAMS)
def test_what_is_written_means_what_was_read(stream: bytes) -> None:
    events = read([stream])
    assert read([write(event) for event in events]) == events


VALUE = st.binary(max_size=20).map(lambda value: value.translate(None, b"\r\n"))
EVENTS = st.builds(
    Event,
    st.binary(max_size=60),
    VALUE,
    st.none() | VALUE.map(lambda value: value.replace(b"\0", b"")),
    st.none() | st.integers(0, 10**14),
)


@given(st.lists(EVENTS, max_size=5), st.lists(st.integers(0, 1000), max_size=8))
@example([Event(b"a\r\nb\rc")], [])
def test_what_is_written_is_read_again(events: list[Event], cuts: list[int]) -> None:
    stream = b"".join(map(write, events))
    as_read = [event.data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") for event in events]
    assert [event.data for event in read(parts(stream, cuts))] == as_read
    assert [(e.type, e.id, e.retry) for e in read([stream])] == [(e.type, e.id, e.retry) for e in events]


@pytest.mark.parametrize(
    "event",
    [
        Event(b"", type=b"a\nb"),
        Event(b"", type=b"a\rdata: b"),
        Event(b"", id=b"a\nb"),
        Event(b"", id=b"\0"),
        Event(b"", retry=-1),
    ],
)
def test_what_no_stream_can_carry_is_not_written(event: Event) -> None:
    with pytest.raises(ValueError, match=r"line end|NUL|negative"):
        write(event)


def test_comments_and_retry_stand_alone() -> None:
    stream = comment(b"still here\r\ndata: no") + comment() + retry(5) + b"\n" + write(Event(b"a"))
    assert stream == b": still here\n: data: no\n: \nretry: 5\n\ndata: a\n\n"
    assert read([stream]) == [Event(b"a", retry=5)]


@pytest.mark.parametrize("endless", [b"data: aaaa\n", b"a", b"data\n", b"id: aaaaaaa", b":" + b"a" * 9])
def test_what_is_buffered_has_a_bound(endless: bytes) -> None:
    reader = EventReader(100)
    with pytest.raises(EventTooLarge):
        for _ in range(1000):
            reader.feed(endless)


@pytest.mark.parametrize("head", [b"data: a\n", b""])
def test_an_event_and_a_line_may_be_as_large_as_the_bound(head: bytes) -> None:
    """Of an event its data counts, with a line end for each line; of the line that is read, all of it."""
    before = [b"a"] if head else []
    most = b"data: " + b"b" * (94 - 2 * len(before))
    for pieces in ([head + most + b"\n\n"], [head, most, b"\n\n"], [head, most + b"\n", b"\n"]):
        reader = EventReader(100)
        found = [event for piece in pieces for event in reader.feed(piece)]
        assert found == [Event(b"\n".join([*before, most[6:]]))]
    for pieces in ([head + most + b"b\n"], [head, most + b"b"]):
        reader = EventReader(100)
        with pytest.raises(EventTooLarge, match="more than 100 bytes"):
            for piece in pieces:
                reader.feed(piece)


def test_what_is_not_buffered_has_none() -> None:
    reader = EventReader(100)
    for _ in range(1000):
        assert reader.feed(b": still here\nid: 1\n") == []
    for _ in range(1000):
        assert reader.feed(b"data: " + b"a" * 60 + b"\n\n") != []


def test_a_repr_has_no_data() -> None:
    reader = EventReader()
    (event,) = reader.feed(b"data: secret\n\ndata: secret\ndata: sec")
    assert "secret" not in repr(event) + repr(reader)


@pytest.mark.parametrize("cut", range(0, 80, 7))
def test_what_is_beside_events_is_given_where_it_is_wanted(cut: int) -> None:
    stream = b": one\n\n:\nid: 5\n\nretry: 7\n\ndata: a\n: within\nid: 6\ndata: b\n\nx: y\n\ndata: c\n\n"
    found = [
        *(Aside(b"one"), Aside(b""), Aside(None, b"5"), Aside(None, None, 7), Aside(b"within")),
        *(Event(b"a\nb", b"", b"6"), Event(b"c")),
    ]
    reader = EventReader()
    assert reader.feed_all(stream[:cut]) + reader.feed_all(stream[cut:]) == found
    assert EventReader().feed(stream) == [Event(b"a\nb", b"", b"6", 7), Event(b"c")]


def test_an_aside_is_written_as_it_was_read() -> None:
    asides: list[Event | Aside] = [Aside(b"ping"), Aside(b""), Aside(None, b"5", 7), Aside(None, b"")]
    written = b"".join(write_aside(each) for each in asides if isinstance(each, Aside))
    assert written == b": ping\n\n: \n\nid: 5\nretry: 7\n\nid: \n\n"
    assert EventReader().feed_all(written) == asides
    with pytest.raises(ValueError, match="NUL"):
        write_aside(Aside(None, b"\0"))
    assert "secret" not in repr(Aside(b"secret"))
