"""The content of a request on its way upstream, and how fast its client is read.

It flows as it comes. It is buffered (`x.buffer`) until there is an upstream carrier to take it, between two tries, and
for steps that wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.filter import EVERY_HEADER
from dataplane.http.body import BodyBuffer
from dataplane.http.grpc import UNREAD, Call
from dataplane.http.heads import lines_without, of_usual_names, twin
from dataplane.http.rules import KEEP_NAMES
from dataplane.proxy import grpc_calls
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request import admission
from dataplane.proxy.request.dropping import DROPPING
from dataplane.proxy.response.tunnel import client_ended
from dataplane.proxy.steps import response_steps

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange

BUFFER, UPSTREAM = 1, 2
"""Reasons not to read the client, as bits of `x.paused`: enough of it is buffered; the endpoint takes no more."""


def expect(x: ActiveExchange, length: int, kind: int = UNREAD) -> None:
    """As `carriers.Carried.expect`."""
    x.has_body = True
    x.request_done = False
    x.length = length
    x.inlet = None
    x.expects = False
    x.trailers = b""
    x.claimed = 0
    x.buffer = buffer_of(x, None if length < 0 else length)
    if kind == UNREAD:
        if b"application/grpc" in x.request.low:
            grpc_calls.recognise(x)
    elif kind:
        x.grpc = Call(kind)


def buffer_of(x: ActiveExchange, length: int | None = None) -> BodyBuffer:
    """An empty one for its content. `length`: as the head says it."""
    return BodyBuffer(x.context.make_future, x.pace, length)


def received_whole(x: ActiveExchange, data: bytes) -> None:
    """As `carriers.Carried.downstream_whole`."""
    x.body_bytes = len(data)
    x.request_done = True
    x.paused = BUFFER
    x.buffer.fill(data)  # type: ignore[union-attr]  # it is expected


def received(x: ActiveExchange, data: bytes, end: bool) -> None:
    """As `carriers.Carried.downstream_content`."""
    x.body_bytes += len(data)
    if x.tunnel:
        if x.up is not None:
            x.up.content(data, end)
        if end:
            client_ended(x)
        return
    if x.bounds is not None and x.body_bytes > x.bounds.most_bytes:
        admission.too_large(x, x.bounds)
        return
    if x.inlet is not None:
        x.inlet.received(x, data, end)
        return
    onward(x, data, end)


def onward(x: ActiveExchange, data: bytes, end: bool) -> None:
    """Content on its way upstream, behind the last stage."""
    if end:
        x.request_done = True
    buffer = x.buffer
    if buffer is not None:
        if data:
            buffer.push(data)
        if end:
            buffer.end()
    elif x.up is not None:
        x.resendable = None  # too much was sent to send it all again
        if x.body_copy is not None:
            x.body_copy.sent(data, end)
        x.up.content(data, end)


def received_trailers(x: ActiveExchange, lines: bytes) -> None:
    """As `carriers.Carried.downstream_trailers`."""
    listener = x.listener
    if listener is None or listener.http.underscores != KEEP_NAMES:
        lines = of_usual_names(lines)  # it is too late to refuse the request
    if not lines or x.tunnel:
        received(x, b"", True)
    elif x.inlet is not None:
        x.inlet.received(x, b"", True, lines)
    else:
        onward_trailers(x, lines)


def onward_trailers(x: ActiveExchange, lines: bytes) -> None:
    """Trailers on their way upstream, behind the last stage."""
    x.trailers = lines
    lines = passing_trailers(x)
    if x.body_copy is not None:
        x.body_copy.trailers = lines
    if not lines or x.buffer is not None or x.up is None:
        onward(x, b"", True)
        return
    x.request_done = True
    x.resendable = None
    if x.body_copy is not None:
        x.body_copy.sent(b"", True)
    x.up.trailers(lines)


def passing_trailers(x: ActiveExchange) -> bytes:
    """Those of the request that go upstream. Where steps act on requests none has the name of a header that is sent, or
    that a step may have taken away or judges by: who reads a trailer as a header must not take a client's for one that
    a step wrote or has seen (RFC 9110 6.5.1)."""
    lines = x.trailers
    if not lines:
        return b""
    chains = [chain for _, chain in response_steps.chains_of(x) if chain.request is not None]
    if not chains:
        return lines
    written = frozenset[bytes]().union(*(chain.writes for chain in chains))
    if EVERY_HEADER in written:
        return b""
    sent = {line.partition(b":")[0] for line in x.request.low.split(b"\r\n")}
    block = b"\r\n" + lines
    return lines_without(block, twin(block), sent.union(written) - {b""})


def take(x: ActiveExchange) -> tuple[bytes, bool]:
    """(what is buffered of the body, whether it is the last of it); from now on it flows. Asked for when there is an
    upstream carrier for it."""
    if x.expects:
        invite(x)
    done = x.request_done or x.inlet is DROPPING
    buffer, x.buffer = x.buffer, None
    if x.body is not None:
        x.forget_json()  # the steps of the request have run
    if x.claimed and x.body is None:  # too large for the step that waited: it is not kept
        unclaim(x)
    data = b"" if buffer is None else buffer.pour()
    if x.paused:
        _resume(x, BUFFER)
    if x.body_copy is not None:  # an earlier try may have taken the beginning
        data = x.body_copy.again(data, done)
    return data, done


def replace(x: ActiveExchange, data: bytes) -> None:
    """Make `data` the content that goes upstream, whatever content the request has. For request steps: nothing is sent
    by then. Headers that describe the old content are the step's to take out (`http/body.DESCRIBING`)."""
    x.body = data
    if not x.has_body and not data:
        return
    head = x.request
    for name in (b"content-length", b"trailer"):
        head.remove(name)
    head.append(b"content-length: %d\r\n" % len(data))
    if not x.has_body:
        x.has_body = True
        x.claimed = 0
        x.inlet = None
    x.length = len(data)
    if x.inlet is not None:
        x.inlet.leave(x)
    x.inlet = None if x.request_done else DROPPING
    x.trailers = b""
    x.expects = False  # no step waits for it
    x.buffer = BodyBuffer.of(data, x.context.make_future, x.pace)
    pace(x)


def keep(x: ActiveExchange) -> None:
    """Between two tries no upstream takes the content: buffer what comes of it until `take` is asked again."""
    _resume(x, UPSTREAM)
    if x.buffer is None and not x.request_done:
        x.buffer = buffer_of(x)


def pace(x: ActiveExchange) -> None:
    """Stop reading while more is buffered than anybody asked for; ask for the content when a step waits for it."""
    buffer = x.buffer
    if buffer is not None and buffer.wanted:
        _claim(x, buffer)
    if buffer is not None and buffer.size >= max(x.down.may_buffer, buffer.wanted):
        _pause(x, BUFFER)
    elif x.paused:
        _resume(x, BUFFER)


def _claim(x: ActiveExchange, buffer: BodyBuffer) -> None:
    """A step waits for the body: ask for it, take memory for what has come, and begin its time."""
    context = x.context
    if x.expects:
        invite(x)
    more = buffer.size - x.claimed
    if more > 0:
        if context.body_memory.take(more, x.peer):
            x.claimed += more
        else:
            buffer.crowded = True
    if buffer.due == NEVER and not buffer.complete:
        buffer.due = context.clock() + context.limits.body_timeout
        x.down.arm(buffer.due)


def leave(x: ActiveExchange) -> None:
    """The content of the request is no longer needed. What still comes must not pass by the stages."""
    inlet = x.inlet
    if inlet is not None:
        x.inlet = DROPPING
        inlet.leave(x)


def unclaim(x: ActiveExchange) -> None:
    """The body that took memory is kept no longer."""
    x.context.body_memory.free(x.claimed, x.peer)
    x.claimed = 0


def invite(x: ActiveExchange) -> None:
    """Answer `expect: 100-continue` (RFC 9110 10.1.1), unless the client has begun to send already."""
    x.expects = False
    if not x.body_bytes and not x.request_done:
        x.down.invite()


# --- flow control towards the client's sending


def block(x: ActiveExchange) -> None:
    """As `carriers.Consumer.upstream_blocked`."""
    _pause(x, UPSTREAM)


def unblock(x: ActiveExchange) -> None:
    """As `carriers.Consumer.upstream_drained`."""
    _resume(x, UPSTREAM)


def _pause(x: ActiveExchange, why: int) -> None:
    if not x.paused:
        if not x.has_body or x.inlet is None:
            x.down.pause()
        else:
            x.inlet.pause(x)
    x.paused |= why


def _resume(x: ActiveExchange, why: int) -> None:
    if x.paused & why:
        x.paused &= ~why
        if not x.paused:
            if not x.has_body or x.inlet is None:
                x.down.resume()
            else:
                x.inlet.resume(x)
