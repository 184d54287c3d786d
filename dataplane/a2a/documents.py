"""JSON and protobuf of unknown authors, read so that no other reader takes them otherwise, at a cost that is bounded by
size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

MAX_FIELDS: Final = 4096
"""Fields of one protobuf message that are looked at."""
MAX_NUMBER: Final = (1 << 29) - 1
"""The largest number of a field that protobuf has."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED: Final = {FIXED64: 8, FIXED32: 4}


class Unreadable(Exception):
    """It cannot be read, or two readers may read it differently. The text is for the log."""


def parse(data: bytes) -> Any:
    """A JSON text in UTF-8 in which no object has a name twice (RFC 8259 4: what readers make of that differs). Raises
    `Unreadable`."""
    try:
        return _DECODER.decode(data.decode())
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {str(error)[:80]}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("JSON with an object that has a name twice")
    return found


def _constant(word: str) -> NoReturn:
    raise ValueError(word)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def write(value: Any) -> bytes:
    """A value as JSON. Raises `Unreadable` for numbers that JSON cannot write, and what is too deep."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"cannot be written as JSON: {str(error)[:80]}") from None


def fields(message: bytes, most: int = MAX_FIELDS) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a protobuf message, in their order: integers, bytes for all that has a length, None for
    what has a fixed size, of which A2A has none here. Raises `Unreadable`."""
    at, size, count = 0, len(message), 0
    while at < size:
        count += 1
        if count > most:
            raise Unreadable(f"a message with more than {most} fields")
        key, at = _varint(message, at)
        kind, number = key & 7, key >> 3
        if not 1 <= number <= MAX_NUMBER:
            raise Unreadable("a field without a number of protobuf")  # some readers cut off what is too large
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        length, at = _varint(message, at) if kind == BYTES else (_FIXED.get(kind, size + 1), at)
        if at + length > size:
            raise Unreadable("a message that is cut off")
        yield number, message[at : at + length] if kind == BYTES else None
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:  # most have one byte
        return message[at], at + 1
    value = shift = 0
    for position in range(at, min(at + 10, len(message))):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    raise Unreadable("a number that does not end")


class Fields:
    """The fields of one message by their numbers: it is read once, however many of them are asked for. Raises
    `Unreadable`, as `fields`."""

    __slots__ = ("_values",)

    def __init__(self, message: bytes, most: int = MAX_FIELDS) -> None:
        values: dict[int, list[Any]] = {}
        for number, value in fields(message, most):
            values.setdefault(number, []).append(value)
        self._values = values

    def bytes_of(self, number: int) -> bytes | None:
        """What has a length; the last one where a field is there several times (protobuf's own rule for single fields);
        None: it is not there. A value of another kind is an unknown field, for parsers too."""
        return next((each for each in reversed(self._values.get(number, ())) if isinstance(each, bytes)), None)

    def part(self, number: int) -> bytes:
        """A message within this one. Parsers merge parts of it that come apart; so are they here."""
        return b"".join(each for each in self._values.get(number, ()) if isinstance(each, bytes))


def field(message: bytes, *path: int, most: int = MAX_FIELDS) -> bytes | None:
    """What has a length, at a path of field numbers, as `Fields.bytes_of`. Raises `Unreadable`."""
    *outer, last = path
    for each in outer:
        message = part(message, each, most)
    return Fields(message, most).bytes_of(last)


def number(message: bytes, *path: int, most: int = MAX_FIELDS) -> int | None:
    """The same of an integer."""
    *outer, last = path
    for each in outer:
        message = part(message, each, most)
    found = None
    for number, value in fields(message, most):
        if number == last and isinstance(value, int):
            found = value
    return found


def part(message: bytes, wanted: int, most: int = MAX_FIELDS) -> bytes:
    """A message within another, as `Fields.part`. Raises `Unreadable`."""
    return b"".join(value for number, value in fields(message, most) if number == wanted and isinstance(value, bytes))
