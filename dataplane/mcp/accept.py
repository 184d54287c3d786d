"""Whether a client takes a media type, from its Accept header (RFC 9110 12.5.1), as MCP wants it: by name. `*/*` is
what programs send that know nothing of MCP; of JSON it is enough."""

from __future__ import annotations

from typing import Final

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


def takes_stream(values: list[bytes]) -> bool:
    return STREAM in _types(values)


def takes_json(values: list[bytes]) -> bool:
    found = _types(values)
    return JSON in found or not found.isdisjoint(_ANY)
