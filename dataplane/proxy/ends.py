"""How an exchange ends: in good order, or without (the whole of) its response.

In each case nothing acts for it any more, its carriers forget it and it forgets them, and `finish` runs, once: after
the cleanup of steps that were cancelled, which may wait, but not for ever: end hooks, metrics, the log line.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dataplane.http.messages import NO_NAMES
from dataplane.proxy.attempt import retries
from dataplane.proxy.request import admission, request_body
from dataplane.proxy.response import delayed_responses
from dataplane.proxy.steps import response_steps
from dataplane.upstream import lease

if TYPE_CHECKING:
    from dataplane.chain.chain import Chain
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context

log = logging.getLogger("dataplane.proxy")

CLEANUP = 1.0
"""Seconds that the end waits for steps that clean up."""


class _NoCarrier:
    """In place of the carrier of an exchange that is over: calls do nothing."""

    __slots__ = ()
    is_blocked = False
    may_buffer = 0
    never_indexed = NO_NAMES

    def never_index(self, names: frozenset[bytes]) -> None:
        """Ignored."""

    def head(self, line: bytes, block: bytes, length: int, first: bytes, end: bool) -> None:
        """Ignored."""

    def take_back(self) -> bool:
        return False

    def content(self, data: bytes, end: bool) -> None:
        """Ignored."""

    def trailers(self, lines: bytes) -> None:
        """Ignored."""

    def interim(self, line: bytes, block: bytes) -> None:
        """Ignored."""

    def switch(self, line: bytes, block: bytes, first: bytes) -> None:
        """Ignored."""

    def invite(self) -> None:
        """Ignored."""

    def over(self, now: float) -> None:
        """Ignored."""

    def reset(self, cause: str) -> None:
        """Ignored."""

    def close_after(self) -> None:
        """Ignored."""

    def pause(self) -> None:
        """Ignored."""

    def resume(self) -> None:
        """Ignored."""

    def arm(self, moment: float) -> None:
        """Ignored."""

    def join(self, up: object) -> None:
        """Ignored."""


NO_CARRIER = _NoCarrier()


def complete(x: ActiveExchange) -> None:
    """The response is whole: record it; then the carrier may take the next request."""
    down, x.down = x.down, NO_CARRIER
    x.up = None
    if x.has_body:
        if x.claimed:
            request_body.unclaim(x)
        if x.inlet is not None:
            request_body.leave(x)
        if x.body_copy is not None:
            x.body_copy.drop(x.buffer)
        if x.buffer is not None:
            x.buffer.leave()
    down.over(finish(x, x.context))


def abandon(x: ActiveExchange, reason: str) -> None:
    """The exchange ends without (the whole of) its response. The carrier knows, or is informed by the caller."""
    lease.release(x)
    x.reason = reason
    x.ended = True
    down, x.down = x.down, NO_CARRIER
    if not x.replied or down.take_back():
        x.status = x.response_bytes = 0  # of an endpoint's response that no client has seen
    if x.delayed_response is not None:
        delayed_responses.drop(x)
    if x.has_body:
        request_body.unclaim(x)
        request_body.leave(x)
    waiting = x.waiting
    if waiting is not None:
        waiting.cancel()  # what a step asks of other services is no longer needed
        if not waiting.is_over:
            waiting.end_with(_end, CLEANUP)
            return
    _end(x)


def _end(x: ActiveExchange) -> None:
    if x.body_copy is not None:
        x.body_copy.drop(x.buffer)
    finish(x, x.context)
    x.waiting = None
    if x.buffer is not None:
        x.buffer.fail()
        x.buffer.leave()


def finish(x: ActiveExchange, context: Context) -> float:
    """Record an exchange whose last byte went out, or that ended without one; answers the time (monotonic)."""
    x.ended = True
    if x.retries is not None:
        retries.ended(x, context)
    if x.counted is not None:
        lease.uncount(x, x.retries is not None and x.retries.is_counted)
    if x.bounds is not None:
        admission.ended(x.bounds, context)
    target, policies, listener = x.target_plan, x.policies, x.listener
    if x.stage == response_steps.BACKEND and x.backend_plan.steps is not None and x.backend_plan.steps.end:
        _end_hooks(x, x.backend_plan.steps)
    if target is not None and target.chain.end:
        _end_hooks(x, target.chain)
    if policies is not None and policies.chain.end:
        _end_hooks(x, policies.chain)
    if listener is not None and listener.chain.end:
        _end_hooks(x, listener.chain)
    now = context.clock()
    seconds = now - x.started
    if x.stopped >= 0:
        context.recorder.decided(x, response_steps.decided_by(x))
    for observer in context.more_observers if x.noted else context.observers:
        try:
            observer(x, seconds)
        except Exception as error:  # a bug of one must not keep the others from it, nor the exchange from its end
            log.error("observer failed in %r", x, exc_info=error)
    return now


def _end_hooks(x: ActiveExchange, chain: Chain) -> None:
    for hook in chain.end:
        try:
            hook(x)
        except Exception as error:  # a hook's bug must not keep the line from being written
            log.error("end hook failed in %r", x, exc_info=error)
