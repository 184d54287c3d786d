"""Where messages are posted in the older transport of two endpoints (MCP 2024-11-05, HTTP with SSE): the first event of
a server's stream names it. It counts as a path of that server and no other: an event that names another origin is
refused, since a client that follows it would send messages, and credentials with them, to somebody else.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

MAX_ENDPOINT: Final = 4096
"""Characters of where messages are posted."""
EVENT: Final = b"endpoint"
QUERY: Final = b"sessionId"
"""Of the endpoint that our own clients get: what names their stream."""

_PORTS: Final = {"http": 80, "https": 443}


class WrongEndpoint(Exception):
    """An event that names no place which messages may be posted to. The text is for the log."""


def posted_to(data: bytes, scheme: str, authority: str, path: str) -> bytes:
    """Path and query that an `endpoint` event names. `scheme`, `authority` and `path`: of the stream that it came on.
    Raises `WrongEndpoint`."""
    text = data.decode("latin-1").strip(" ")
    if not text or len(text) > MAX_ENDPOINT or " " in text or not (text.isascii() and text.isprintable()):
        raise WrongEndpoint("its endpoint event has no URI")
    base = f"{scheme}://{authority}{path}"
    try:
        found = urlsplit(urljoin(base, text))
        is_same = _origin(found) == _origin(urlsplit(base))
    except ValueError:
        raise WrongEndpoint("its endpoint event has no URI") from None
    if not is_same:
        raise WrongEndpoint("its endpoint event names another origin")
    target = found.path or "/"
    return f"{target}?{found.query}".encode() if found.query else target.encode()


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Raises ValueError for a port that is none."""
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def is_stream(path: bytes) -> bool:
    """Whether a path is that of our own streams: its last segment is `sse`."""
    return path.rpartition(b"/")[2] == b"sse"


def stream_of(query: bytes) -> bytes | None:
    """The stream that a client's POST names in its query; None: it names none."""
    for each in query.split(b"&"):
        name, _, value = each.partition(b"=")
        if name == QUERY:
            return value
    return None


def endpoint_of(target: bytes, stream: str) -> bytes:
    """Where a client posts its messages. `target`: path and query that it opened its stream with."""
    path, _, query = target.partition(b"?")
    kept = [each for each in query.split(b"&") if each and each.partition(b"=")[0] != QUERY]
    return b"%b?%b" % (path, b"&".join([*kept, QUERY + b"=" + stream.encode()]))
