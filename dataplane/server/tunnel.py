"""A connection that was switched to another protocol: bytes pass both ways as they are (RFC 9110 section 7.8).

`responding` begins one with a 101 that the client asked for, whose head passes the response steps as any other. From
then on the two connections live as long as both sides like, without deadline; each direction ends by itself, and when
neither goes on both are closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.replies import made
from dataplane.http.heads import Head
from dataplane.server import held_responses
from dataplane.server.states import PIPELINED, TUNNELLING

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.server.responding import Responding
    from dataplane.upstream.response_head import ResponseHead


ACCEPT = b"sec-websocket-accept"
"""What the client holds against the key that it sent (RFC 6455 4.1): no step's to change."""


def begin(down: Responding, x: Exchange, head: ResponseHead, first: bytes) -> None:
    """The endpoint switches, to what the client asked for; `first`: its first bytes behind the 101."""
    if not down.upgrade or head.upgrade.lower() != down.upgrade.lower():
        down.reply(x, made("UpgradeFailed", f"upstream switched to {head.upgrade!r}"))
        return
    x.response = Head(head.block, head.low)
    held_responses.respond(down, x, head, first)


def switch(down: Responding, x: Exchange, head: ResponseHead, first: bytes) -> None:
    """The response steps have run on the head of the 101: pass it on, and from now on bytes."""
    answer, up = x.response, x.up
    assert answer is not None  # `begin` has made it
    accept = Head(head.block, head.low).get(ACCEPT)
    if answer.get(ACCEPT) != accept:
        answer.remove(ACCEPT)
        if accept is not None:
            answer.add(ACCEPT, accept)
    x.replied = True
    x.deadline = float("inf")
    down.state = TUNNELLING
    down.keep = False
    upgrade = b"connection: upgrade\r\nupgrade: %b\r\n\r\n" % head.upgrade
    x.response_bytes = len(first)
    down.write(b"".join((head.line, answer.block, upgrade, first)))
    if down.buffer:  # the client did not wait for the 101
        data, down.buffer = down.buffer, b""
        x.body_bytes += len(data)
        up.write(data)
    down.resume_reading(PIPELINED)


def client_ended(down: Responding, x: Exchange) -> bool:
    """The client sends no more; the endpoint may. Answers whether the client's connection stays open."""
    down.half_closed = True
    if not down.up_ended:
        x.up.write_eof()
        return True
    down.flush()
    up, x.up = x.up, None
    up.end()
    return False


def endpoint_ended(down: Responding, x: Exchange) -> None:
    """The endpoint sends no more; the client may. When neither does, nothing else would end the two connections."""
    down.up_ended = True
    down.flush()
    if down.half_closed:
        up, x.up = x.up, None
        up.end()
        down.transport.close()
    elif down.transport.can_write_eof():
        down.transport.write_eof()


def endpoint_closed(down: Responding, x: Exchange) -> None:
    """The endpoint's connection is gone, in good order: so goes the client's, once it has what is here."""
    x.up = None
    down.flush()
    down.transport.close()
