"""How a message is written in HTTP/1.1: its head, and content in chunks where its length is unknown. Pure.

What the carriers of `server/h1` and `upstream/h1` write; the readers beside this file read it back.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from dataplane.http.h1 import chunked

CHUNKED_LINE = b"transfer-encoding: chunked\r\n"
CLOSE_LINE = b"connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


@cache
def status_line(status: int) -> bytes:
    """`HTTP/1.1 404 Not Found`. `status`: 100 to 999."""
    return b"HTTP/1.1 %d %b" % (status, _PHRASES.get(status, b""))


def request(method: bytes, target: bytes, block: bytes, first: bytes) -> bytes:
    """A request head with what there is of its (framed) content."""
    return b"".join((method, b" ", target, b" HTTP/1.1", block, b"\r\n", first))


def upgrade_lines(protocol: bytes) -> bytes:
    """What asks for, or agrees to, another protocol (RFC 9110 7.8)."""
    return b"connection: upgrade\r\nupgrade: %b\r\n" % protocol


def chunk(data: bytes, end: bool) -> bytes:
    """Content, of which this is the last when `end`; in chunks."""
    if not data:
        return chunked.LAST if end else b""
    return chunked.encode(data) + chunked.LAST if end else chunked.encode(data)
