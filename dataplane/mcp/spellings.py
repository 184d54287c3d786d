"""Other spellings of what policies judge: of methods, of names in arguments, of URIs, which some servers make normal
before they look for them. What is judged must be what the server reads, so what could be read as something else is
refused, or judged as both. Keys that MCP knows are checked in `messages.exact`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from dataplane.mcp.messages import INVALID_PARAMS, Malformed
from dataplane.mcp.methods import METHODS

MAX_NAME: Final = 8192
"""Characters of names that are compared with others."""

_METHODS: Final = frozenset(name.casefold() for name in METHODS)
_NO_LETTERS: Final = re.compile(r"[^a-z/]")


def is_disguised(method: str) -> bool:
    """Whether a method that is not known is a known one but for case, spaces and the like, or too long to say."""
    return len(method) > MAX_NAME or _NO_LETTERS.sub("", method.casefold()) in _METHODS


def check_values(value: Any) -> None:
    """Raises `Malformed` for an object that has one name in two spellings. `value`: as JSON was read, bounded."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if len({key.casefold() for key in each}) != len(each):
                raise Malformed(INVALID_PARAMS, "params.arguments has one name in two spellings")
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)


_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_DROPPED: Final = re.compile(r"[\t\r\n]")


def normal(uri: str) -> str:
    """A URI as those read it who make it normal (RFC 3986 6.2.2, and WHATWG URL of tabs and line ends): scheme and host
    in lower case, percent codes decoded, no dot segments. What is no URI stays."""
    found = _URI.fullmatch(_DROPPED.sub("", uri).strip())
    if found is None:
        return uri
    scheme, _, host, path, rest = found.groups()
    authority = "" if host is None else f"//{_decoded(host).lower()}"
    return f"{scheme.lower()}:{authority}{_without_dots(_decoded(path))}{_decoded(rest)}"


def spelled(kind: str, name: str) -> Iterable[str]:
    """The names that an item may be known by: the one that it has, and where a server may read it as another one, that.
    Raises `Malformed`."""
    if kind != "resource":
        return (name,)
    if len(name) > MAX_NAME:
        raise Malformed(INVALID_PARAMS, f"a URI has more than {MAX_NAME} characters")
    other = normal(name)
    return (name,) if other == name else (name, other)


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return text


def _without_dots(path: str) -> str:
    if "." not in path:
        return path
    kept: list[str] = []
    *segments, last = path.split("/")
    for segment in (*segments, last):
        if segment == "..":
            del kept[max(1, len(kept) - 1) :]
        elif segment != ".":
            kept.append(segment)
    return "/".join([*kept, ""] if last in (".", "..") else kept)
