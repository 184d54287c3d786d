"""Halves of surrogate pairs (RFC 8259 8.2): as bytes while a message is read, as escapes again when it is written."""

from __future__ import annotations

import json

import pytest

from dataplane.mcp import halves, messages


@pytest.mark.parametrize(
    ("escapes", "kept"),
    [
        (rb"\ud800", b"\xed\xa0\x80"),
        (rb"\uDfFf", b"\xed\xbf\xbf"),
        (rb"a\ud800\u0041", b"a\xed\xa0\x80\\u0041"),
        (rb"\udc00\ud800", b"\xed\xb0\x80\xed\xa0\x80"),
        (rb"\ud800\ud83d\ude00", b"\xed\xa0\x80\\ud83d\\ude00"),
        (rb"\ud83d\ude00\ude00", b"\\ud83d\\ude00\xed\xb8\x80"),
        (rb"\\\ud800", b"\\\\\xed\xa0\x80"),
        (rb"\\ud800", None),
        (rb"\ud83d\ude00", None),
        ("\ud7ff\ue000\uffff".encode(), None),
        (rb"\ud8", None),
        (b"", None),
    ],
)
def test_a_half_is_bytes_that_no_text_has(escapes: bytes, kept: bytes | None) -> None:
    """None: nothing of it is a half."""
    found = halves.kept(escapes)
    assert found == (escapes if kept is None else kept)
    assert halves.escaped(found).lower() == escapes.lower()


def test_those_of_a_message_are_bounded() -> None:
    assert halves.kept(rb"\ud800" * halves.MOST) is not None
    assert halves.kept(rb"\ud800" * (halves.MOST + 1)) is None


def test_a_message_is_written_as_it_was_read() -> None:
    said = {"jsonrpc": "2.0", "id": 1, "result": {"\ud800": ["\udc00", "\U0001f600", "\ud7ff", "\\ud800"]}}
    found = messages.read(json.dumps(said).encode())
    assert json.loads(messages.encode(found)) == said
    assert messages.object_of(found.params) == {}
    with pytest.raises(messages.Beyond, match="a key of an object is no text"):
        messages.object_of(found.result)
