"""gRPC-Web over any split of bytes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.http.grpc_web import Decoder, Malformed, trailer_message


def test_trailers_are_the_last_message() -> None:
    text = b"grpc-status:0\r\nx-sum:a: b\r\n"
    assert trailer_message(b"Grpc-Status: 0\r\nX-Sum:\ta: b \r\n") == b"\x80" + len(text).to_bytes(4) + text
    assert trailer_message(b"") == b"\x80\0\0\0\0"


PARTS = st.lists(st.binary(max_size=20), max_size=8)


@given(PARTS, st.data())
def test_any_split_of_any_pieces_is_decoded(parts: list[bytes], data: st.DataObject) -> None:
    """Each piece is padded for itself, as a client that flushes does."""
    text = b"".join(map(base64.b64encode, parts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    decoder, decoded = Decoder(), b""
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        decoded += decoder.content(text[begin:end], False)
    assert decoded + decoder.content(b"", True) == b"".join(parts)


def test_little_waits() -> None:
    decoder = Decoder()
    assert decoder.content(b"aGVsbG8", False) == b"hel"
    assert decoder.content(b"=", False) == b"lo"


@pytest.mark.parametrize(
    "text", [b"aGVs\n", b"aGV", b"a===", b"====", b"=aGV", b"aG=V", b"aG\xc3\xa4", b"aGV*", b"aGVsbG8=x"]
)
def test_what_is_no_base64_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        Decoder().content(text, True)
