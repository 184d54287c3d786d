"""The vocabulary of the raw-bytes corpus: a conversation as literal bytes and the one right answer to it.

Every file in `corpus` lists cases in these words; `judge` compares what happened with them. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AWAY = b"/away"
"""Path prefix that the gateway under test answers itself (a redirect), without asking the origin."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One complete request as the origin must receive it."""

    method: bytes = b"GET"
    target: bytes = b"/"
    host: bytes | None = b"a.example"
    """None: any single non-empty value."""
    body: bytes = b""
    has: Mapping[bytes, bytes] = field(default_factory=dict)
    """Fields that must be there, once, with exactly this value (lower-case names)."""
    lacks: tuple[bytes, ...] = ()
    """Fields that must not be there (lower-case names)."""
    trailers: Mapping[bytes, bytes] = field(default_factory=dict)
    """All trailer fields, exactly."""


@dataclass(frozen=True, slots=True)
class Case:
    """`sent` goes out in order, one write per piece. `answers` are the final statuses, `seen` what reached the origin.

    `closes`: the gateway must close after the last answer; False: the connection must be usable for another request;
    None: both are right. `silent`: closing without the last answer is right too (RFC 9112 8: a server MAY answer an
    incomplete request). A case with fewer `seen` than requests sent demands that no further complete request came out.
    """

    name: str
    rfc: str
    sent: tuple[bytes, ...]
    answers: tuple[int, ...]
    seen: tuple[Seen, ...] = ()
    closes: bool | None = False
    silent: bool = False
    half_close: bool = False
    """The client shuts down its sending side after the last piece."""
    methods: tuple[bytes, ...] = ()
    """Methods of the requests sent, where an answer's length depends on them (HEAD); default: all GET-like."""
    either: int = 0
    """A status that is right as well for the last answer: which one it is depends on how the pieces arrive."""


def refused(name: str, rfc: str, *sent: bytes, status: int = 400) -> Case:
    """Answered with `status`, closed, and the origin saw no complete request."""
    return Case(name, rfc, sent, (status,), (), closes=True)


def cut(name: str, rfc: str, *sent: bytes) -> Case:
    """The client goes away in the middle of a body: nothing complete reaches the origin, the connection ends."""
    return Case(name, rfc, sent, (400,), (), closes=True, silent=True, half_close=True)


def passed(name: str, rfc: str, sent: bytes | tuple[bytes, ...], *seen: Seen, closes: bool | None = False) -> Case:
    """Forwarded as `seen`, each answered 200; the connection stays usable unless `closes`."""
    pieces = (sent,) if isinstance(sent, bytes) else sent
    return Case(name, rfc, pieces, (200,) * len(seen), seen, closes)


def get(target: bytes, *lines: bytes, host: bytes | None = b"a.example", version: bytes = b"HTTP/1.1") -> bytes:
    """A GET request; `lines` without line ends."""
    return head(b"GET " + target + b" " + version, *lines, host=host)


def post(body: bytes, *lines: bytes, target: bytes = b"/") -> bytes:
    """A POST with `body` as it stands: the framing fields are in `lines`."""
    return head(b"POST " + target + b" HTTP/1.1", *lines) + body


def chunked(body: bytes) -> bytes:
    """A POST whose chunked body is `body`, byte for byte."""
    return post(body, b"Transfer-Encoding: chunked")


def head(start: bytes, *lines: bytes, host: bytes | None = b"a.example") -> bytes:
    named = () if host is None else (b"Host: " + host,)
    return b"\r\n".join((start, *named, *lines, b"", b""))
