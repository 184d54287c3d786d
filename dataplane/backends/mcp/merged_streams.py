"""The streams of all servers as one, for a client's GET. It begins with the first of them: a server may begin its own
with the first event. With the id of an event the stream of the target that it names goes on, alone.

What ends, or is lost with failureMode FailOpen, is asked for again while another part is there. When none is, the whole
ends: so the client asks anew, with the id of the last event, and misses nothing that servers keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp import following
from dataplane.backends.mcp.answers import TargetFailed
from dataplane.backends.mcp.arranging import SessionLost
from dataplane.backends.mcp.following import ENDED, LATER, NONE, Pauses
from dataplane.backends.mcp.relay import Seen
from dataplane.backends.mcp.visit import EVENTS
from dataplane.mcp import errors
from dataplane.mcp.hearing import Signal
from dataplane.mcp.messages import Malformed
from gatewright.kept_errors import again, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.backends.mcp.visit import Visit
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

ASKED, OPEN, FAILED = "asked", "open", "failed"
"""States of a part, with those of `following`: it is asked for the first time; it is there; it gave no answer."""

WAIT, BEGIN, END, NO_STREAM, FAIL = "wait", "begin", "end", "no stream", "fail"
"""What becomes of the whole."""

_OK: Final = 200
WITHOUT_STREAM: Final = b"allow: POST, DELETE\r\n"


def decided(states: Sequence[str], was_open: bool, fail_open: bool) -> str:
    """What the states of all parts make of the whole. `was_open`: any part has been there."""
    if FAILED in states and not fail_open:
        return FAIL
    if ASKED in states or OPEN in states:
        return WAIT
    if was_open:
        return FAIL if ENDED not in states and FAILED in states else END
    if all(each == FAILED for each in states):
        return FAIL
    return NO_STREAM if all(each == NONE for each in states) else BEGIN


class _Whole:
    def __init__(self, visit: Visit, targets: Sequence[TargetPlan]) -> None:
        self._visit, self._targets = visit, targets
        self._states = {target.name: ASKED for target in targets}
        self._failure: TargetFailed | None = None
        self._was_open = False
        self._changed = Signal(visit.x.context.make_future)

    async def pass_on(self, last: bytes | None) -> Reply | None:
        """Raises `TargetFailed`."""
        visit = self._visit
        works = [visit.x.work(self._follow(target, Seen(last), last is not None)) for target in self._targets]
        try:
            while (found := self._decided()) in (WAIT, BEGIN):
                if found == BEGIN:
                    self._begin()
                await self._changed.wait()
        finally:
            for each in works:
                each.cancel()
        if found == FAIL:
            assert self._failure is not None  # it is what failed
            raise again(self._failure)
        if found == NO_STREAM and not visit.out.has_begun:
            return errors.refused("McpNoStream", headers=WITHOUT_STREAM)
        visit.out.end()
        return None

    def _decided(self) -> str:
        if isinstance(self._failure, SessionLost):
            return FAIL
        return decided([*self._states.values()], self._was_open, self._visit.plan.fail_open)

    def _begin(self) -> None:
        if not self._visit.out.has_begun:
            self._visit.out.head(_OK, EVENTS)

    def _is_there(self, target: TargetPlan) -> None:
        self._begin()
        self._was_open = True
        self._states[target.name] = OPEN

    async def _follow(self, target: TargetPlan, seen: Seen, is_resumed: bool) -> None:
        """One part, until there is none to be had."""
        pauses = Pauses(self._visit, seen)
        while True:
            state = await self._once(target, seen, is_resumed)
            self._states[target.name] = state
            self._changed.set()
            if state == NONE:
                return
            await pauses.wait()

    async def _once(self, target: TargetPlan, seen: Seen, is_resumed: bool) -> str:
        try:
            return await following.once(self._visit, target, seen, lambda: self._is_there(target), is_resumed)
        except TargetFailed as failed:
            failure = kept(failed)
        except Malformed as error:
            failure = TargetFailed(target.name, f"its answer is not readable: {error}")
        if self._failure is None or isinstance(failure, SessionLost):
            self._failure = failure
        return FAILED


async def pass_on(visit: Visit, last: bytes | None) -> Reply | None:
    """`last`: id of the last event that the client has. Raises `TargetFailed`."""
    name, mark, theirs = (last or b"").partition(b":")
    target = visit.plan.by_name.get(name.decode("latin-1")) if mark else None
    if target is not None:
        return await _Whole(visit, (target,)).pass_on(theirs)
    return await _Whole(visit, visit.plan.targets).pass_on(None)


__all__ = ["ASKED", "BEGIN", "END", "FAIL", "FAILED", "LATER", "NO_STREAM", "OPEN", "WAIT", "decided", "pass_on"]
