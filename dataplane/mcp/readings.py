"""What lenient servers make of a URI, beyond making it normal (`spellings.normal`): those that serve files drop its
host, query and fragment, those that fetch it leave out what does not choose the resource. Pure; linear in the length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+|[A-Za-z](?=://)):(.*)", re.DOTALL)
"""One letter and a colon are a drive."""
_DELIMITERS: Final = re.compile(r"[?#]")
_DRIVE: Final = re.compile(r"/([A-Za-z])[:|](?=/|$)")
_AUTHORITY: Final = re.compile(r"([a-z][a-z0-9+.-]*:)//([^/?#]*)(.*)", re.DOTALL)
_HOST_AND_PORT: Final = re.compile(r"(.*?)\.?(?::0*([0-9]*))?", re.DOTALL)
_DECODINGS: Final = 3
"""How often escapes are resolved: a gateway before the server, the server, and the library that opens the file."""


def as_files(uri: str) -> Iterator[str]:
    """The files that a server may open for a URI of `file`, or for a bare path, as `file:///path`: without host (or
    with the host as the first segment, as those read it who cut off `file://`), query and fragment, without slashes
    that are doubled or at the end, drives in upper case. Nothing for other schemes."""
    found = _SCHEME.fullmatch(uri)
    if found is not None and found[1].lower() != "file":
        return
    rest = uri if found is None else found[2]
    decoded = _decoded(rest)
    texts = dict.fromkeys((_decoded(_cut(rest)), decoded, _cut(decoded)))
    paths = (path for text in texts for path in _paths(text.partition("\0")[0].replace("\\", "/")))
    for path in dict.fromkeys(paths):  # most are alike, and what is long is walked once
        yield f"file://{_walked(path)}"


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


def _walked(path: str) -> str:
    """As file systems walk it, from their root."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept:
                kept.pop()
        elif segment and segment != ".":
            kept.append(segment)
    return _DRIVE.sub(lambda found: f"/{found[1].upper()}:", "/" + "/".join(kept), count=1)


def fetched(uri: str) -> str:
    """A normal URI without what does not choose the resource (RFC 3986 3.2, 3.5): fragment, user, an empty port and
    zeros before one, the dot at the end of a host; the host in the letters that IDNA maps it to (UTS 46)."""
    found = _AUTHORITY.fullmatch(uri.partition("#")[0])
    if found is None:
        return uri.partition("#")[0]
    scheme, authority, rest = found.groups()
    host_and_port = _HOST_AND_PORT.fullmatch(_decoded(authority.rpartition("@")[2]))
    assert host_and_port is not None  # it takes anything
    host, port = unicodedata.normalize("NFKC", host_and_port[1]).lower().replace("\u3002", "."), host_and_port[2]
    return f"{scheme}//{host.removesuffix('.')}{':' + port if port else ''}{rest}"
