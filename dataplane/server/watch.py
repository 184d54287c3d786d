"""How long a downstream connection waits, and for whom: for a head, for an exchange with a deadline, for a peer that
stands still.

A connection asks to be woken (`arm`) at the earliest moment that concerns it, looks then at what is due, and asks for
the next. While bytes come and go nothing of this runs, but for requests that have a deadline of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.proxy import attempts
from dataplane.proxy.deadlines import NEVER, STEP
from dataplane.server.states import CLOSED, HELD, LINGER, READ_BODY, READ_HEAD, TUNNELLING, UPSTREAM

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from dataplane.server.connection import Connection


def arm(down: Connection, moment: float) -> None:
    """Be woken at `moment`, unless that is going to happen earlier anyway."""
    if moment < down.due:
        down.due = moment
        down.context.deadlines.wake_at(moment, down)


def wake(down: Connection, now: float) -> None:
    """A moment is here that was asked for."""
    if now + STEP < down.due:  # asked for before an earlier moment was, or closed meanwhile
        return
    down.due = NEVER
    x = down.exchange
    if x is not None:
        _look(down, x, now)
    elif down.state == READ_HEAD:
        _wait_for_head(down, now)
    elif down.state in (LINGER, CLOSED):
        _wait_for_close(down, now)


def _look(down: Connection, x: Exchange, now: float) -> None:
    """Whether the exchange under way may go on."""
    if now >= x.deadline:
        down.give_up(x, "RequestDeadline")
    elif now >= x.attempt_deadline and not x.replied:
        attempts.timed_out(x, down.context)
        if down.exchange is x:  # it is tried again
            _look_again(down, x, now)
    elif _has_left(down, x, now):
        down.abandon(x, "ClientGone")
        down.transport.abort()
    elif now >= _body_due(down, x):
        down.give_up(x, "RequestTimeout")
    elif _stands_still(down, x):
        down.give_up(x, "UpstreamTimeout" if down.paused & UPSTREAM else "RequestTimeout")
    else:
        _look_again(down, x, now)


def _look_again(down: Connection, x: Exchange, now: float) -> None:
    """Be woken for the next deadline, or to see whether bytes still come and go."""
    idle = now + down.context.limits.idle_timeout
    due = min(x.deadline, x.attempt_deadline, idle, down.quiet_due, _body_due(down, x))
    if due == idle:
        down.progress = (x, x.body_bytes + x.response_bytes)
    down.arm(due)


def _body_due(down: Connection, x: Exchange) -> float:
    """When a body that a step waits for has to be here: a client that drips bytes must not hold memory for ever; a
    large body at an honest pace may take longer."""
    body = x.body
    if body is None or not body.is_awaited:
        return NEVER
    return body.due + body.held / down.context.limits.body_rate


def _stands_still(down: Connection, x: Exchange) -> bool:
    """Whether an idle timeout went by while somebody who has to send or to read did not."""
    waits = down.write_paused or (down.state == READ_BODY and not down.paused & HELD)
    return waits and down.progress == (x, x.body_bytes + x.response_bytes)


def look_for_bytes(down: Connection, x: Exchange, now: float) -> None:
    """A client that is gone altogether looks like one that only sends no more, until something is written to it: when
    nothing is for a while, it is taken for gone, so that a silent endpoint does not hold both for ever."""
    down.quiet = (x, x.response_bytes)
    down.quiet_due = now + down.context.limits.half_closed
    down.arm(down.quiet_due)


def _has_left(down: Connection, x: Exchange, now: float) -> bool:
    if now < down.quiet_due or down.state == TUNNELLING:
        return False
    if down.write_paused or down.quiet != (x, x.response_bytes):
        look_for_bytes(down, x, now)
        return False
    return True


def _wait_for_head(down: Connection, now: float) -> None:
    limits = down.context.limits
    end = down.idle_since + (limits.header_timeout if down.head_due else limits.idle_timeout)
    if now < end:
        down.arm(end)
    elif down.buffer:
        down.refuse("RequestTimeout", down.buffer)
    else:
        down.transport.abort()  # `close` would wait for a client that does not read


def _wait_for_close(down: Connection, now: float) -> None:
    """What the client has not read in time, it does not get."""
    limits = down.context.limits
    end = down.idle_since + (limits.linger if down.state == LINGER else limits.idle_timeout)
    if now < end:
        down.arm(end)
    else:
        down.transport.abort()
