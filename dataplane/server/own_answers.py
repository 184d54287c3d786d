"""Answers of our own: a refusal, a failure, a step's `Reply` end an exchange in place of an endpoint's response.

Response steps see them as they see any other (`proxy/responses`). Whatever goes wrong here still ends in an answer, or,
when a part of a response is out already, in a broken connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.body import Gone
from dataplane.http.heads import Head
from dataplane.proxy import responses
from dataplane.proxy.reply_head import head_of, status_line
from dataplane.upstream.response_head import LENGTH

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from dataplane.exchange import Exchange
    from dataplane.server.responding import Responding

log = logging.getLogger("dataplane.server")


def reply(down: Responding, x: Exchange, reply: Reply) -> None:
    """End the exchange with an answer of ours."""
    down.detach(x)
    down.late = None
    x.status, x.reason, x.detail = reply.status, reply.reason, reply.detail
    line, block = head_of(reply)
    if reply.close:
        down.keep = False
    x.response = Head(block)
    x.answer_body, x.answer_changed, x.answer_over = reply.body, False, False
    x.replied = True  # no deadline or lost connection may answer a second time
    if x.body is not None:
        x.body.fail()  # a step may still wait for the rest
    try:
        rest = responses.run(x)
    except Exception as error:  # the answer is made already: send it without that step's part
        log.error("response step failed in %r", x, exc_info=error)
        rest = None
    if rest is None:
        _send(down, x, reply, line)
    elif isinstance(rest, Reply):
        down.reply(x, rest)
    else:
        down.context.spawn(_reply_later(down, x, reply, line, rest))


async def _reply_later(
    down: Responding, x: Exchange, reply: Reply, line: bytes, rest: Coroutine[Any, Any, Reply | None]
) -> None:
    other = None
    try:
        other = await rest
    except Exception as error:  # the answer is made already: send it without that step's part
        log.error("response step failed in %r", x, exc_info=error)
    if x.ended:
        return
    if other is not None:
        down.reply(x, other)
    else:
        _send(down, x, reply, line)


def _send(down: Responding, x: Exchange, reply: Reply, line: bytes) -> None:
    body, block = b"" if x.method == b"HEAD" else reply.body, x.response.block  # type: ignore[union-attr]
    if x.status != reply.status or x.answer_changed:
        line = status_line(x.status)
        block, body = responses.other(x, reply.status) or (block, body)
    down.send_head(x, line, block, LENGTH, body)
    down.complete(x)


def failed(down: Responding, x: Exchange, error: Exception) -> None:
    """A bug of ours in the life of an exchange."""
    if isinstance(error, Gone) and (x.ended or x.replied):
        return  # a step was told that it waits for nothing
    log.error("internal error in %r", x, exc_info=error)
    if not x.ended:
        down.give_up(x, "InternalError", repr(error))


def give_up(down: Responding, x: Exchange, reason: str, detail: str = "") -> None:
    """End an exchange that cannot go on: with an answer, or, when a part of a response is out, by breaking off. Only a
    broken connection tells the client that the rest is missing, and the endpoint that it has not seen all."""
    if x.replied:
        down.abandon(x, reason)
        down.transport.abort()
    else:
        down.reply(x, made(reason, detail))
