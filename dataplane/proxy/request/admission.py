"""Limits of requests (`frontend.limits`): how many are in flight, how large a body is, how long nothing may move.

Asked where a table has such limits, and nowhere else. What is kept for a request is one object, `Exchange.bounds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.http.connect_rules import CONNECT
from dataplane.link.loads import REQUESTS
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request.bounds import Bounds
from dataplane.table.limits import NO_LIMITS

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.limits import LimitsPlan

_OVERLOADED: Final = made("Overloaded", "maxRequests", b"retry-after: 1\r\n")

LOOKS: Final = 4
"""How often one idle timeout is looked whether bytes came or went: it is noticed late by one part in so many."""


def refuses(x: ActiveExchange, limits: LimitsPlan) -> bool:
    """Count a request that begins; whether a limit has answered it."""
    context = x.context
    bounds = x.bounds = Bounds(limits)
    if limits.requests is not None:
        context.admitted += 1
        context.loads.put(REQUESTS, context.admitted)
        if context.loads.total(REQUESTS) > limits.requests:
            context.recorder.limited("maxRequests")
            x.stopped = 0  # no step has run: none sees the answer
            x.reply(_OVERLOADED)
            return True
    if max(x.length, x.body_bytes) > bounds.most_bytes:
        x.stopped = 0
        too_large(x, bounds)
        return True
    if bounds.stream_idle is not None:
        bounds.bytes = _moved(x)
        bounds.quiet_since = now = context.clock()
        x.down.arm(now + bounds.stream_idle / LOOKS)
    return False


def ended(bounds: Bounds, context: Context) -> None:
    """The request is over, whatever its end."""
    if bounds.is_counted:
        context.admitted -= 1
        context.loads.put(REQUESTS, context.admitted)


def too_large(x: ActiveExchange, bounds: Bounds) -> None:
    """The body is larger than it may be: no endpoint sees it end. What still comes of it is dropped."""
    if not bounds.is_too_large:
        bounds.is_too_large = True
        x.context.recorder.limited("maxRequestBytes")
        x.give_up("BodyTooLarge", "maxRequestBytes")


def watch(x: ActiveExchange, idle: float) -> None:
    """A tunnel of a CONNECT stands: it ends when nothing moves for long; `idle` seconds where no limit says otherwise.
    (Neither end has to send anything on a connection: one that was forgotten is known by time alone.)"""
    bounds = x.bounds
    if bounds is None:
        bounds = x.bounds = Bounds(NO_LIMITS)
    if bounds.stream_idle is None:
        bounds.stream_idle = idle
    bounds.quiet_since = now = x.context.clock()
    x.down.arm(now + bounds.stream_idle / LOOKS)


def look(x: ActiveExchange, bounds: Bounds, now: float) -> float:
    """Whether bytes came or went since the last look; when nothing did for too long the request ends here. Answers when
    to look next."""
    timeout = bounds.stream_idle
    if timeout is None or x.ended:
        return NEVER
    moved = _moved(x)
    if moved != bounds.bytes:
        bounds.bytes, bounds.quiet_since = moved, now
    elif now >= bounds.quiet_since + timeout:
        bounds.stream_idle = None
        x.context.recorder.limited("streamIdleTimeout")
        x.detail = f"streamIdleTimeout: no byte for {timeout:g} s"
        if x.tunnel and x.method == CONNECT:
            x.give_up("IdleTimeout")
        else:
            x.give_up("UpstreamTimeout" if x.request_done or x.paused else "RequestTimeout", x.detail)
        return NEVER
    return min(now + timeout / LOOKS, bounds.quiet_since + timeout)


def _moved(x: ActiveExchange) -> int:
    """Bytes of content, of both directions; also those of a response that is not passed on yet."""
    delayed = x.delayed_response
    return x.body_bytes + x.response_bytes + (0 if delayed is None else delayed.size)
