"""Heads between the two vocabularies: a request's block as an HTTP/2 request, an HTTP/2 response as `messages` has it.

Pure. What a response comes to is remembered with the codec's own head, which equal responses share.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha1
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from dataplane.http.dates import is_dated
from dataplane.http.heads import Head
from dataplane.http.messages import ResponseHead
from dataplane.http.statuses import BODILESS, SWITCHING
from dataplane.upstream.versions import is_grpc

if TYPE_CHECKING:
    from dataplane.carriers import Consumer
    from dataplane.http.h2 import events

_HOST: Final = re.compile(rb"\r\nhost:[ \t]*([^\r]*)\r\n", re.IGNORECASE).search
_TRAILERS: Final = b"\r\nte: trailers"
_EMPTY: Final = b"content-length: 0\r\n"
_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}
_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 1.3."""
_HANDSHAKE: Final = (b"sec-websocket-key", b"sec-websocket-accept", b"content-length")


def authority_of(block: bytes) -> bytes:
    """The value of `host`; b"" without."""
    if block[:8].lower() == b"\r\nhost: ":  # mostly it is the first line
        return block[8 : block.find(b"\r\n", 8)].strip(b" \t")
    found = _HOST(block)
    return found[1].rstrip(b" \t") if found is not None else b""


def with_te(consumer: Consumer, block: bytes) -> bytes:
    """The block of a request, with `te: trailers` where the client takes trailers: gRPC always does, and its servers
    may insist on the line."""
    if consumer.takes_trailers or (consumer.length and is_grpc(block.lower())):
        return _TRAILERS + block  # in front: the end of a block is mostly an id that is new each time (`h2/lines`)
    return block


@cache
def status_line(status: int) -> bytes:
    """HTTP/2 has no reason phrase (RFC 9113 8.3.2): the usual one."""
    return b"HTTP/1.1 %d %b" % (status, _PHRASES.get(status, b""))


def response_head(head: events.ResponseHead, end: bool, to_head: bool) -> ResponseHead:
    """A response head as consumers know it. `to_head`: of a HEAD request.

    What ends with its head has no content, which the block then says, for clients that take a response without a length
    for one without end. Not gRPC's: there the head is the trailers, and its clients know no length."""
    line, block, low, length = status_line(head.status), head.block, head.low, head.length
    if to_head or head.status in BODILESS:
        length = 0
    elif end and length < 0 and not is_grpc(low):
        length, block, low = 0, block + _EMPTY, low + _EMPTY
    return ResponseHead(head.status, line, block, low, length, is_dated(low))


# Extended CONNECT (RFC 8441)


def connect_block(block: bytes) -> tuple[bytes, bytes]:
    """The block of an upgrade as extended CONNECT sends it, and the key of its WebSocket handshake, which that does
    without (RFC 8441 5.1)."""
    head = Head(block)
    key = head.get(_HANDSHAKE[0]) or b""
    for name in _HANDSHAKE:
        head.remove(name)
    return head.block, key


def switched(head: events.ResponseHead, protocol: bytes, key: bytes) -> ResponseHead:
    """The 101 that an accepted extended CONNECT is to who asked for an upgrade (RFC 8441 5, RFC 6455 4.2.2)."""
    made = Head(head.block, head.low)
    for name in _HANDSHAKE:
        made.remove(name)
    if key:
        made.add(b"sec-websocket-accept", b64encode(sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest()))
    return ResponseHead(SWITCHING, status_line(SWITCHING), made.block, made.low, -1, is_dated(made.low), protocol)
