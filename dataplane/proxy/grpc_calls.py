"""What an exchange does otherwise where its request is gRPC's or gRPC-Web's.

Answers of our own are statuses of gRPC, `grpc-timeout` is a deadline, and the status is known to log and expressions.
An exchange without `grpc` never comes here. How gRPC-Web becomes gRPC is in `layers/grpc_web`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.http import grpc
from dataplane.http.grpc import Call
from dataplane.http.heads import Head
from dataplane.proxy.deadlines import NEVER
from dataplane.upstream import lease
from dataplane.upstream.versions import HTTP_2

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange

MOST_TEXT: Final = 1024
"""Bytes of an answer's text that become `grpc-message`: header lists of clients are small."""

LONGEST: Final = 86_400.0
"""Seconds. A longer `grpc-timeout` is no deadline: nothing is kept for it."""

_CONTENT: Final = (b"content-type", b"content-length", b"content-encoding", b"grpc-status", b"grpc-message")
"""Lines of a reply that speak of a content that is left out, or are written here."""


def recognise(x: ActiveExchange) -> None:
    """Note what kind of call a request is whose head speaks of gRPC."""
    value = x.request.get(b"content-type")
    kind = grpc.NOT_GRPC if value is None else grpc.kind(value)
    if kind:
        x.grpc = Call(kind)


def seconds(x: ActiveExchange, limit: float | None) -> float | None:
    """How long the call may take from now on: the smaller of `timeouts.request` and `grpc-timeout` (PROTOCOL-HTTP2,
    Requests). One that is malformed has no effect here, as in gRPC's own core, and passes on: the endpoint judges."""
    value = x.request.get(b"grpc-timeout")
    asked = None if value is None else grpc.timeout(value)
    if asked is None or asked > LONGEST:
        return limit
    return asked if limit is None else min(asked, limit)


def begins(call: Call, head: ResponseHead, end: bool) -> None:
    """A response begins."""
    call.is_sized = head.length > 0
    if end:
        call.status = grpc.status_in(head.block.lower() if head.low is None else head.low)


def ended(x: ActiveExchange, lines: bytes) -> None:
    """A response ends with these trailers."""
    call = x.grpc
    if call is not None:
        call.status = grpc.status_in(b"\r\n" + lines.lower())


def answer(x: ActiveExchange, reply: Reply) -> Reply:
    """A failure reply as a client of gRPC understands it: HTTP's 200, and nothing but a head (PROTOCOL-HTTP2,
    Responses: Trailers-Only)."""
    if x.grpc is None and b"application/grpc" in x.request.low:  # of a head alone
        recognise(x)
    call = x.grpc
    if call is None or x.method in (b"HEAD", b"OPTIONS"):
        return reply
    call.status = grpc.status_of(reply.status, reply.reason)
    content_type = x.request.get(b"content-type") or b"application/grpc"
    text = reply.body if reply.content_type == b"text/plain" and len(reply.body) <= MOST_TEXT else b""
    others = Head(b"\r\n" + reply.headers)
    for name in _CONTENT:
        others.remove(name)
    lines = grpc.trailers_only(content_type, call.status, text) + others.block[2:]
    return replace(reply, status=200, body=b"", headers=lines)


def cut(x: ActiveExchange) -> bool:
    """The deadline of a call whose response has begun: end it with a status where trailers can say so. False: somebody
    has to break it off, for a message of gRPC-Web may be out in part, and a length may be promised (RFC 9113 8.1.1)."""
    call, down = x.grpc, x.down
    if call is None or call.kind != grpc.GRPC or call.is_sized or x.version != HTTP_2:
        return False
    if x.delayed_response is not None or x.waiting is not None:
        return False
    lease.release(x)
    x.deadline = NEVER
    x.reason, call.status = "RequestDeadline", grpc.DEADLINE_EXCEEDED
    down.trailers(b"grpc-status: %d\r\ngrpc-message: request timeout\r\n" % call.status)
    x.complete()
    return True
