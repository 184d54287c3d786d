"""The chunked coding: where it ends, what passes, what does not; the same in any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.h1.chunked import (
    LAST,
    MAX_EXCESS,
    MAX_LINE,
    MAX_TRAILER_FIELDS,
    MAX_TRAILERS,
    BadChunk,
    ChunkedReader,
    TooManyTrailers,
    encode,
)

PLAIN = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


def feed(reader: ChunkedReader, data: bytes, sizes: list[int]) -> tuple[bytes, int]:
    """Feed `data` in pieces; what was handed on, and where the body ended (-1: it did not)."""
    out, at = b"", 0
    for size in [*sizes, len(data)]:
        piece = data[at : at + size]
        if not piece:
            continue
        given_on, used = reader.feed(piece)
        out += given_on
        if used >= 0:
            return out, at + used
        at += len(piece)
    return out, -1


def test_plain_chunks_pass_as_the_same_object() -> None:
    data = b"5\r\nhello\r\n"
    out, used = ChunkedReader().feed(data)
    assert out is data
    assert used == -1


def test_the_end_is_found_and_what_follows_is_left() -> None:
    assert ChunkedReader().feed(PLAIN + b"GET /") == (PLAIN, len(PLAIN))


def test_content_is_decoded() -> None:
    assert ChunkedReader(decode=True).feed(PLAIN) == (b"hello world", len(PLAIN))


def test_extensions_are_dropped_and_trailers_held_to_what_may_be_one() -> None:
    reader = ChunkedReader()
    out, used = reader.feed(b'2;a=1;b="x"\r\nhi\r\n0;z\r\nX-Sum: 1\r\nContent-Length: 9\r\nHost: evil\r\n\r\nrest')
    assert out == b"2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n"
    assert used > 0
    assert reader.size == 2


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(1, 30), max_size=40),
    st.booleans(),
)
def test_any_pieces_give_the_same(chunks: list[bytes], sizes: list[int], decode: bool) -> None:
    data = b"".join(map(encode, chunks)) + LAST
    out, used = feed(ChunkedReader(decode), data + b"tail", sizes)
    assert used == len(data)
    assert ChunkedReader(decode=True).feed(out)[0] == b"".join(chunks) if not decode else out == b"".join(chunks)


@pytest.mark.parametrize(
    "data",
    [
        b"5\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5 \r\nhello\r\n",
        b"+5\r\nhello\r\n",
        b"-5\r\nhello\r\n",
        b"5_0\r\nhello\r\n",
        b"\r\nhello\r\n",
        b"5;\r\nhello\r\n",
        b"5;a\x00\r\nhello\r\n",
        b"5\r\nhelloX\r\n",
        b"5\r\nhello\n\n",
        b"5\r\nhello\rX",
        b"1000000000000000\r\n",
        b"0\r\nbad trailer\r\n\r\n",
        b"0\r\nX: 1\n\r\n",
        b"0\r\n folded: 1\r\n\r\n",
        b"5; x\r\nhello\r\n0\r\n\r\n",
        b"5;x \r\nhello\r\n0\r\n\r\n",
        b"5;;x\r\nhello\r\n0\r\n\r\n",
        b"5;x=\r\nhello\r\n0\r\n\r\n",
        b'5;x="y\r\nhello\r\n0\r\n\r\n',
        b"5;\xfa\r\nhello\r\n0\r\n\r\n",
        b"0" * 5000,
        b"5;" + b"x" * 5000,
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_what_is_not_chunked_is_refused(data: bytes, step: int) -> None:
    with pytest.raises(BadChunk):
        feed(ChunkedReader(), data, [step] * len(data))


@pytest.mark.parametrize(
    "name", [b"X_Forwarded_For", b"x-forwarded_for", b"Proxy_Authorization", b"X-Forwarded-Client-Cert"]
)
def test_trailers_that_an_origin_may_read_as_what_we_vouch_for_are_dropped(name: bytes) -> None:
    assert ChunkedReader().feed(b"0\r\n%b: 1\r\nx_sum: 2\r\n\r\n" % name)[0] == b"0\r\nx_sum: 2\r\n\r\n"


def test_trailers_are_counted() -> None:
    with pytest.raises(TooManyTrailers):
        ChunkedReader().feed(b"0\r\n" + b"X: 1\r\n" * 101)


@given(st.binary(max_size=80))
def test_bytes_of_any_kind_give_an_answer(data: bytes) -> None:
    try:
        _, used = ChunkedReader().feed(data)
    except BadChunk:
        return
    assert -1 <= used <= len(data)


@pytest.mark.parametrize("before", [b"", b"0\r\n"], ids=["of a chunk", "of a trailer"])
@pytest.mark.parametrize("step", [1, 10_000])
def test_a_line_may_be_so_long(before: bytes, step: int) -> None:
    begin = b"x: " if before else b"1;"
    line = begin.ljust(MAX_LINE - 2, b"a") + b"\r\n"
    reader = ChunkedReader()
    assert feed(reader, before + line, [step] * 10_000)[1] == -1
    with pytest.raises(BadChunk, match="too long"):
        feed(ChunkedReader(), before + line.replace(b"a\r\n", b"aa\r\n"), [step] * 10_000)


def test_trailers_may_be_so_many_and_so_long() -> None:
    end, used = ChunkedReader().feed(b"0\r\n" + b"x: 1\r\n" * MAX_TRAILER_FIELDS + b"\r\n")
    assert used == len(end)
    lines = [b"x: ".ljust(1022, b"a") + b"\r\n"] * (MAX_TRAILERS // 1024)
    assert ChunkedReader().feed(b"0\r\n" + b"".join(lines) + b"\r\n")[1] > MAX_TRAILERS
    with pytest.raises(TooManyTrailers):
        ChunkedReader().feed(b"0\r\n" + b"".join(lines) + b"x:\r\n\r\n")


@pytest.mark.parametrize("decode", [False, True], ids=["as they are", "as content"])
@pytest.mark.parametrize("before", [b"", b"x" * 5000], ids=["at first", "behind a large one"])
def test_framing_may_be_so_much_more_than_content(before: bytes, decode: bool) -> None:
    """Each chunk of one byte has four bytes more of framing; what a large one has less is not put by."""
    large, most = encode(before) if before else b"", MAX_EXCESS // 4
    reader = ChunkedReader(decode)
    reader.feed(large + b"1\r\nx\r\n" * most)
    assert reader.size == len(before) + most
    with pytest.raises(BadChunk, match="far more chunk lines"):
        reader.feed(b"1\r\nx\r\n")


@pytest.mark.parametrize("decode", [False, True], ids=["as they are", "as content"])
def test_so_many_chunks_are_begun_and_the_rest_is_kept(decode: bool) -> None:
    reader, chunks = ChunkedReader(decode), [encode(b"%d" % number) for number in range(5)]
    out, used = reader.feed(b"".join(chunks) + LAST, 2)
    assert (out, used) == (b"01" if decode else chunks[0] + chunks[1], -1)
    assert reader.rest == b"".join(chunks[2:]) + LAST and reader.size == 2
    out, used = reader.feed(reader.rest, 3)
    assert used == -1 and reader.rest == LAST
    out, used = reader.feed(reader.rest, 1)
    assert (out, used, reader.rest) == (b"" if decode else LAST, len(LAST), b"")
