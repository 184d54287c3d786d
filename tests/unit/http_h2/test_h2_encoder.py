"""Our header blocks: what another library's decoder reads of them, and what enters the table of a connection."""

from __future__ import annotations

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h2.encoder import BlockEncoder
from dataplane.http.h2.errors import NO_ERROR
from dataplane.http.h2.frames import HEADERS, SETTING, SETTINGS
from dataplane.http.h2.hpack import Field
from tests.fakes.h2_wire import client, frame, parse

SECRET = (b"authorization", b"Bearer x", True)


class Reader(hpack.Decoder):
    """Reads blocks as fields; `size` is what the table holds."""

    def __init__(self) -> None:
        super().__init__(1 << 20)

    def fields(self, block: bytes) -> list[Field]:
        return [(bytes(pair[0]), bytes(pair[1]), not pair.indexable) for pair in self.decode(block, raw=True)]

    @property
    def entries(self) -> list[tuple[bytes, bytes]]:
        return [(bytes(name), bytes(value)) for name, value in self.header_table.dynamic_entries]


def field(number: int, size: int = 20) -> Field:
    return b"x-%d" % number, b"v" * size, False


def test_a_block_that_repeats_is_indexes() -> None:
    writer, reader = BlockEncoder(), Reader()
    fields = [(b":status", b"200", False), (b"content-type", b"text/html", False), (b"x-a", b"b", False)]
    first, second, third = (writer.encode(fields) for _ in range(3))
    assert second == third == b"\x88\xbf\xbe"
    assert [reader.fields(block) for block in (first, second, third)] == [fields] * 3


def test_secrets_enter_no_table_and_are_not_remembered() -> None:
    writer, reader = BlockEncoder(), Reader()
    blocks = [writer.encode([SECRET, field(1)]) for _ in range(2)]
    assert [reader.fields(block) for block in blocks] == [[SECRET, field(1)]] * 2
    assert reader.entries == [field(1)[:2]] and SECRET not in writer
    assert b"Bearer x" in blocks[1]


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 300, 20_000])
@pytest.mark.parametrize("name", [b"cookie", b"x-own", b"x" * 300])
def test_lengths_of_what_is_never_indexed(name: bytes, size: int) -> None:
    fields: list[Field] = [(name, b"?" * size, True)]
    assert Reader().fields(BlockEncoder().encode(fields)) == fields


def test_a_table_that_is_full_stays_until_much_has_found_no_room() -> None:
    """4096 bytes are 51 of these entries; the 256 misses of a table are followed by one that is empty."""
    writer, reader = BlockEncoder(), Reader()

    def send(number: int) -> bytes:
        block = writer.encode([field(number, 44)])
        assert reader.fields(block) == [field(number, 44)]
        return block

    size = 32 + 44 + len(b"x-100")
    room = 4096 // size
    for number in range(100, 100 + room):
        send(number)
    assert len(reader.entries) == room
    assert len(send(100)) == 1  # the oldest is still there
    for number in range(300, 557):
        send(number)
        assert len(reader.entries) == room
    block = send(100)
    assert block.startswith(b"\x20\x3f\xe1\x1f") and reader.entries == [field(100, 44)[:2]]
    assert len(send(100)) == 1


def test_indexes_that_take_more_than_an_octet() -> None:
    """RFC 7541 5.1: 127 and more are 0xff and the rest. 100 small entries fit into the table, behind 61 static ones."""
    writer, reader = BlockEncoder(), Reader()
    for number in range(100):
        reader.fields(writer.encode([field(number, 0)]))
    blocks = [writer.encode([field(number, 0)]) for number in (99, 34, 33, 0)]
    assert blocks == [b"\xbe", b"\xff\x00", b"\xff\x01", b"\xff\x22"]
    assert [reader.fields(block) for block in blocks] == [[field(number, 0)] for number in (99, 34, 33, 0)]


@pytest.mark.parametrize(
    ("size", "update"), [(0, b"\x20"), (30, b"\x20\x3e"), (31, b"\x20\x3f\x00"), (200, b"\x20\x3f\xa9\x01")]
)
def test_a_smaller_table(size: int, update: bytes) -> None:
    writer, reader = BlockEncoder(), Reader()
    reader.fields(writer.encode([field(1), field(2)]))
    writer.limit_table(size)
    for _ in range(3):
        block = writer.encode([field(1), field(2)])
        assert reader.fields(block) == [field(1), field(2)] and reader.header_table_size == size
    assert not block.startswith(b"\x20")
    writer.limit_table(size)
    writer.limit_table(4000)
    writer.limit_table(1 << 20)
    assert writer.encode([]) == b"\x20\x3f\xe1\x1f"


NAMES = st.sampled_from([b"a", b":method", b":path", b"content-type", b"cookie", b"date", b"x-b"])
VALUES = st.one_of(st.sampled_from([b"", b"GET", b"/", b"1"]), st.binary(max_size=700))
STEPS = st.lists(
    st.one_of(st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=8), st.integers(0, 5000)), max_size=40
)


@given(STEPS)
def test_another_decoder_reads_every_block(steps: list[list[Field] | int]) -> None:
    """Whatever sizes of tables come between; it never holds more than its size."""
    writer, reader = BlockEncoder(), Reader()
    for step in steps:
        if isinstance(step, int):
            writer.limit_table(step)
            continue
        read = reader.fields(writer.encode(step))
        assert [each[:2] for each in read] == [each[:2] for each in step]
        assert len(reader.entries) == len(writer._numbers)


# --- whole heads, as a connection sends them

AUTHORITIES = (b"a.example", b"b.example", b"c" * 700)
LINES = (b"accept: */*", b"x-a: 1", b"X-B: " + b"y" * 900, b"authorization: Bearer x", b"connection: close", b"host: a")
OWN = (b"x-request-id: 7f3e-01", b"x-request-id: ?", b"x-request-id: ", b"x-last: 2")
REQUESTS = st.tuples(
    st.sampled_from(AUTHORITIES), st.lists(st.sampled_from(LINES), max_size=3), st.sampled_from(OWN), st.booleans()
)


@given(st.lists(st.one_of(REQUESTS, st.sampled_from([0, 60, 200, 4096])), max_size=40))
def test_another_decoder_reads_every_request(steps: list[tuple[bytes, list[bytes], bytes, bool] | int]) -> None:
    """What is remembered of heads and trailers is what they say, whatever has entered the table, or left it, since."""
    codec, reader = client(), Reader()
    codec.take()
    for step in steps:
        if isinstance(step, int):
            codec.receive(frame(SETTINGS, 0, 0, SETTING.pack(1, step)))
            codec.take()
            continue
        authority, lines, own, ends = step
        block = b"".join([b"\r\n" + line for line in [*lines, own]]) + b"\r\n"
        stream = codec.send_request(b"POST", b"http", authority, b"/a?b=1", block, False)
        pairs = [(name.lower(), value) for name, value in [line.split(b": ") for line in [*lines, own]]]
        regular = [(name, value) for name, value in pairs if name not in (b"host", b"connection")]
        pseudo = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", authority), (b":path", b"/a?b=1")]
        said = [[*pseudo, *regular]]
        if ends:
            codec.send_trailers(stream, block)
            said.append([(name, value) for name, value in pairs if name != b"connection"])
        blocks = [each.payload for each in parse(codec.take()) if each.kind == HEADERS]
        read = [[field[:2] for field in reader.fields(each)] for each in blocks]
        assert read == said
        codec.reset(stream, NO_ERROR)
        codec.take()


def test_a_head_that_repeats_is_looked_up() -> None:
    codec = client()
    block = b"\r\ncontent-type: application/grpc\r\nx-a: 1\r\n"
    for _ in range(3):
        codec.send_request(b"POST", b"http", b"a.example", b"/", block + b"x-request-id: 1\r\n", True)
    remembered = codec._encoder.blocks
    assert set(remembered) == {(b"POST", b"http", b"a.example"), (block,)}


@pytest.mark.parametrize("size", [0, 60, 4000])
def test_a_smaller_table_forgets_whole_heads(size: int) -> None:
    codec, reader = client(), Reader()
    block = b"\r\nx-a: 1\r\nlast: 1\r\n"

    def send() -> list[Field]:
        codec.reset(codec.send_request(b"POST", b"http", b"a.example", b"/", block, True), NO_ERROR)
        (head,) = [each.payload for each in parse(codec.take()) if each.kind == HEADERS]
        return reader.fields(head)

    first = [send() for _ in range(3)]
    codec.receive(frame(SETTINGS, 0, 0, SETTING.pack(1, size)))
    assert [[each[:2] for each in send()] for _ in range(3)] == [[each[:2] for each in fields] for fields in first]
    assert reader.header_table_size == size


def test_what_is_remembered_as_a_whole_is_bounded() -> None:
    codec = client()
    for number in range(200):
        block = b"\r\ncookie: %d\r\nlast: 1\r\n" % number
        codec.reset(codec.send_request(b"POST", b"http", b"a.example", b"/", block, True), NO_ERROR)
        assert len(codec._encoder.blocks) <= 32
    assert (block[:-9],) in codec._encoder.blocks
    long = b"\r\ncookie: %b\r\nlast: 1\r\n" % (b"a" * 2000)
    codec.send_request(b"POST", b"http", b"a", b"/", long, True)
    assert (long[:-9],) not in codec._encoder.blocks
