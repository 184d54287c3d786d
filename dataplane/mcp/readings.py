"""What lenient servers make of a URI, beyond making it normal (`spellings.normal`): those that serve files drop its
host, query and fragment, those that fetch it leave out what does not choose the resource. Pure; linear in the length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import product
from typing import Final
from urllib.parse import unquote

from dataplane.mcp import hosts

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+|[A-Za-z](?=://)):(.*)", re.DOTALL)
"""One letter and a colon are a drive."""
_DELIMITERS: Final = re.compile(r"[?#]")
_DRIVE: Final = re.compile(r"/([A-Za-z])[:|](?=/|$)")
_AUTHORITY: Final = re.compile(r"([a-z][a-z0-9+.-]*:)//([^/?#]*)(.*)", re.DOTALL)
_UP_TO_A_SLASH: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/]*)(.*)", re.DOTALL)
_HOST_AND_PORT: Final = re.compile(r"(.*?)(?::0*([0-9]*))?", re.DOTALL)
_PARAMETERS: Final = re.compile(r";[^/?#]*")
_DECODINGS: Final = 3
"""How often escapes are resolved: a gateway before the server, the server, and the library that opens the file."""


def unwrapped(uri: str) -> str:
    """Without the delimiters that RFC 3986 C has for URIs in text, `<URL:...>`: some libraries take them off."""
    text = uri.strip()
    if text[:1] == "<" and text[-1:] == ">":
        text = text[1:-1].strip()
    return text[4:].strip() if text[:4].lower() == "url:" else text


def behind_user(uri: str) -> str:
    """As those read it to whom all before the last `@` is a user, though what others take for the end of the host is
    within it."""
    found = _UP_TO_A_SLASH.fullmatch(uri)
    if found is None or "@" not in found[2]:
        return uri
    return f"{found[1]}{found[2].rpartition('@')[2]}{found[3]}"


# --- files


def as_files(uri: str) -> Iterator[str]:
    """The files that a server may open for a URI of `file`, or for a bare path, as `file:///path`: without host (or
    with the host as the first segment, as those read it who cut off `file://`), query, fragment and parameters, without
    slashes that are doubled or at the end, drives in upper case; as file systems that compose letters, or take them
    apart, name them, and as Windows does. Nothing for other schemes. May repeat itself."""
    found = _SCHEME.fullmatch(uri)
    if found is not None and found[1].lower() != "file":
        return
    rest = uri if found is None else found[2]
    cut, decoded = _cut(rest), _decoded(rest)
    texts = dict.fromkeys((decoded if cut == rest else _decoded(cut), decoded, _cut(decoded)))
    paths = [path for text in texts for path in _paths(text.partition("\0")[0].replace("\\", "/"))]
    paths += [_PARAMETERS.sub("", path) for path in paths if ";" in path]
    for path in dict.fromkeys(paths):  # most are alike, and what is long is walked once
        for segments in _on_disk(_walked(path)):
            yield "file://" + _DRIVE.sub(lambda found: f"/{found[1].upper()}:", "/" + "/".join(segments), count=1)


def _cut(text: str) -> str:
    """Without query and fragment."""
    return _DELIMITERS.split(text, maxsplit=1)[0]


def _paths(hierarchy: str) -> Iterator[str]:
    """Without host, and with it; slashes at the beginning are one for everybody."""
    if hierarchy.startswith("//"):
        yield hierarchy[2:].partition("/")[2].lstrip("/")
    yield hierarchy.lstrip("/")


def _decoded(text: str) -> str:
    for _ in range(_DECODINGS):
        if "%" not in text or (found := unquote(text)) == text:
            break
        text = found
    return text


def _walked(path: str) -> list[str]:
    """The segments as file systems walk them, from their root."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept:
                kept.pop()
        elif segment and segment != ".":
            kept.append(segment)
    return kept


def _on_disk(segments: list[str]) -> Iterator[list[str]]:
    yield segments
    if not all(map(str.isascii, segments)):
        for form in ("NFC", "NFD"):
            yield [unicodedata.normalize(form, each) for each in segments]
    if any(":" in each or each[-1] in ". " for each in segments):
        drive = segments[:1] if len(segments[0]) == 2 and segments[0][1] == ":" else []
        named = (each.partition(":")[0].rstrip(". ") for each in segments[len(drive) :])  # no stream of a file (NTFS)
        yield drive + [each for each in named if each]


# --- what is fetched


def fetched(uri: str) -> Iterator[str]:
    """A normal URI without what does not choose the resource (RFC 3986 3.2, 3.3, 3.5): fragment, user, an empty port
    and zeros before one, an empty query, parameters of segments; the host by each of its names (`hosts`)."""
    text = uri.partition("#")[0].removesuffix("?")
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        yield text
        return
    scheme, authority, rest = found.groups()
    host_and_port = _HOST_AND_PORT.fullmatch(_decoded(authority.rpartition("@")[2]))
    assert host_and_port is not None  # it takes anything
    port = f":{host_and_port[2]}" if host_and_port[2] else ""
    path, mark, query = rest.partition("?")
    rests = dict.fromkeys((rest, _PARAMETERS.sub("", path) + mark + query))
    for name, each in product(hosts.names(host_and_port[1]), rests):
        yield f"{scheme}//{name}{port}{each}"
