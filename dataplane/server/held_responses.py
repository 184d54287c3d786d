"""Responses that steps look at before they are passed on: at once, when their body is here, or when a step has waited.

`responding` comes here with the response of an endpoint where there are response steps, or a retry policy that judges
bodies. What is not passed on yet is the connection's `late`; all other responses stream past this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.chain.reply import Reply
from dataplane.http.body import gather
from dataplane.http.statuses import BODILESS, SWITCHING
from dataplane.proxy import attempts, responses
from dataplane.proxy.reply_head import status_line
from dataplane.upstream.response_head import CHUNKED, LENGTH

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.exchange import Exchange
    from dataplane.http.chunked import ChunkedReader
    from dataplane.server.responding import Responding
    from dataplane.upstream.connection import UpstreamConnection
    from dataplane.upstream.response_head import ResponseHead


class Late:
    """A response that is not passed on yet: steps read its body, or wait."""

    __slots__ = ("ended", "head", "limit", "pieces", "reader", "size")

    def __init__(self, head: ResponseHead, limit: int = -1) -> None:
        self.head = head
        self.limit = limit
        """Bytes that are held before the steps run without them; -1: steps are under way."""
        self.pieces: list[bytes] = []
        self.size = 0
        self.ended = False
        self.reader: ChunkedReader | None = None
        """Of a body in chunks whose content is held, and which leaves in chunks again."""

    @property
    def is_growing(self) -> bool:
        """The body is read to be held: how fast the client reads does not matter yet."""
        return self.limit >= 0

    def take(self) -> bytes:
        """What is here of the body, removed."""
        pieces, self.pieces = self.pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def hold(down: Responding, x: Exchange, up: UpstreamConnection, head: ResponseHead, first: bytes) -> None:
    """Read the body to its end before the steps run; at once when it has none, has no end, or is too large."""
    limit = responses.most_held(x)
    if x.method == b"HEAD" or head.status in BODILESS or responses.is_stream(x):
        x.answer_body = b"" if head.status == 204 else None
    elif head.framing == LENGTH and head.length > limit:
        x.answer_over = True
    else:
        late = down.late = Late(head, limit)
        if head.framing == CHUNKED and down.raw_chunks:
            first, late.reader = up.content(first)
        up.resume()
        keep(down, x, late, first)
        return
    respond(down, x, head, first)


def keep(down: Responding, x: Exchange, late: Late, data: bytes) -> None:
    """More of a response that is not passed on yet."""
    gather(late.pieces, data)
    late.size += len(data)
    if 0 <= late.limit < late.size:
        x.answer_over = True
        _respond_with(down, x, late)


def end(down: Responding, x: Exchange, late: Late) -> None:
    """The endpoint has sent all of it."""
    late.ended = True
    if late.head.status != SWITCHING:
        x.up = None  # it carries the next request of anybody now
    if late.is_growing:
        _respond_with(down, x, late)


def _respond_with(down: Responding, x: Exchange, late: Late) -> None:
    """All that is held of a response is here: run the steps."""
    late.limit = -1
    data = late.take()
    if not x.answer_over:
        x.answer_body = data
    respond(down, x, late.head, data)


def respond(down: Responding, x: Exchange, head: ResponseHead, first: bytes) -> None:
    """Run the response steps, and send what they made of the response. `first`: what there is of its body."""
    if x.retries is not None and not x.retries.decided and attempts.refuses_body(x, down.context):
        down.late = None
        return
    try:
        rest = responses.run_fast(x)
    except Exception as error:  # a step's bug must end in an answer
        down.failed(x, error)
        return
    if rest is None:
        _send(down, x, head, first)
    elif isinstance(rest, Reply):
        down.reply(x, rest)
    else:
        late = down.late = down.late or Late(head)
        late.pieces = [first]
        if x.up is not None:
            x.up.pause()
        down.context.spawn(_respond_later(down, x, late, rest))


async def _respond_later(down: Responding, x: Exchange, late: Late, rest: Coroutine[Any, Any, Reply | None]) -> None:
    """The general path of response steps: what arrives of the body meanwhile is held, the endpoint not read."""
    try:
        reply = await rest
    except Exception as error:  # a step's bug must end in an answer
        down.failed(x, error)
        return
    if x.ended or x.replied:  # answered otherwise meanwhile
        return
    if reply is not None:
        down.reply(x, reply)
        return
    _send(down, x, late.head, late.take())
    if x.up is not None and not down.write_paused:
        x.up.resume()


def _send(down: Responding, x: Exchange, head: ResponseHead, first: bytes) -> None:
    """Send a response on which all steps have run, and what there is of its body."""
    late, down.late = down.late, None
    ended = late is not None and late.ended
    if head.status == SWITCHING:
        down.switch(x, head, first)
        if ended:
            down.upstream_end()
        return
    line, block, framing = head.line, x.response.block, head.framing  # type: ignore[union-attr]  # as steps had it
    if x.status != head.status or x.answer_changed:
        line = status_line(x.status)
        other = responses.other(x, head.status)
        if other is not None:
            block, first = other
            framing = LENGTH
            if not ended and head.status not in BODILESS and x.method != b"HEAD":
                down.detach(x)  # what the endpoint still sends is for nobody
                ended = True
    if late is not None and framing == CHUNKED and late.reader is not None:
        down.encode = late.reader
    down.send_head(x, line, block, framing, first)
    if ended:
        down.upstream_end()
    elif late is not None and down.write_paused:
        x.up.pause()
