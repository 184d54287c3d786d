"""The head of an answer of our own as HTTP/1.1 has it: status line, and the headers that every such answer has.

Used by whoever sends a `chain/reply.Reply`. What is answered to what is in `chain/replies`.
"""

from __future__ import annotations

import time
from functools import lru_cache
from http import HTTPStatus

from dataplane.chain.reply import Reply
from dataplane.http.statuses import BODILESS

_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


@lru_cache(2)
def _date(now: int) -> bytes:
    """RFC 9110 5.6.7."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now)).encode()


def status_line(status: int) -> bytes:
    """`HTTP/1.1 404 Not Found`."""
    return b"HTTP/1.1 %d %b" % (status, _PHRASES.get(status, b""))


def head_of(reply: Reply) -> tuple[bytes, bytes]:
    """Status line and header block of a reply, without `connection`."""
    content_type = b"content-type: %b\r\n" % reply.content_type if reply.body and reply.content_type else b""
    length = b"" if reply.status in BODILESS else b"content-length: %d\r\n" % len(reply.body)
    date = b"date: %b\r\n" % _date(int(time.time()))
    return status_line(reply.status), b"".join((b"\r\n", content_type, length, date, reply.headers))
