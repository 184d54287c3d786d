"""How long a downstream connection waits, and for whom: for a head, for an exchange with a deadline, for a peer that
has stalled.

A connection asks to be woken (`arm`) at the earliest moment that concerns it, looks then at what is due, and asks for
the next. While bytes come and go nothing of this runs, but for requests that have a deadline of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.http.heads import Head
from dataplane.http.lasting import asks_for_stream, is_stream
from dataplane.proxy.deadlines import NEVER, STEP
from dataplane.proxy.request.request_body import BUFFER, UPSTREAM
from dataplane.server.h1.states import CLOSED, LINGER, READ_BODY, READ_HEAD, TUNNELLING, WAIT

if TYPE_CHECKING:
    from dataplane.proxy.context import Context
    from dataplane.proxy.exchange import CarriedExchange

LEFT = -1.0
"""The moment until which a client is waited for that has left."""
SOON = 0.1
"""Seconds until a connection that is too old, and has begun to send a head, is looked at again."""


class Watched(Protocol):
    """Who waits (`connection.Connection`)."""

    context: Context
    transport: Any
    exchange: CarriedExchange | None
    state: int
    """As in `states`."""
    buffer: bytes
    """Bytes from the client that are not looked at yet."""
    stream_head: bytes
    """Header lines of a response without a length that has begun, while it lasts."""
    keep: bool
    """Another request may follow the present one."""
    is_blocked: bool
    """The client reads slower than the endpoint sends."""
    idle_since: float
    """When the last exchange ended, or the present head or close began (monotonic)."""

    head_due: bool
    """The next head has to come within the header timeout: on a new connection, or because it began to come."""
    due: float
    """When the connection is woken next."""
    idle_timeout: float
    """Seconds without a request after which it is closed. This and the next from `http/connection_rules`."""
    expires: float
    """When it takes no further requests."""
    progress: tuple[CarriedExchange | None, int]
    progress_due: float
    """Exchange and bytes of its bodies when they changed last, as far as was looked; what is the same when that is
    an idle timeout ago has stalled and is given up."""
    quiet: tuple[CarriedExchange | None, int]
    quiet_due: float
    """After the client ended its sending side: exchange and response bytes at the last look, and the next look."""

    def arm(self, moment: float) -> None: ...

    def wake(self, now: float) -> None: ...

    def flush(self) -> None: ...

    def hang_up(self) -> None: ...

    def refuse(self, reason: str, data: bytes) -> None: ...


def arm(down: Watched, moment: float) -> None:
    """Be woken at `moment`, unless that is going to happen earlier anyway."""
    if moment < down.due:
        down.due = moment
        down.context.deadlines.wake_at(moment, down)


def wake(down: Watched, now: float) -> None:
    """A moment is here that was asked for."""
    if now + STEP < down.due:  # asked for before an earlier moment was, or closed meanwhile
        return
    down.due = NEVER
    if now >= down.expires and _expires(down, now):
        return
    x = down.exchange
    if x is not None:
        _look(down, x, now)
    elif down.state == READ_HEAD:
        _wait_for_head(down, now)
    elif down.state in (LINGER, CLOSED):
        _wait_for_close(down, now)


def _expires(down: Watched, now: float) -> bool:
    """The connection is as old as it may become (`maxConnectionDuration`): it ends with the request under way. Of one
    whose head is coming nothing is known yet, so it is looked at again soon. Whether it has ended."""
    down.expires = NEVER
    if down.exchange is not None:
        down.keep = False
    elif down.state == READ_HEAD and not down.buffer:
        down.hang_up()
        return True
    elif down.state in (READ_HEAD, WAIT):
        down.expires = now + SOON
        down.arm(down.expires)
    return False


def _look(down: Watched, x: CarriedExchange, now: float) -> None:
    """Whether the exchange under way may go on."""
    due = x.wake(now)
    if down.exchange is not x:  # it ended; the next one asks for itself
        return
    if _has_left(down, x, now):
        leave(down, x)
    elif _has_stalled(down, x, now):
        x.give_up("UpstreamTimeout" if x.paused & UPSTREAM else "RequestTimeout")
    else:
        _look_again(down, x, now, due)


def _look_again(down: Watched, x: CarriedExchange, now: float, due: float) -> None:
    """Be woken for the next deadline, or to see whether bytes still come and go."""
    progress = (x, x.body_bytes + x.response_bytes)
    if progress != down.progress or now >= down.progress_due:
        down.progress, down.progress_due = progress, now + down.context.limits.idle_timeout
    down.arm(min(due, down.progress_due, down.quiet_due, down.expires, now + down.idle_timeout))


def _has_stalled(down: Watched, x: CarriedExchange, now: float) -> bool:
    """Whether an idle timeout went by while somebody who has to send or to read did not."""
    if now < down.progress_due:  # it was another deadline that was asked for
        return False
    waits = down.is_blocked or (down.state == READ_BODY and not x.paused & BUFFER)
    return waits and down.progress == (x, x.body_bytes + x.response_bytes)


def sends_no_more(down: Watched, x: CarriedExchange) -> None:
    """The client has ended its sending side while `x` is under way: at once the end of a stream, else of a client that
    takes no byte for a while. A stream that has not begun shows itself by its head (`stream_begins`)."""
    if x.grpc is not None or asks_for_stream(x.request) or (down.stream_head and is_stream(Head(down.stream_head))):
        leave(down, x)
    else:
        look_for_bytes(down, x, down.context.clock())


def stream_begins(down: Watched, x: CarriedExchange) -> None:
    """A response without a length begins for a client that sends no more. Its exchange has more to say in this turn, so
    it ends in the next one."""
    if is_stream(Head(down.stream_head)):
        down.quiet_due = LEFT
        down.arm(down.context.clock())


def leave(down: Watched, x: CarriedExchange) -> None:
    """The client is gone."""
    down.flush()
    down.transport.abort()
    if down.exchange is x:  # no event will follow: the transport was closing
        down.exchange = None
        x.downstream_gone("ClientGone")


def look_for_bytes(down: Watched, x: CarriedExchange, now: float) -> None:
    """A client that is gone altogether looks like one that only sends no more, until something is written to it: when
    nothing is for a while, it is taken for gone, so that a silent endpoint does not hold both for ever."""
    down.quiet = (x, x.response_bytes)
    down.quiet_due = now + down.context.limits.half_closed
    down.arm(down.quiet_due)


def _has_left(down: Watched, x: CarriedExchange, now: float) -> bool:
    if now < down.quiet_due:
        return False
    if down.quiet_due == LEFT:
        return True
    if down.state == TUNNELLING:  # each direction ends by itself; a moment that is over must not be asked for again
        down.quiet_due = NEVER
        return False
    if down.is_blocked or down.quiet != (x, x.response_bytes):
        look_for_bytes(down, x, now)
        return False
    return True


def _wait_for_head(down: Watched, now: float) -> None:
    limits = down.context.limits
    end = down.idle_since + (limits.header_timeout if down.head_due else down.idle_timeout)
    if now < end:
        down.arm(min(end, down.expires, now + down.idle_timeout))
    elif down.buffer:
        down.refuse("RequestTimeout", down.buffer)
    else:
        down.transport.abort()  # `close` would wait for a client that does not read


def _wait_for_close(down: Watched, now: float) -> None:
    """What the client has not read in time, it does not get."""
    limits = down.context.limits
    end = down.idle_since + (limits.linger if down.state == LINGER else limits.idle_timeout)
    if now < end:
        down.arm(end)
    else:
        down.transport.abort()
