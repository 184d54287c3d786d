"""gRPC-Web and gRPC, one into the other (gRPC's document PROTOCOL-WEB), over any split of bytes.

A browser cannot read trailers, so gRPC-Web sends them as the last message of the content, and content may have to be
text: base64 (RFC 4648 4), in pieces that may each have their own padding. Messages themselves pass as they are.
"""

from __future__ import annotations

import binascii
import struct

_TRAILERS = 0x80
"""Flag of the message that holds trailers."""
_HEAD = struct.Struct(">BI")


class Malformed(ValueError):
    """The content is not what its type says. The message is for the log."""


def trailer_message(lines: bytes) -> bytes:
    """Trailer lines (`b"name: value\\r\\n"`, any number) as the last message of a content. Names are written in lower
    case, as in HTTP/2."""
    rows = [line.partition(b":") for line in lines.split(b"\r\n") if line]
    text = b"".join(b"%b:%b\r\n" % (name.lower(), value.strip(b" \t")) for name, _, value in rows)
    return _HEAD.pack(_TRAILERS, len(text)) + text


class Decoder:
    """Base64 in, bytes out. Each group of four characters is decoded by itself: padding may occur in the middle, where
    one piece of the sender ended."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def content(self, data: bytes, end: bool) -> bytes:
        """What `data` holds beside what waits (at most three characters). Raises Malformed."""
        text = self._rest + data
        usable = len(text) & ~3
        self._rest = text[usable:]
        if end and self._rest:
            raise Malformed("base64 ends within a group of four characters")
        return b"".join(map(_decoded, _pieces(text[:usable])))


def _pieces(text: bytes) -> list[bytes]:
    """Cut behind every padding, so that each piece is base64 of its own."""
    if b"=" not in text[:-2]:
        return [text] if text else []
    pieces, begin = [], 0
    while (found := text.find(b"=", begin)) >= 0:
        end = (found | 3) + 1  # of its group
        pieces.append(text[begin:end])
        begin = end
    if text[begin:]:
        pieces.append(text[begin:])
    return pieces


def _decoded(piece: bytes) -> bytes:
    try:
        return binascii.a2b_base64(piece, strict_mode=True)
    except binascii.Error as error:
        raise Malformed(f"no base64: {error}") from None
