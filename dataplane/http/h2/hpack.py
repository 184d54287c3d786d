"""HPACK (RFC 7541), reading: the library's decoder, and what stands before it. Writing is in `encoder`.

jh2 brings a coder in Rust (`jh2._hazmat`); nothing else of it is used. A new request block costs it 1 to 3 us, where a
coder in Python costs 20. It takes blocks for granted where RFC 7541 does not: on one that is cut off it panics, and it
does not see a table size update behind a field (4.2) or Huffman padding that is not ones (5.2). So `survey` walks over
a block first. It also finds whether a block changes the dynamic table: one that does not means the same again until one
does, so what was made of it may be remembered.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from jh2._hazmat import Decoder, HPACKError, OversizedHeaderListError

from dataplane.http.h2.errors import COMPRESSION_ERROR, ENHANCE_YOUR_CALM, ConnectionFailure

Field: TypeAlias = tuple[bytes, bytes, bool]
"""(name, value, never indexed): the last is RFC 7541 6.2.3, and travels on as it came."""

TABLE_SIZE = 4096
"""Bytes of the dynamic table: of the peer's encoder (the default; we announce no other) and, at most, of our own."""

_Huffman: TypeAlias = tuple[int, bool, int]
"""A string in Huffman code: number of its field, whether it is the value (else the name), its last octet."""

_MOST_OCTETS = 5
"""Octets of an integer behind its prefix: 35 bits, more than any size or index here can mean."""

_INDEXED = bytes(range(0x81, 0xFF))
"""Octets that are each a whole field: an index below 127 (6.1)."""

_indexes = re.compile(rb"[\x80-\xfe]+").match

CODE_BITS = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c"
    "060a0a0c0d06080b0a0a080b080606060505050606060606060607080f060c0a"
    "0d06070707070707070707070707070707070707070707070807080d130d0e06"
    "0f05060506050606060507070606060506070605050607070707070f0b0e0d1c"
    "1416141416161617161717171717181718181617181717171715161716171718"
    "1615141616171715171616181516171715151615171617171416161617161617"
    "1a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a1c1b1b1b"
    "14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a"
)
"""Octet -> bits of its Huffman code (appendix B)."""


class BlockDecoder:
    """The fields of one direction of a connection. Every block has to pass, in order, whatever becomes of its
    stream."""

    __slots__ = ("_decoder", "changed")

    def __init__(self, max_size: int) -> None:
        """`max_size`: decoded bytes at which decoding ends, and the connection with it: the table is lost then."""
        self._decoder = Decoder(max_size)
        self.changed = False
        """The last block changed the dynamic table."""

    def decode(self, block: bytes) -> list[Field]:
        """Raises ConnectionFailure: COMPRESSION_ERROR, or ENHANCE_YOUR_CALM over the limit (RFC 9113 4.3)."""
        strings: list[_Huffman] = []
        self.changed = bool(block.strip(_INDEXED)) and survey(block, strings)
        try:
            fields: list[Field] = self._decoder.decode(block, True)  # True: as bytes
        except OversizedHeaderListError:
            raise ConnectionFailure(ENHANCE_YOUR_CALM, "HeaderBlock") from None
        except HPACKError:
            raise _broken() from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # Rust's, outside of Exception: it would end the event loop
                raise
            raise _broken() from error
        for number, is_value, last in strings:
            name, value, _ = fields[number]
            padding = (1 << (-sum((value if is_value else name).translate(CODE_BITS)) % 8)) - 1
            if last & padding != padding:
                raise _broken()
        return fields


def _broken() -> ConnectionFailure:
    return ConnectionFailure(COMPRESSION_ERROR, "HeaderCompression")


def survey(block: bytes, strings: list[_Huffman]) -> bool:
    """Whether a block changes the dynamic table. Raises ConnectionFailure when it is cut off, or an update is late.

    Adds to `strings` those that are in Huffman code, whose padding can be judged when they are decoded (5.2).
    """
    at, count, changed, size = 0, 0, False, len(block)
    try:
        while at < size:
            octet = block[at]
            if octet == 0xFF:  # 6.1: an indexed field
                at = _behind_number(block, at)
                count += 1
            elif octet >= 0x80:  # mostly many of them in a row
                end = _indexes(block, at).end()  # type: ignore[union-attr]  # it matches this one at least
                count += end - at
                at = end
            elif octet >= 0x40 or octet < 0x20:  # 6.2: a literal, with an indexed name or one of its own
                prefix = 0x3F if octet >= 0x40 else 0x0F
                changed = changed or octet >= 0x40
                octet &= prefix
                if not octet:
                    at = _behind_string(block, at + 1, strings, count, False)
                else:
                    at = at + 1 if octet != prefix else _behind_number(block, at)
                at = _behind_string(block, at, strings, count, True)
                count += 1
            else:  # 6.3: a table size update, allowed before the first field only (4.2)
                if count:
                    raise _broken()
                at = at + 1 if octet != 0x3F else _behind_number(block, at)
                changed = True
    except IndexError:
        raise _broken() from None
    return changed


def _behind_number(block: bytes, at: int) -> int:
    """5.1: where an integer is over that does not fit into the prefix at `at`."""
    last = at + _MOST_OCTETS
    at += 1
    while block[at] & 0x80:
        at += 1
        if at > last:
            raise _broken()
    return at + 1


def _behind_string(block: bytes, at: int, strings: list[_Huffman], number: int, is_value: bool) -> int:
    """5.2: where the string that begins at `at` is over."""
    octet = block[at]
    length = octet & 0x7F
    start = at + 1
    if length == 0x7F:
        start = _behind_number(block, at)
        for shift, more in enumerate(block[at + 1 : start]):
            length += (more & 0x7F) << 7 * shift
    end = start + length
    if end > len(block):
        raise _broken()
    if octet >= 0x80 and length:
        strings.append((number, is_value, block[end - 1]))
    return end
