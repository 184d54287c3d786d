"""JSON of a peer that is decoded piece by piece, so that others are served in between. Pure.

A value that is large is cut into the items of its array or the fields of its object, which a scan finds without
building any of them; so are those again that are large themselves. What comes is what one call would have made. Objects
of many names are cut by a scan for commas, as to find all names at once takes long.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, Final, TypeVar

import msgspec

from dataplane.llm import deep_pieces

PIECE: Final = 65_536
"""Bytes that are decoded at once: a millisecond or less."""
ITEMS: Final = 256
"""Of an array or an object, between two pauses at most."""
NAMES: Final = 4_096
"""Of one object, that are found at once; also brackets, commas and strings that are scanned between two pauses."""
LEVELS: Final = 16
"""Large values within large ones are cut so deep: each level is scanned anew."""
SCANNED: Final = 4
"""Large objects within large values are cut between names so deep, each level in a scan that takes a tenth of a second
for 2 MB. What is deeper and has many names is decoded in one scan for all levels (`deep_pieces`)."""

Made = TypeVar("Made")
Each = TypeVar("Each")
Steps = Generator[None, None, Made]
"""Work that yields where its driver may pause."""
_anything: Final = msgspec.json.Decoder()
_array: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_token: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL).finditer
"""A string (the last one may lack its end: it is looked at once), or what opens, closes and parts."""
_OPENING, _CLOSING, _COMMA = frozenset(b"[{"), frozenset(b"]}"), ord(",")
_EMPTY: Final = b" \t\r\n}"


def decoded(data: bytes, levels: int = LEVELS) -> Steps[Any]:  # Any: JSON
    """The value. Raises what `msgspec.json.Decoder.decode` does."""
    if len(data) > PIECE and levels:
        first = data[:PIECE].lstrip()[:1]
        many = first in (b"{", b"[") and data.count(b":") > NAMES
        if many and levels <= LEVELS - SCANNED:
            return (yield from deep_pieces.decoded(data))
        if first == b"[":
            return (yield from _items(_array.decode(data), levels - 1))
        if first == b"{":
            return (yield from (_many_fields if many else _fields)(data, levels - 1))
    return _anything.decode(data)


def _items(raws: list[msgspec.Raw], levels: int) -> Steps[list[Any]]:
    found: list[Any] = []
    for part in _parts(raws):
        yield
        joined = b",".join(part)
        if len(joined) <= PIECE:
            found += _anything.decode(b"[%b]" % joined)
            continue
        for each in part:
            found.append((yield from decoded(bytes(each), levels)))
            yield
    return found


def _fields(data: bytes, levels: int) -> Steps[dict[str, Any]]:
    found: dict[str, Any] = {}
    yield from _add(found, data, levels)
    return found


def _add(found: dict[str, Any], data: bytes, levels: int) -> Steps[None]:
    raws = _object.decode(data)
    yield
    if len(raws) > NAMES:  # to find them took as long as the rest does
        found.update(_anything.decode(data))
        return
    for part in _parts(list(raws.items())):
        for name, each in part:
            found[name] = yield from decoded(bytes(each), levels)
        yield


def _many_fields(data: bytes, levels: int) -> Steps[dict[str, Any]]:
    """Where there may be so many names that to find them takes long: cut between two of them, and each part decoded as
    an object. All of it is JSON where each part is, and none is empty."""
    found: dict[str, Any] = {}
    start = data.index(b"{") + 1
    for end in (yield from _cuts(data, start)):
        part = b"{%b" % data[start:end] if end == len(data) else b"{%b}" % data[start:end]
        if not data[start:end].strip(_EMPTY):
            _anything.decode(data)  # which says where
        if len(part) <= PIECE:
            found.update(_anything.decode(part))
            yield
        else:
            yield from _add(found, part, levels)
        start = end + 1
    return found


def _cuts(data: bytes, start: int) -> Steps[list[int]]:
    """Commas between fields, one for each half of a piece, and the end."""
    found: list[int] = []
    depth, wanted = 0, start + PIECE // 2
    for number, token in enumerate(_token(data, start)):
        at = token.start()
        kind = data[at]
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif kind == _COMMA and not depth and at >= wanted:
            found.append(at)
            wanted = at + PIECE // 2
        if not number % NAMES:
            yield
    return [*found, len(data)]


def _parts(many: list[Each]) -> Iterator[list[Each]]:
    return (many[at : at + ITEMS] for at in range(0, len(many), ITEMS))
