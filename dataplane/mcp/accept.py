"""Whether a client takes a media type, from its Accept header (RFC 9110 12.5.1), as MCP wants it: by name. `*/*` is
what programs send that know nothing of MCP; of JSON it is enough."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

STREAM: Final = b"text/event-stream"
JSON: Final = b"application/json"
_ANY: Final = frozenset((b"*/*", b"application/*"))


def _types(values: list[bytes]) -> frozenset[bytes]:
    found = set()
    for value in values:
        for part in value.lower().split(b","):
            name, _, parameters = part.partition(b";")
            if b"q=0" not in parameters.replace(b" ", b"") or not _is_zero(parameters):
                found.add(name.strip(b" \t"))
    return frozenset(found)


def _is_zero(parameters: bytes) -> bool:
    for each in parameters.replace(b" ", b"").split(b";"):
        if each.startswith(b"q=") and each.removeprefix(b"q=").strip(b"0.") == b"":
            return True
    return False


class Taken(NamedTuple):
    stream: bool
    json: bool


def taken(values: list[bytes]) -> Taken:
    """Which of the two a client takes."""
    if len(values) == 1 and len(values[0]) <= _SHORT:
        return remembered(values[0])
    return _taken(values)


def _taken(values: list[bytes]) -> Taken:
    found = _types(values)
    return Taken(STREAM in found, JSON in found or not found.isdisjoint(_ANY))


_SHORT: Final = 128
"""Bytes of a value that is remembered: clients have a few, and send the same each time."""


@lru_cache(64)
def remembered(value: bytes) -> Taken:
    return _taken([value])
