"""Answers of our own: a refusal, a failure, a step's `Reply` end an exchange in place of an endpoint's response.

Response steps see them as they see any other (`proxy/steps/response_steps`). Whatever goes wrong here still ends in an
answer, or, when a part of a response is out already, in a carrier that breaks off.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dataplane.chain import replies
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http import dates
from dataplane.http.body import Gone
from dataplane.http.connect_rules import CONNECT
from dataplane.http.heads import Head
from dataplane.http.statuses import BODILESS
from dataplane.proxy import ends, grpc_calls
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request import request_body
from dataplane.proxy.response import delayed_responses
from dataplane.proxy.steps import response_steps
from dataplane.proxy.steps.waiting import Steps
from dataplane.upstream import lease
from dataplane.variables import Unread

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange

log = logging.getLogger("dataplane.proxy")

_REDIRECTION: Final = 300
_ERROR: Final = 400
"""The first statuses that say that a request went elsewhere, or failed."""


def block_of(reply: Reply) -> bytes:
    """The header block of a reply."""
    content_type = b"content-type: %b\r\n" % reply.content_type if reply.body and reply.content_type else b""
    length = b"" if reply.status in BODILESS else b"content-length: %d\r\n" % len(reply.body)
    lines = reply.headers
    date = b"" if lines and dates.is_dated(b"\r\n" + lines.lower()) else dates.line()
    return b"".join((b"\r\n", content_type, length, date, lines))


def reply(x: ActiveExchange, reply: Reply) -> None:
    """End the exchange with a reply of the gateway."""
    if reply.status >= _ERROR:
        reply = grpc_calls.answer(x, _in_shape(x, reply))
    elif x.grpc is not None:
        x.grpc.status = None  # it takes the place of a response that had one
    lease.release(x)
    if x.delayed_response is not None:
        delayed_responses.drop(x)
    if x.has_body:
        request_body.leave(x)
    x.attempt_deadline = NEVER
    x.status, x.reason, x.detail = reply.status, reply.reason, reply.detail
    if reply.close:
        x.down.close_after()
    x.response = Head(block_of(reply))
    x.response_body, x.response_body_changed, x.response_body_too_large = reply.body, False, False
    x.replied = True  # no deadline or lost connection may answer a second time
    if x.buffer is not None:
        x.buffer.fail()  # a step may still wait for the rest
    waiting = x.waiting
    if waiting is not None:  # it was not the steps that answered: they are cancelled, and do not run beside others
        waiting.cancel()
        if not waiting.is_over:
            waiting.end_with(lambda x: _answer(x, reply), ends.CLEANUP)
            return
    _answer(x, reply)


def _in_shape(x: ActiveExchange, reply: Reply) -> Reply:
    """As the clients of the route understand it, where all of its backends are of one kind (`kinds.Kind.refusal`)."""
    if x.policies is None or not replies.is_plain(reply):
        return reply
    found = [x.table.backends.get(target.backend) for target in x.plan.targets]
    first = found[0] if found else None
    if first is None or any(each is None or each.where.kind != first.where.kind for each in found):
        return reply
    return first.where.refusal(x, reply)


def _answer(x: ActiveExchange, reply: Reply) -> None:
    """Run the response steps on an answer that is decided, and send it."""
    if x.ended:
        return
    try:
        rest = response_steps.run(x)
    except Exception as error:  # the answer is made already: send it without that step's part
        log.error("response step failed in %r", x, exc_info=error)
        rest = None
    if rest is None:
        _send(x, reply)
    elif isinstance(rest, Reply):
        x.reply(rest)
    else:
        _StepsOfReply(x, rest, lambda x, context: _send(x, reply)).begin()


class _StepsOfReply(Steps):
    """Response steps that see a reply of the gateway, which is decided, whatever becomes of them."""

    __slots__ = ()

    def _go_beyond(self, x: ActiveExchange, reply: Reply | None) -> None:
        if x.ended:
            return  # the client left
        if reply is not None:
            x.reply(reply)
        else:
            self._then(x, x.context)

    def _failed(self, x: ActiveExchange, error: Exception) -> None:
        log.error("response step failed in %r", x, exc_info=error)
        self._go_beyond(x, None)


def _send(x: ActiveExchange, reply: Reply) -> None:
    if x.status < _REDIRECTION and x.method == CONNECT:  # RFC 9110 9.3.6: for its client a tunnel would stand
        reply = made("UpgradeFailed", f"a step answered CONNECT with {x.status}")
        x.status, x.reason, x.detail = reply.status, reply.reason, reply.detail
        x.response, x.response_body_changed = Head(block_of(reply)), False
    body, block = b"" if x.method == b"HEAD" else reply.body, x.response.block  # type: ignore[union-attr]
    if x.status != reply.status or x.response_body_changed:
        block, body = response_steps.other(x, reply.status) or (block, body)
    x.response_bytes = len(body)
    x.down.head(b"", block, len(body), body, True)
    x.complete()


def failed(x: ActiveExchange, error: Exception) -> None:
    """A bug in Gatewright in the life of an exchange, or a request of which more is asked than is read."""
    if isinstance(error, Gone) and (x.ended or x.replied):
        return  # a step waited for what cannot come
    if isinstance(error, Unread) and not x.ended:  # a route asked for it, or a chain's only step
        x.give_up(error.reason, str(error))
        return
    log.error("internal error in %r", x, exc_info=error)
    if not x.ended:
        x.give_up("InternalError", repr(error))


def give_up(x: ActiveExchange, reason: str, detail: str = "") -> None:
    """End an exchange that cannot go on: with an answer, or, when a part of a response is out, by breaking off. Only
    then does the client know that the rest is missing, and the endpoint that it has not seen all."""
    if x.replied and x.down.take_back():
        x.replied = False
    if x.replied:
        if x.grpc is not None and reason == "RequestDeadline" and grpc_calls.cut(x):
            return
        down = x.down
        x.abandon(reason)
        down.reset(reason)
    else:
        x.reply(made(reason, detail))
