"""Messages of WebSockets, held against `websockets`: whatever its frames are cut into, the same is read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from dataplane.http import websocket
from dataplane.http.websocket import BINARY, CLOSE, PING, TEXT, Broken, Message, Reader

MOST = 200_000
payloads = st.binary(max_size=300) | st.integers(0, MOST).map(lambda size: b"x" * size)
messages = st.lists(st.tuples(st.sampled_from((TEXT, BINARY)), st.lists(payloads, min_size=1, max_size=4)), max_size=4)


def written(kind: int, parts: list[bytes], is_client: bool, ping: bool) -> bytes:
    """One message in as many frames, with a ping before the last."""
    found = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if ping and is_last:
            found.append(Frame(Opcode.PING, b"p").serialize(mask=is_client))
        opcode = Opcode(kind) if number == 0 else Opcode.CONT
        found.append(Frame(opcode, part, fin=is_last).serialize(mask=is_client))
    return b"".join(found)


@given(messages, st.booleans(), st.booleans(), st.sets(st.integers(0, 4 * MOST), max_size=20))
def test_messages_are_read_whatever_they_are_cut_into(
    said: list[tuple[int, list[bytes]]], is_client: bool, ping: bool, places: set[int]
) -> None:
    said = [(kind, parts) for kind, parts in said if sum(map(len, parts)) <= MOST]
    sent = b"".join(written(kind, parts, is_client, ping) for kind, parts in said)
    cuts = {place % (len(sent) + 1) for place in places}
    reader, got = Reader(is_client, MOST), []
    for begin, end in pairwise(sorted({0, *cuts, len(sent)})):
        got += [message for message in reader.feed(sent[begin:end]) if message is not None]
    expected = []
    for kind, parts in said:
        expected += [Message(PING, b"p")] * ping + [Message(kind, b"".join(parts))]
    assert got == expected
    assert reader.held == 0


def test_a_ping_between_the_parts_of_the_largest_message_is_no_part_of_it() -> None:
    got = Reader(True, MOST).feed(written(TEXT, [b"x" * MOST, b""], True, True))
    assert [each for each in got if each is not None] == [Message(PING, b"p"), Message(TEXT, b"x" * MOST)]


@given(payloads, st.booleans())
def test_what_is_written_is_read(content: bytes, is_client: bool) -> None:
    (found,) = Reader(is_client, MOST).feed(websocket.frame(TEXT, content, is_client))
    assert found == Message(TEXT, content)


def test_a_reason_for_closing_is_cut_between_characters() -> None:
    (found,) = Reader(False, MOST).feed(websocket.close(1008, "ü" * 100, False))
    assert found is not None and found.kind == CLOSE and len(found.data) <= 125
    assert found.data[2:].decode() == "ü" * 61


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x89\x7e\x00\x7e" + b"x" * 126, 1002),  # a ping of 126 bytes
        (b"\x81\x7e\x00\x01x", 1002),  # more bytes of length than are needed
        (b"\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01x", 1002),
        (b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1009),
        (b"\x01\x02ab" + b"\x80\x7f\x00\x00\x00\x00\x00\x03\x0d\x3f", 1009),  # its parts are too many together
        (b"\x81\x82\0\0\0\0ab", 1002),  # masked, by a server
    ],
)
def test_what_breaks_the_protocol(sent: bytes, code: int) -> None:
    with pytest.raises(Broken) as broken:
        list(Reader(False, MOST).feed(sent))
    assert broken.value.code == code


def test_empty_parts_take_no_room() -> None:
    reader = Reader(False, 10)
    assert list(reader.feed(b"\x01\x00" + b"\x00\x00" * 10_000)) == [None] * 10_001
    assert reader.held == 0
    assert list(reader.feed(b"\x80\x01x")) == [Message(TEXT, b"x")]
