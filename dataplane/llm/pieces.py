"""JSON of a peer that is decoded piece by piece, so that others are served in between. Pure.

A value that is large is cut into the items of its array or the fields of its object, which a scan finds without
building any of them; so are those again that are large themselves. What comes is what one call would have made. The
names of one object are found at once, however many they are.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final, TypeVar

import msgspec

PIECE: Final = 65_536
"""Bytes that are decoded at once: a millisecond or less."""
ITEMS: Final = 256
"""Of an array or an object, between two pauses at most."""
NAMES: Final = 4_096
"""An object of more is decoded as a whole: to find them costs as much."""
LEVELS: Final = 16
"""Large values within large ones are cut so deep: each level is scanned anew."""

Made = TypeVar("Made")
Each = TypeVar("Each")
Steps = Generator[None, None, Made]
"""Work that yields where its driver may pause."""
_anything: Final = msgspec.json.Decoder()
_array: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decoded(data: bytes, levels: int = LEVELS) -> Steps[Any]:  # Any: JSON
    """The value. Raises what `msgspec.json.Decoder.decode` does."""
    if len(data) > PIECE and levels:
        first = data[:PIECE].lstrip()[:1]
        if first == b"[":
            return (yield from _items(_array.decode(data), levels - 1))
        if first == b"{":
            return (yield from _fields(data, levels - 1))
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
    raws = _object.decode(data)
    yield
    if len(raws) > NAMES:
        whole: dict[str, Any] = _anything.decode(data)
        return whole
    found: dict[str, Any] = {}
    for part in _parts(list(raws.items())):
        for name, each in part:
            found[name] = yield from decoded(bytes(each), levels)
        yield
    return found


def _parts(many: list[Each]) -> Iterator[list[Each]]:
    return (many[at : at + ITEMS] for at in range(0, len(many), ITEMS))
