"""What our side of HPACK adds to the library: the errors that it does not see, and which blocks may be remembered."""

from __future__ import annotations

import hpack
import pytest
from hpack import huffman_constants
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h2 import hpack as ours
from dataplane.http.h2.encoder import BlockEncoder
from dataplane.http.h2.errors import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ConnectionFailure
from dataplane.http.h2.hpack import BlockDecoder
from tests.fakes.h2_wire import GET, literal

FIELDS = [(b":status", b"200", False), (b"content-type", b"text/html", False), (b"x-a", b"b", False)]


def test_code_lengths_are_those_of_the_standard() -> None:
    assert list(ours.CODE_BITS) == huffman_constants.REQUEST_CODES_LENGTH[:256]


# RFC 7541 section, block, code
ERRORS = [
    ("2.3.3", b"\x80"),  # index 0
    ("2.3.3", b"\xbe"),  # an index of an empty dynamic table
    ("4.2", b"\x82\x20"),  # an update behind a field
    ("4.2", b"\x82\x3f\xe1\x1f\x82"),
    ("5.1", b"\xff" + b"\xff" * 20),
    ("5.1", b"\xff" + b"\x80" * 40 + b"\x01"),
    ("5.2", b"\x00\x05ab"),
    ("5.2", b"\x00\x81\x18\x01b"),  # "a" with padding of zeros
    ("5.2", b"\x00\x01b\x81\x18"),
    ("5.2", b"\x00\x01b\x82\x1f\xff"),  # padding of more than 7 bits
    ("5.2", b"\x00\x01b\x84\xff\xff\xff\xff"),  # EOS
    ("5.1", b"\x0f"),  # blocks that are cut off
    ("5.1", b"\x7f"),
    ("5.1", b"\x3f"),
    ("5.1", b"\xff\x80"),
    ("5.2", b"\x00"),
    ("5.2", b"\x00\x01a"),
    ("5.2", b"\x41"),
    ("5.2", b"\x00\x01a\x7f"),
    ("5.2", b"\x00\x01a\x02b"),
    ("6.3", b"\x3f\xe2\x1f\x82"),  # an update above the limit
]


PARTS = [
    *(
        b"\x82",
        b"\x40",
        b"\x00",
        b"\x10",
        b"\x01a",
        b"\x81\x1f",
        b"\x81\x18",
        b"\x20",
        b"\x3f\xe1\x1f",
        b"\xff",
        b"\x7f",
    ),
    *(b"\x0f", b"\x80", b"\x02", b"\x85abcde", b"\xbe", b"\x7f\x80\x80\x01", b"\xff\xff\xff\xff\x0f", b"\x01", b"\x41"),
]


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: f"{row[0]} {row[1][:8].hex()}")
def test_decoding_errors(row: tuple[str, bytes]) -> None:
    with pytest.raises(ConnectionFailure) as caught:
        BlockDecoder(65_536).decode(row[1])
    assert caught.value.code == COMPRESSION_ERROR


@given(st.lists(st.sampled_from(PARTS), max_size=8).map(b"".join), st.integers(0, 3))
def test_any_block_is_decoded_or_refused(block: bytes, missing: int) -> None:
    """Like another decoder does, but for what that takes: padding, and integers that are too long to mean anything."""
    block = block[: len(block) - missing]
    reader = hpack.Decoder(1 << 20)
    try:
        fields = BlockDecoder(1 << 20).decode(block)
    except ConnectionFailure:
        return
    assert [field[:2] for field in fields] == [(bytes(n), bytes(v)) for n, v in reader.decode(block, raw=True)]


def test_a_panic_of_the_library_is_an_error_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The survey knows of none; one that it does not know must not end the worker."""

    class PanicException(BaseException):
        pass

    class Panics:
        def decode(self, block: bytes, raw: bool) -> None:
            raise PanicException

    decoder = BlockDecoder(1000)
    monkeypatch.setattr(decoder, "_decoder", Panics())
    with pytest.raises(ConnectionFailure):
        decoder.decode(b"\x82")


def test_updates_before_the_first_field_are_right() -> None:
    decoder = BlockDecoder(65_536)
    assert decoder.decode(b"\x20\x3f\xe1\x1f\x82") == [(b":method", b"GET", False)]
    assert decoder.changed


# block, whether it changes the table
BLOCKS = [
    (b"\x82\x84", False),
    (b"", False),
    (literal(GET), False),
    (literal([(b"a", b"b" * 500)]), False),
    (b"\x10\x01a\x01b", False),  # never indexed
    (b"\x0f\x0e\x01b", False),  # an indexed name above the prefix
    (b"\x40\x01a\x01b", True),
    (b"\x7f\x00\x01b", True),
    (b"\x20\x82", True),
    (b"\x82\x40\x81\x1f\x81\x1f", True),
]


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: row[0][:8].hex())
def test_which_blocks_change_the_table(row: tuple[bytes, bool]) -> None:
    decoder = BlockDecoder(65_536)
    if row[0].startswith(b"\x7f"):
        decoder.decode(b"\x40\x01a\x01b\x40\x01c\x01d")  # 62 and 63
    decoder.decode(row[0])
    assert decoder.changed is row[1]


def test_never_indexed_fields_are_marked() -> None:
    assert BlockDecoder(65_536).decode(b"\x10\x01a\x01b") == [(b"a", b"b", True)]
    assert BlockEncoder().encode([(b"a", b"b", True)]).startswith(b"\x10")


def test_limit_of_decoded_bytes() -> None:
    with pytest.raises(ConnectionFailure) as caught:
        BlockDecoder(1000).decode(literal([(b"a", b"b" * 1000)]))
    assert caught.value.code == ENHANCE_YOUR_CALM


def test_table_of_the_encoder_is_what_the_peer_allows() -> None:
    encoder, reader = BlockEncoder(), hpack.Decoder()
    encoder.encode(FIELDS)
    encoder.limit_table(0)
    block = encoder.encode(FIELDS)
    reader.decode(block, raw=True)
    assert block.startswith(b"\x20") and reader.header_table_size == 0
    encoder.limit_table(1 << 30)
    block = encoder.encode(FIELDS)
    reader.max_allowed_table_size = 1 << 30
    reader.decode(block, raw=True)
    assert reader.header_table_size == 4096


@pytest.mark.parametrize(
    ("sizes", "updates"),
    [
        ((50, 0), b"\x20"),
        ((0, 50), b"\x20\x3f\x13"),
        ((50, 20, 30, 4096), b"\x20\x3f\xe1\x1f"),
        ((0, 4096), b"\x20\x3f\xe1\x1f"),
    ],
)
def test_of_several_sizes_of_the_table_none_that_is_gone_is_said(sizes: tuple[int, ...], updates: bytes) -> None:
    """RFC 7541 4.2: one that the peer does not allow any more would be an error; nothing is less than the least."""
    encoder = BlockEncoder()
    encoder.encode([(b":status", b"200", False)])
    for size in sizes:
        encoder.limit_table(size)
    assert encoder.encode([(b":status", b"200", False)]) == updates + b"\x88"
    assert encoder.encode([(b":status", b"200", False)]) == b"\x88"


NAMES = st.sampled_from([b"a", b":method", b"content-type", b"x-long-name", b"cookie", b"date"])
VALUES = st.one_of(st.sampled_from([b"", b"GET", b"1", b"text/html"]), st.binary(max_size=200))
LISTS = st.lists(st.lists(st.tuples(NAMES, VALUES, st.booleans()), max_size=8), max_size=8)


class Counting(hpack.Decoder):
    """The other library's decoder; counts what enters its table."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.entered = 0
        add = self.header_table.add

        def counting(name: bytes, value: bytes) -> None:
            self.entered += 1
            add(name, value)

        self.header_table.add = counting  # type: ignore[method-assign]


@given(LISTS, st.booleans())
def test_blocks_of_another_encoder(lists: list[list[tuple[bytes, bytes, bool]]], huffman: bool) -> None:
    """What an honest encoder makes passes, and a block changes our table when it changes the other library's."""
    writer, reader, other = hpack.Encoder(), BlockDecoder(1 << 20), Counting()
    for fields in lists:
        tuples = [
            hpack.NeverIndexedHeaderTuple(name, value) if secret else hpack.HeaderTuple(name, value)
            for name, value, secret in fields
        ]
        block = writer.encode(tuples, huffman)
        assert [field[:2] for field in reader.decode(block)] == [field[:2] for field in fields]
        before = other.entered
        other.decode(block, raw=True)
        assert reader.changed == (other.entered > before)


@given(LISTS)
def test_blocks_of_our_encoder(lists: list[list[tuple[bytes, bytes, bool]]]) -> None:
    """Another decoder reads them; only what was sent openly as well, or stands in the static table, is an index."""
    writer, reader = BlockEncoder(), hpack.Decoder(1 << 20)
    known = {(b":method", b"GET"), (b"content-type", b""), (b"cookie", b""), (b"date", b"")}
    for fields in lists:
        read = reader.decode(writer.encode(fields), raw=True)
        assert [(bytes(pair[0]), bytes(pair[1])) for pair in read] == [field[:2] for field in fields]
        for (name, value, secret), pair in zip(fields, read, strict=True):
            assert pair.indexable is not secret or (name, value) in known
            if not secret:
                known.add((name, value))
