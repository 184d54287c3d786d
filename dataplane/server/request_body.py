"""The body of a request, from the client's bytes to what goes upstream, and how fast it is read.

It flows as it comes. It is held (`x.body`) until there is an upstream connection to take it, between two tries, and for
steps that wait for it. Chunks are read strictly and made anew. These are methods of the `Connection`: the public ones
are what the rooms of the proxy may ask of whoever carries an exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http import chunked
from dataplane.http.body import Body
from dataplane.proxy import responses
from dataplane.proxy.deadlines import NEVER
from dataplane.server.states import HELD, READ_BODY, UPSTREAM, WAIT

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.proxy.request_head import Framing
    from dataplane.server.connection import Connection


def begin(down: Connection, x: Exchange, framing: Framing) -> None:
    """A request with a body begins."""
    x.has_body = True
    down.request_done = False
    down.state = READ_BODY
    down.left = framing.length
    down.chunked = framing.chunked
    down.chunks = chunked.ChunkedReader(decode=True) if framing.chunked else None
    down.dropping = False
    x.body = Body(down.context.make_future, down.pace, None if framing.chunked else framing.length)


def receive(down: Connection, data: bytes) -> None:
    """Request body bytes, and what may follow them."""
    x = down.exchange
    extra = b""
    if down.chunks is not None:
        try:
            out, used = down.chunks.feed(data)
        except chunked.BadChunk as error:  # the endpoint must not see the request end
            down.give_up(x, "HeadersTooLarge" if error.too_large else "BadRequest", str(error))
            return
        done = used >= 0
        if done:
            extra = data[used:]
            down.trailers = down.chunks.trailers
    else:
        out = data
        left = down.left = down.left - len(data)
        done = left <= 0
        if left < 0:
            out, extra = data[:left], data[left:]
    if done:
        down.request_done = True
        down.state = WAIT
        down.chunks = None
        down.buffer = extra
    x.body_bytes += len(out)
    if down.dropping:
        return
    if x.body is not None:
        x.body.push(out)
        if done:
            x.body.end()
    elif x.up is not None:
        x.out = b""  # too much was sent to send it all again
        if x.copy is not None:
            x.copy.sent(out, done)
        x.up.request_done = done
        x.up.write(_framed(down, x, out, done))


def pace(down: Connection) -> None:
    """Stop reading while more is held than anybody asked for; ask for the body when a step waits for it."""
    body = down.exchange.body if down.exchange is not None else None
    if body is not None and body.wanted:
        _hold(down, down.exchange, body)
    if body is not None and body.held >= max(down.context.limits.held_body, body.wanted):
        down.pause_reading(HELD)
    else:
        down.resume_reading(HELD)


def _hold(down: Connection, x: Exchange, body: Body) -> None:
    """A step waits for the body: ask for it, take room for what has come, and begin its time."""
    if down.expects:
        _invite(down, x)
    more = body.held - down.claimed
    if more > 0:
        if down.context.room.take(more):
            down.claimed += more
        else:
            body.crowded = True
    if body.due == NEVER and not body.complete:
        body.due = down.context.clock() + down.context.limits.body_timeout
        down.arm(body.due)


def take_body(down: Connection, x: Exchange) -> bytes:
    """What is held of the body; from now on it flows. Asked for when there is an upstream connection for it."""
    if down.expects:
        _invite(down, x)
    done = down.request_done or down.dropping
    if down.dropping and x.up is not None:
        x.up.request_done = True
    body, x.body = x.body, None
    if down.claimed and x.held is None:  # too large for the step that waited: nobody keeps it
        down.unclaim()
    if x.copy is not None:  # an earlier try may have taken the beginning
        held = b"" if body is None else body.take()
        return _framed(down, x, x.copy.again(held, done), done)
    return b"" if body is None else _framed(down, x, body.take(), done)


def replace_body(down: Connection, x: Exchange, data: bytes) -> None:
    """Make `data` the body that goes upstream, whatever body the request has. For request steps: nothing is sent by
    then. Headers that describe the old body are the step's to take out (`http/body.DESCRIBING`)."""
    x.held = data
    if not x.has_body and not data:
        return
    head = x.request
    for name in (b"content-length", b"transfer-encoding", b"trailer"):
        head.remove(name)
    head.append(b"content-length: %d\r\n" % len(data))
    x.has_body = True
    down.chunked = False
    down.dropping = not down.request_done
    down.expects = False  # for nobody waits for it
    x.body = Body.of(data, down.context.make_future, down.pace)
    down.pace()


def hold_body(down: Connection, x: Exchange) -> None:
    """Between two tries nobody takes the body: hold what comes of it until `take_body` is asked again."""
    down.resume_reading(UPSTREAM)
    if x.body is None and not down.request_done:
        x.body = Body(down.context.make_future, down.pace)


def _invite(down: Connection, x: Exchange) -> None:
    """Answer `Expect: 100-continue` (RFC 9110 10.1.1), unless the client has begun to send already."""
    down.expects = False
    if not x.body_bytes and not down.request_done:
        down.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _framed(down: Connection, x: Exchange, data: bytes, done: bool) -> bytes:
    """Content of the body as it goes upstream. Chunks are made anew: steps read content, and no framing of the
    client's passes."""
    if not down.chunked:
        return data
    framed = chunked.encode(data) if data else b""
    return b"%b0\r\n%b\r\n" % (framed, _trailers(down, x)) if done else framed


def _trailers(down: Connection, x: Exchange) -> bytes:
    """Those of the request that pass: none where steps act on requests. They see no trailers, and who reads a trailer
    as a header must not take a client's for one that a step writes, or takes away (RFC 9110 6.5.1)."""
    trailers = down.trailers
    if trailers and any(chain.request is not None for _, chain in responses.chains_of(x)):
        return b""
    return trailers
