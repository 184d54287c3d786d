"""Other spellings of what policies judge: of methods, of names in arguments, of URIs, which some servers make normal
before they look for them. What is judged must be what the server reads, so what could be read as something else is
refused, or judged as both. Keys that MCP knows are checked in `messages.exact`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from dataplane.mcp import readings
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


class Spelling(NamedTuple):
    """A name as a server may read it. `is_lenient`: as lenient ones do (`readings`), or with characters escaped that no
    URI can have; what is allowed by its own name is not refused for that, what is denied or required counts."""

    name: str
    is_lenient: bool = False


_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):([^?#]*)(.*)", re.DOTALL)
_DROPPED: Final = re.compile(r"[\t\r\n]")
_TRIMMED: Final = "".join(map(chr, (*range(0x21), 0xFEFF)))
_PORTS: Final = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443", "ftp": ":21", "file": ""}
"""Schemes of which WHATWG URL knows more than others do, with the port that they need not say."""


def spelled(kind: str, name: str) -> Iterable[Spelling]:
    """The names that an item may be known by: the one that it has, and where a server may read it as another one,
    those. Raises `Malformed`."""
    if kind != "resource" or (len(name) <= MAX_NAME and _is_plain(name)):
        return (Spelling(name),)
    if len(name) > MAX_NAME:
        raise Malformed(INVALID_PARAMS, f"a URI has more than {MAX_NAME} characters")
    found, lenient = _read_as(name)
    text = _trimmed(name)
    for other in {readings.unwrapped(text), readings.behind_user(text)} - {text}:
        strict, more = _read_as(other)
        if "\\" in name:  # which host it names is ambiguous
            found |= strict
        lenient |= strict | more
    return (*map(Spelling, found), *(Spelling(each, True) for each in lenient if each not in found))


_Names = dict[str, None]
"""A set with an order."""


def _read_as(name: str) -> tuple[_Names, _Names]:
    """The names of a URI as those read it who make it normal, and as lenient ones do."""
    read, decoded = normal(name), _decoded(name)
    found = dict.fromkeys((name, read, read if decoded == name else normal(decoded)))
    files = tuple(readings.as_files(_trimmed(name)))
    if ".." in _BEHIND_PATH.sub("", name):  # of two files it is the one outside that no rule may miss
        found |= dict.fromkeys(files)
    if read.startswith("file:"):
        return found, dict.fromkeys((*files, *map(_escaped, files), _escaped(read)))
    fetched = dict.fromkeys(_without_port(normal(each)) for each in (read, *readings.fetched(read)))
    escaped = [_escaped(each) for each in fetched]
    return found, dict.fromkeys((*files, *map(_escaped, files), *fetched, *escaped, *map(_rooted, escaped)))


_BEHIND_PATH: Final = re.compile(r"^[^?#]*")


_is_plain: Final = re.compile(
    r"(?:file://|(?!file:)[a-z][a-z0-9+-]*://(?![^/]*xn--)(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*)"
    r"(?:/[A-Za-z0-9_~!$&'()*+,=@-](?:[A-Za-z0-9._~!$&'()*+,=@-]*[A-Za-z0-9_~!$&'()*+,=@-])?)+"
).fullmatch
"""Most URIs: everybody reads them as they stand."""


def normal(uri: str) -> str:
    """A URI as those read it who make it normal (RFC 3986 6.2.2, and WHATWG URL of tabs and line ends, backslashes,
    slashes that are missing or too many, ports and `localhost`): scheme and host in lower case, no dot segments, no
    escapes of what needs none. What is no URI stays."""
    found = _URI.fullmatch(_trimmed(uri))
    if found is None:
        return uri
    scheme, hierarchy, rest = found[1].lower(), _plain(found[2]), _plain(found[3])
    host, path = _parted(scheme, hierarchy)
    authority = "" if host is None else f"//{host.lower()}"
    return f"{scheme}:{authority}{_without_dots(path)}{rest}"


def _trimmed(uri: str) -> str:
    return _DROPPED.sub("", uri).strip().strip(_TRIMMED)


def _without_port(uri: str) -> str:
    """Without the port that the scheme need not say."""
    scheme, separator, rest = uri.partition("://")
    end = re.search(r"[/?#]|$", rest)
    assert end is not None  # the end is there
    host = rest[: end.start()].removesuffix(_PORTS.get(scheme) or "\0")
    return f"{scheme}{separator}{host}{rest[end.start() :]}"


def _parted(scheme: str, hierarchy: str) -> tuple[str | None, str]:
    """Host and path; None: there is no host."""
    port = _PORTS.get(scheme)
    if port is not None:
        hierarchy = hierarchy.replace("\\", "/")
        if scheme != "file":
            hierarchy = "//" + hierarchy.lstrip("/")
        elif not hierarchy.startswith("//"):
            hierarchy = "///" + hierarchy.removeprefix("/")
    if not hierarchy.startswith("//"):
        return None, hierarchy
    host, slash, path = hierarchy[2:].partition("/")
    if port:
        host = host.removesuffix(port)
    elif scheme == "file" and host.lower() == "localhost":
        host = ""
    return host, slash + path


_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPES: Final = {f"%{code:02X}": chr(code) if chr(code) in _UNRESERVED else f"%{code:02X}" for code in range(256)}
_NONE_OF_A_URI: Final = re.compile(r"[^A-Za-z0-9%:/?#\[\]@!$&'()*+,;=._~-]+")


def _plain(text: str) -> str:
    """Without escapes of what needs none; others in upper case."""
    return text if "%" not in text else _ESCAPE.sub(lambda found: _ESCAPES[found[0].upper()], text)


def _escaped(text: str) -> str:
    """With what a URI cannot have escaped."""
    return _NONE_OF_A_URI.sub(lambda found: "%" + found[0].encode().hex("%").upper(), text)


def _rooted(uri: str) -> str:
    """With the path of a root, where a host is all that it has."""
    return _HOST_ALONE.sub(r"\g<0>/", uri, count=1)


_HOST_ALONE: Final = re.compile(r"^(?:https?|wss?|ftp)://[^/?#]+(?=[?#]|$)")


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
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join([*kept, ""] if last in (".", "..") else kept)
