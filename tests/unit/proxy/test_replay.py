"""What is kept of a body that is sent: all of it, in its order, for whoever waits for the whole."""

from __future__ import annotations

import pytest

from dataplane.http.body import BodyBuffer
from dataplane.link.pools import BodyMemory
from dataplane.proxy.attempt.replay import BodyCopy


class Mirror:
    def __init__(self) -> None:
        self.got: list[bytes | str] = []

    def send(self, body: bytes, trailers: bytes = b"") -> None:
        self.got.append(body + trailers)

    def skip(self, outcome: str) -> None:
        self.got.append(outcome)


@pytest.mark.parametrize("begin", [b"", b"be"])
def test_a_try_begins_with_what_earlier_ones_sent_and_keeps_what_is_new(begin: bytes) -> None:
    room, mirror = BodyMemory(100), Mirror()
    copy = BodyCopy(100, room, "192.0.2.1", waits=mirror)
    copy.sent(begin, False)
    assert copy.again(b"gin", False) == begin + b"gin"
    assert copy.again(b" end", True) == begin + b"gin end"
    assert mirror.got == [begin + b"gin end"] and room.used == len(begin) + 7
    copy.no_more_tries()
    copy.sent(b"more", True)
    assert room.used == 0 and len(mirror.got) == 1


def test_when_there_is_no_other_try_the_body_is_kept_for_who_waits() -> None:
    room, mirror = BodyMemory(100), Mirror()
    copy = BodyCopy(100, room, "192.0.2.1", waits=mirror)
    copy.sent(b"be", False)
    copy.no_more_tries()
    copy.sent(b"gin", True)
    assert mirror.got == [b"begin"]
    copy.drop(None)
    assert room.used == 0 and mirror.got == [b"begin"]


def test_a_length_that_is_announced_and_too_large_is_not_begun_with() -> None:
    mirror = Mirror()
    assert BodyCopy(4, BodyMemory(100), "192.0.2.1", 5, mirror).too_large and mirror.got == ["too_large"]
    assert not BodyCopy(0, BodyMemory(100), "192.0.2.1").too_large


def test_for_another_try_it_is_kept_although_nobody_waits_for_the_whole() -> None:
    copy = BodyCopy(4, BodyMemory(100), "192.0.2.1")
    copy.sent(b"ab", False)
    assert copy.again(b"cd", True) == b"abcd"
    copy.no_more_tries()
    assert copy.whole() == b""


def test_where_there_is_no_room_nothing_is_kept() -> None:
    room, mirror = BodyMemory(4), Mirror()
    copy = BodyCopy(10, room, "192.0.2.1", waits=mirror)
    copy.sent(b"abc", False)
    copy.sent(b"d", False)
    assert (copy.too_large, mirror.got, room.used) == (True, ["too_large"], 0)


@pytest.mark.parametrize(
    ("unsent", "sent", "is_whole", "got"),
    [
        (b"abcd", b"", True, b"abcd"),
        (b"abcde", b"", True, "aborted"),  # more than the limit
        (b"ab", b"", False, "aborted"),
        (b"cd", b"ab", True, "aborted"),  # a part of it was sent
        (None, b"", True, "aborted"),
    ],
)
def test_a_mirror_gets_a_body_that_no_endpoint_took_if_it_is_whole(
    unsent: bytes | None, sent: bytes, is_whole: bool, got: bytes | str
) -> None:
    mirror = Mirror()
    copy = BodyCopy(4, BodyMemory(100), "192.0.2.1", waits=mirror)
    if sent:
        copy.sent(sent, False)
    body = None
    if unsent is not None:
        body = BodyBuffer(lambda: None, lambda: None)
        body.push(unsent)
        body.complete = is_whole
    copy.drop(body)
    assert mirror.got == [got]
    copy.drop(body)
    assert mirror.got == [got]
