"""Parameters of a query, as routes and expressions read them: by name, after form decoding.

WHATWG URL, application/x-www-form-urlencoded: "&" between parameters, "+" and percent escapes. One pass over the text
answers for all names, so that a caller that asks often asks a map. How many there are is for clients to choose: more
than a limit are not read at all. Imports nothing that compiles expressions: routes read it too.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from gatewright.cel.errors import TooMany

MAX_PARAMETERS: Final = 1000
"""Parameters of one query, unless a listener's `maxQueryParameters` says otherwise. They are counted by the "&" between
them."""


def read(query: bytes, most: int = MAX_PARAMETERS) -> dict[bytes, bytes]:
    """The first value of each parameter, names and values decoded. Raises TooMany."""
    limit(query.count(b"&"), most)
    decoded = _plain if b"%" not in query and b"+" not in query else _decoded
    found: dict[bytes, bytes] = {}
    for part in query.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            found.setdefault(decoded(name), value)
    return found if decoded is _plain else {name: _decoded(value) for name, value in found.items()}


def limit(separators: int, most: int = MAX_PARAMETERS) -> None:
    """Raises TooMany for a query with so many "&"."""
    if separators >= most:
        raise TooMany(f"more than {most:,} query parameters")


def _plain(text: bytes) -> bytes:
    return text


def _decoded(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))
