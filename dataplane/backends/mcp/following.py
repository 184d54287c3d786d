"""What one server says beside answers, asked for again as long as somebody listens: servers close such streams when
they like, and are restarted (MCP 2025-11-25, Transports, "Listening for Messages from the Server").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import processing
from dataplane.backends.mcp.relay import STREAM, Seen, kind_of, relay_events, rewrite_of
from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.mcp.hearing import Signal

if TYPE_CHECKING:
    from dataplane.backends.mcp.answers import Opened
    from dataplane.backends.mcp.visit import Visit
    from dataplane.mcp.plans import TargetPlan

NONE, LATER, ENDED = "none", "later", "ended"
"""What came of asking once: the server has no such stream; it may have one later; it has ended what it had."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a stream is asked for again: twice as long each time, until one has lasted longer than its pause."""

_OK: Final = 200
_FAILS: Final = 500
_LATER: Final = frozenset({408, 409, 425, 429})
"""Statuses below 500 of what may succeed without a change: 409 where a server has not noticed yet that the stream
before has ended."""
_NOT_IMPLEMENTED: Final = 501


async def once(
    visit: Visit, target: TargetPlan, seen: Seen, begin: Callable[[], None], is_resumed: bool = False
) -> str:
    """Ask for it, and pass it on to its end. `begin` is called when it is there; `seen`: what came of it before;
    `is_resumed`: the client goes on with a stream of its own, which may have answers. Raises `TargetFailed`."""
    opened = await Upstreams(visit).get(target, seen.last)
    try:
        status = opened.answer.status
        if status != _OK or kind_of(opened) != STREAM:
            seen.last = None  # the server does not have it any more
            may_come = status in _LATER or (status >= _FAILS and status != _NOT_IMPLEMENTED)
            return LATER if may_come else NONE
        begin()
        await relay_stream(visit, target, opened, seen, is_resumed)
        return ENDED
    finally:
        opened.call.cancel()


async def relay_stream(
    visit: Visit, target: TargetPlan, opened: Opened, seen: Seen | None = None, is_resumed: bool = False
) -> None:
    """What a server says beside answers, as the client may have it. Raises `TargetFailed`."""
    rewrite = replace(rewrite_of(visit, target.name), is_resumed=is_resumed, seen=seen)
    if processing.reads_any_answers(visit):
        await processing.relay_unsolicited(visit, opened, rewrite, target.name)
    else:
        await relay_events(visit, opened, rewrite)


class Pauses:
    """Before the same is asked for again. `seen`: a server may say how long (`retry`)."""

    def __init__(self, visit: Visit, seen: Seen | None = None) -> None:
        self._context = visit.x.context
        self._seen = seen
        self._next = FIRST_PAUSE
        self._began = self._context.clock()

    async def wait(self) -> None:
        """After what has ended; what lasted long makes the next pause the shortest one."""
        if self._context.clock() - self._began > self._next:
            self._next = FIRST_PAUSE
        wanted = 0.0 if self._seen is None else self._seen.retry / 1000
        await self._sleep(max(self._next, min(wanted, LONGEST_PAUSE)))
        self._next = min(2 * self._next, LONGEST_PAUSE)
        self._began = self._context.clock()

    async def _sleep(self, seconds: float) -> None:
        signal = Signal(self._context.make_future)
        alarm = _Alarm(signal)
        self._context.calls.wake_at(self._context.clock() + seconds, alarm)
        await signal.wait()
        del alarm  # until now it had to be kept


class _Alarm:
    """`carriers.Sleeper`."""

    __slots__ = ("__weakref__", "_signal")

    def __init__(self, signal: Signal) -> None:
        self._signal = signal

    def wake(self, now: float) -> None:
        self._signal.set()
