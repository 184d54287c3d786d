"""Responses that steps look at before they are passed on: at once, when their body is here, or when a step has waited.

`upstream_answers` comes here with the response of an endpoint where there are response steps, or a retry policy that
judges bodies. What is not passed on yet is the exchange's `delayed_response`; all other responses stream past this
file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.buffering import SHORT
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.body import gather
from dataplane.http.messages import UNKNOWN
from dataplane.http.statuses import BODILESS, EMPTY
from dataplane.proxy.attempt import attempts
from dataplane.proxy.response import tunnel
from dataplane.proxy.response.delayed import DelayedResponse
from dataplane.proxy.steps import response_steps
from dataplane.proxy.steps.waiting import Steps
from dataplane.upstream import lease

if TYPE_CHECKING:
    from dataplane.http.messages import ResponseHead
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context


def buffer(x: ActiveExchange, head: ResponseHead, first: bytes, end: bool) -> None:
    """Read the body to its end before the steps run; at once when it has none, has no end, or is too large."""
    limit = response_steps.most_buffered(x)
    if x.method == b"HEAD" or head.status in BODILESS or response_steps.is_stream(x):
        x.response_body = b"" if head.status == 204 else None
    elif head.length > limit:
        x.response_body_too_large = True
    else:
        delayed = x.delayed_response = DelayedResponse(head, limit)
        if x.up is not None:
            x.up.resume()
        keep(x, delayed, first, end)
        return
    respond(x, head, first, end)


def keep(x: ActiveExchange, delayed: DelayedResponse, data: bytes, end: bool) -> None:
    """More of a response that is not passed on yet."""
    if end and (delayed.head is None or not tunnel.opens(delayed.head)):
        x.up = None  # it carries the next request of anybody now
    delayed.size += len(data)
    if data and delayed.is_growing and not _claim(x, delayed, len(data)):
        return
    if delayed.stages is not None:
        delayed.stages.take(data, end, delayed.trailers)
        return
    if data:
        gather(delayed.pieces, data)
    delayed.ended = delayed.ended or end
    if 0 <= delayed.limit < delayed.size:
        x.response_body_too_large = True
        _respond_with(x, delayed)
    elif end and delayed.is_growing:
        _respond_with(x, delayed)


def _claim(x: ActiveExchange, delayed: DelayedResponse, more: int) -> bool:
    """Take memory for `more` bytes of a body that is read to be buffered. False: there is none, and the exchange has
    another answer. A body that a retry policy alone would look at is not buffered any more."""
    if delayed.size > delayed.limit:
        return True  # it is not buffered any more
    if x.context.body_memory.take(more, x.peer):
        delayed.claimed += more
        return True
    if response_steps.is_read(x):
        x.reply(made("TooManyResponses"))
        return False
    delayed.limit = 0
    return True


def _unclaim(x: ActiveExchange, delayed: DelayedResponse) -> None:
    """The body that took memory is buffered no longer."""
    x.context.body_memory.free(delayed.claimed, x.peer)
    delayed.claimed = 0


def _respond_with(x: ActiveExchange, delayed: DelayedResponse) -> None:
    """All that is buffered of a response is here: run the steps."""
    delayed.limit = -1
    data = delayed.take()
    if x.response_body_too_large:
        _unclaim(x, delayed)
    else:
        x.response_body = data
    assert delayed.head is not None  # it was delayed for its steps
    ended, delayed.ended = delayed.ended, False  # a stage must not be given the end before `data`
    respond(x, delayed.head, data, ended)


def respond(x: ActiveExchange, head: ResponseHead, first: bytes, end: bool) -> None:
    """Run the response steps, and send what they made of the response. `first`: what there is of its body."""
    if x.retries is not None and not x.retries.decided and attempts.refuses_body(x):
        drop(x)
        return
    try:
        rest = _steps(x)
    except Exception as error:  # a step's bug must end in an answer
        x.failed(error)
        return
    if rest is None:
        _send(x, head, first, end)
    elif isinstance(rest, Reply):
        x.reply(rest)
    else:  # what arrives of the body meanwhile is buffered, the endpoint not read
        delayed = x.delayed_response = x.delayed_response or DelayedResponse(head)
        delayed.head = head
        if delayed.stages is not None:  # they may want it before the steps have ended
            delayed.stages.take(first, end, delayed.trailers)
            if delayed.stages.is_over:
                return
        else:
            delayed.pieces = [first] if first else []
            delayed.ended = end
            if x.up is not None:
                x.up.pause()
        Steps(x, rest, _go_on).begin()


def _steps(x: ActiveExchange) -> response_steps.Outcome:
    """Run the response steps; in a later turn where this one is full, and has no time for a body that they read."""
    turns = x.context.writes.turns
    is_long = x.response_body is not None and len(x.response_body) > SHORT
    if not turns.has_time() if is_long else turns.is_costly and turns.is_full(*x.makers()):
        return response_steps.run_later(x)
    outcome = response_steps.run_fast(x)
    if is_long:
        turns.has_gone_on(*x.makers())
    return outcome


def _go_on(x: ActiveExchange, context: Context) -> None:
    """The steps have waited, and the response is as they want it."""
    delayed = x.delayed_response
    assert delayed is not None and delayed.head is not None  # who takes it away cancels its steps
    _send(x, delayed.head, delayed.take(), delayed.ended)
    if x.up is not None and x.delayed_response is None and not x.down.is_blocked:
        x.up.resume()


def drop(x: ActiveExchange) -> None:
    """The response that is not passed on whole yet is no longer needed."""
    delayed, x.delayed_response = x.delayed_response, None
    if delayed is not None:
        _unclaim(x, delayed)
        if delayed.stages is not None:
            delayed.stages.cancel()


def _ends_as_staged(x: ActiveExchange, delayed: DelayedResponse) -> bool:
    """Whether the response ends with the trailers that stages gave to its whole body: no step made another one."""
    return bool(delayed.trailers) and delayed.staged is x.response_body and x.status not in EMPTY


def _send(x: ActiveExchange, head: ResponseHead, first: bytes, end: bool) -> None:
    """Send a response on which all steps have run, and what there is of its body."""
    delayed, x.delayed_response = x.delayed_response, None
    trailers, stages = (b"", None) if delayed is None else (delayed.trailers, delayed.stages)
    if delayed is not None:
        _unclaim(x, delayed)  # what leaves now is the carrier's
    if tunnel.opens(head):
        if tunnel.is_refused(x, head):
            return
        tunnel.switch(x, head, first)
        if end:
            tunnel.endpoint_ended(x)
        return
    line, block, length = head.line, x.response.block, head.length  # type: ignore[union-attr]  # as steps had it
    if x.status != head.status or x.response_body_changed:
        line = b""
        other = response_steps.other(x, head.status)
        if other is not None:
            if delayed is not None and delayed.staged is not None and _ends_as_staged(x, delayed):
                length, first = UNKNOWN, delayed.staged  # the block has no length since there was a stage
            else:
                block, first = other
                length, trailers = len(first), b""
            if not end:
                lease.release(x)  # what the endpoint still sends is dropped
                end = True
            if stages is not None:
                stages.cancel()
                stages = None
    if stages is not None:
        x.delayed_response = delayed
        stages.begin(line, block, first, end, trailers if end else b"")
        return
    x.replied = True
    x.response_bytes = len(first)
    down = x.down
    if not end:
        down.head(line, block, length, first, False)
        if x.up is not None:
            if length < 0 and x.grpc is None:  # a call's trailers are looked at
                down.join(x.up)
            if down.is_blocked and delayed is not None:
                x.up.pause()
        return
    if length < 0:  # what came in pieces of an unknown length leaves so
        down.head(line, block, length, first, False)
        down.trailers(trailers)
    else:
        down.head(line, block, length, first, True)
    x.complete()
