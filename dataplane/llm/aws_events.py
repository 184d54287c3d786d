"""AWS's event stream: binary messages, each with headers and two checksums, split anywhere. Pure.

`application/vnd.amazon.eventstream`: total length, length of the headers, CRC of both, headers, payload, CRC of all
that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

MAX_FRAME: Final = 1_048_576
"""Bytes of one message. A stream with one that is larger cannot be translated."""
_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_LEAST: Final = _PRELUDE.size + _CRC.size
_STRING: Final = 7
SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; of type 6 (bytes) and 7 (text) a length of two bytes comes first."""
_WITH_LENGTH: Final = (6, _STRING)


class NoFrame(Exception):
    """Bytes are no message of an event stream."""


class Frame(NamedTuple):
    """`kind`: event, exception or error; `name`: of the event or exception; `said`: of an error, what is wrong."""

    kind: str
    name: str
    payload: bytes
    said: str = ""


class Frames:
    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Those that are complete now, each before the next one is looked at. Raises `NoFrame`, behind those that are
        good: what is wrong with a stream is the same however it is split."""
        held = self._held
        held += data
        start = 0
        try:
            while len(held) - start >= _LEAST:
                total = _total(bytes(held[start : start + _PRELUDE.size]))
                if len(held) - start < total:
                    break
                frame = _frame(bytes(held[start : start + total]))
                start += total
                yield frame
        finally:
            del held[:start]


def _total(prelude: bytes) -> int:
    total, headers, crc = _PRELUDE.unpack(prelude)
    if crc32(prelude[:8]) != crc:
        raise NoFrame("the checksum of a message's beginning is wrong")
    if not _LEAST <= total <= MAX_FRAME or headers > total - _LEAST:
        raise NoFrame("the length of a message is wrong or too large")
    return int(total)


def _frame(data: bytes) -> Frame:
    if crc32(data[: -_CRC.size]) != _CRC.unpack(data[-_CRC.size :])[0]:
        raise NoFrame("the checksum of a message is wrong")
    size = _PRELUDE.unpack_from(data)[1]
    end = _PRELUDE.size + size
    try:
        headers = _headers(data[_PRELUDE.size : end])
    except (IndexError, KeyError, struct.error, UnicodeDecodeError):
        raise NoFrame("the headers of a message cannot be read") from None
    kind = headers.get(":message-type", "event")
    name = headers.get(":event-type") or headers.get(":exception-type") or headers.get(":error-code", "")
    return Frame(kind, name, data[end : -_CRC.size], headers.get(":error-message", ""))


def _headers(data: bytes) -> dict[str, str]:
    """Those that are text."""
    found, at = {}, 0
    while at < len(data):
        name_end = at + 1 + data[at]
        kind = data[name_end]
        name, at = data[at + 1 : name_end].decode(), name_end + 1
        if kind in _WITH_LENGTH:
            (size,) = struct.unpack_from(">H", data, at)
            at += 2
        else:
            size = SIZES[kind]
        if at + size > len(data):
            raise IndexError
        if kind == _STRING:
            found[name] = data[at : at + size].decode()
        at += size
    return found
