"""The link's codec: what one end says the other hears, in any pieces; nonsense is a LinkError and nothing else."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.link import codec, messages
from dataplane.link.codec import Decoder, LinkError, encode
from dataplane.link.messages import ENDPOINT, RESOURCE, Changes, Message, Record

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)
numbers = st.integers(0, 2**53)
records = st.builds(Record, st.sampled_from((RESOURCE, ENDPOINT)), texts, st.none() | st.binary(max_size=300))
seconds = st.floats(0, 1e6)
binds = st.builds(
    messages.WantedBind,
    texts,
    st.integers(0, 65535),
    st.lists(texts, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
)
troubles = st.builds(messages.Trouble, texts, texts, numbers, seconds, texts, texts, numbers, seconds)
any_message: st.SearchStrategy[Message] = st.one_of(
    st.builds(messages.Hello, numbers, st.dictionaries(texts, texts | numbers, max_size=3)),
    st.builds(Changes, st.lists(records, max_size=5).map(tuple)),
    st.builds(messages.StateEnd, numbers),
    st.builds(messages.Common),
    st.builds(messages.Commit, numbers),
    st.builds(messages.OpenBind, texts),
    st.builds(messages.CloseBind, texts),
    st.builds(messages.Drain, seconds, seconds),
    st.builds(messages.Ping, numbers),
    st.builds(messages.DumpRequest, numbers),
    st.builds(messages.LogLevel, texts, st.dictionaries(texts, texts, max_size=3)),
    st.builds(messages.Prepared, numbers, st.dictionaries(texts, texts), st.lists(binds, max_size=3).map(tuple)),
    st.builds(messages.BindOpened, texts),
    st.builds(messages.BindClosed, texts),
    st.builds(messages.Pong, numbers),
    st.builds(messages.DumpAnswer, numbers, st.dictionaries(texts, texts, max_size=3)),
    st.builds(messages.Troubles, st.lists(troubles, max_size=3).map(tuple)),
)


@given(st.lists(any_message, max_size=6), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_what_was_said_is_heard_in_any_pieces(said: list[Message], cuts: list[int]) -> None:
    data = b"".join(map(encode, said))
    decoder, heard, at, turn = Decoder(), [], 0, 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        heard += decoder.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert heard == said


@given(st.binary(max_size=200))
def test_nonsense_is_a_link_error_and_nothing_else(data: bytes) -> None:
    try:
        Decoder().feed(struct.pack("!I", len(data)) + data)
    except LinkError:
        return
    # What was taken has to be something that can be said.
    for message in Decoder().feed(struct.pack("!I", len(data)) + data):
        assert Decoder().feed(encode(message)) == [message]


@given(any_message, st.data())
def test_a_damaged_message_is_read_or_refused(message: Message, data: st.DataObject) -> None:
    frame = bytearray(encode(message))
    frame[data.draw(st.integers(4, len(frame) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        Decoder().feed(bytes(frame))
    except LinkError as error:
        assert str(error)


@pytest.mark.parametrize("length", [0, codec.MAX_FRAME + 1, 2**32 - 1])
def test_an_impossible_length_is_refused_before_anything_is_kept(length: int) -> None:
    with pytest.raises(LinkError, match="frame of"):
        Decoder().feed(struct.pack("!I", length))


def test_the_longest_frame_is_waited_for() -> None:
    assert Decoder().feed(struct.pack("!I", codec.MAX_FRAME)) == []


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\xff{}", "unknown message type 255"),
        (b"\x03not json", "StateEnd cannot be read: "),
        (b"\x03[]", "StateEnd cannot be read: not an object"),
        (b'\x03{"number":"1"}', "number is str"),
        (b'\x03{"number":true}', "number is bool"),
        (b'\x03{"number":1,"more":2}', "more"),
        (b"\x03{}", "number"),
        (b'\x19{"number":1,"refused":[1],"binds":[]}', "Prepared cannot be read: "),
        (b'\x19{"number":1,"refused":{},"binds":[[1]]}', "Prepared cannot be read: "),
        (b'\x1a{"rows":[["a"]]}', "Troubles cannot be read: "),
        (b"\x02\x00\x00\x05\x00\x00\x00\x01ab", "a record reaches beyond its frame"),
        (b"\x02\x02\x00\x00\x00\x00\x00\x00", "of an unknown type"),
        (b"\x02\x07\x00\x00\x00\x00\x00\x00", "of an unknown type"),
        (b"\x02\x00\x00\x01\xff\xff\xff\xff\xff", "Changes cannot be read: "),
        (b"\x02\x00\x00", "Changes cannot be read: "),
    ],
)
def test_payloads_that_do_not_fit_are_refused(frame: bytes, why: str) -> None:
    with pytest.raises(LinkError, match=why):
        Decoder().feed(struct.pack("!I", len(frame)) + frame)


def test_an_empty_value_is_not_an_absent_one() -> None:
    said = Changes((Record(RESOURCE, "a", b""), Record(RESOURCE, "b", None)))
    assert Decoder().feed(encode(said)) == [said]


def test_troubles_are_told_apart_by_their_places() -> None:
    row = messages.Trouble("backend/a", "10.0.0.1:80", 70, 12.5, "a.test", "connection refused", 3, 11.25)
    said = messages.Troubles((row, row._replace(backend="", evicted_until=0.0)))
    assert Decoder().feed(encode(said)) == [said]


def test_a_big_state_is_cut_into_frames_of_bounded_size_in_its_order() -> None:
    state = [Record(RESOURCE, f"route/{i}", bytes(i % 7 * 1000)) for i in range(1000)]
    chunks = list(codec.chunked(state))
    assert [record for chunk in chunks for record in chunk.records] == state
    assert all(len(chunk.records) <= codec.CHUNK_RECORDS for chunk in chunks)
    assert all(len(encode(chunk)) <= codec.CHUNK_BYTES + 10_000 for chunk in chunks)
    assert list(codec.chunked([])) == []


def test_a_chunk_has_so_many_records_or_so_many_bytes() -> None:
    """A record is never cut; what is behind one that fills a chunk goes into the next."""
    small = [Record(RESOURCE, f"{number:04}", None) for number in range(501)]
    assert [len(chunk.records) for chunk in codec.chunked(small)] == [250, 250, 1]
    for size, counts in ((codec.CHUNK_BYTES - 4, [2, 1]), (codec.CHUNK_BYTES - 3, [1, 2])):
        large = [Record(RESOURCE, "0000", bytes(size)), Record(RESOURCE, "0001", b"x"), small[0]]
        assert [len(chunk.records) for chunk in codec.chunked(large)] == counts
        huge = Record(RESOURCE, "huge", bytes(codec.CHUNK_BYTES))
        assert [len(chunk.records) for chunk in codec.chunked([huge, *large])] == [1, *counts]
        gone = [Record(RESOURCE, "0000", bytes(size - 4)), *[Record(RESOURCE, "gone", None)] * 2]
        assert [len(chunk.records) for chunk in codec.chunked(gone)] == [3] if counts == [2, 1] else [2, 1]


def test_a_code_never_changes_its_meaning() -> None:
    """An agent and a worker may be of two versions for a while."""
    said = {
        1: messages.Hello(0, {}),
        2: Changes(()),
        3: messages.StateEnd(1),
        4: messages.OpenBind("a"),
        5: messages.CloseBind("a"),
        6: messages.Drain(1.0, 2.0),
        7: messages.Ping(1),
        8: messages.DumpRequest(1),
        9: messages.LogLevel("", {}),
        10: messages.Common(),
        11: messages.Commit(1),
        21: messages.BindOpened("a"),
        22: messages.BindClosed("a"),
        23: messages.Pong(1),
        24: messages.DumpAnswer(1, {}),
        25: messages.Prepared(1, {}, ()),
        26: messages.Troubles(()),
    }
    assert {code: encode(message)[4] for code, message in said.items()} == {code: code for code in said}


def test_the_session_key_is_in_no_repr() -> None:
    assert "secret" not in repr(messages.Hello(0, {"session_key": "secret"}))
