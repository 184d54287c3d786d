"""The stream of `subscriptions/listen` once it has begun: what each server says of what it has granted.

With failureMode FailClosed all parts end when the first does, so that the client asks anew and misses nothing. With
FailOpen the others go on, and the part is asked for again: until none is there any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dataplane.backends.mcp import processing
from dataplane.backends.mcp.answers import WRONG, Opened, TargetFailed, wrong
from dataplane.backends.mcp.following import Pauses
from dataplane.backends.mcp.relay import Rewrite, rewrite_of
from dataplane.http.sse import Aside, Event, write, write_aside
from dataplane.mcp import messages
from dataplane.mcp.hearing import Signal
from dataplane.mcp.messages import Message
from dataplane.mcp.subscriptions import Filter
from gatewright.kept_errors import again, kept

if TYPE_CHECKING:
    from dataplane.backends.mcp.visit import Visit
    from dataplane.backends.terminating.pump import EventPump
    from dataplane.mcp.plans import TargetPlan


@dataclass(slots=True)
class Share:
    """What one server is asked for: `wanted` as it names resources, `shown` by those names as clients see them."""

    target: TargetPlan
    flags: tuple[str, ...]
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> Filter:
        return Filter(self.flags, tuple(self.shown))


@dataclass(slots=True)
class Hearing:
    """A stream that its server has acknowledged. `pump`: its events from there on."""

    share: Share
    opened: Opened
    pump: EventPump
    granted: Filter

    @property
    def shown(self) -> Filter:
        """What is granted, as clients see it."""
        return Filter(self.granted.flags, tuple(self.share.shown[uri] for uri in self.granted.uris))


Ask = Callable[[Share], Awaitable[Hearing | Message]]
"""Asks one server for its part. Raises `TargetFailed`."""


async def pass_on(
    visit: Visit, message: Message, streams: Sequence[tuple[Share, Hearing | TargetFailed]], ask: Ask
) -> None:
    """Until the streams end; of what is not there `ask` is called again. Raises `TargetFailed`."""
    end = await _Whole(visit, message, ask).end_of(streams)
    shown = await processing.result(visit, message, processing.names(visit), end)
    visit.out.give(write(Event(messages.result(message.request_id, shown), b"message")))
    visit.out.end()


class _Whole:
    def __init__(self, visit: Visit, message: Message, ask: Ask) -> None:
        self._visit, self._message, self._ask = visit, message, ask
        self._open = 0
        """Parts that are there."""
        self._end: Raw | None = None
        self._failure: TargetFailed | None = None
        self._changed = Signal(visit.x.context.make_future)

    async def end_of(self, streams: Sequence[tuple[Share, Hearing | TargetFailed]]) -> Raw:
        """The result that ends it. Raises `TargetFailed`."""
        self._open = sum(isinstance(each, Hearing) for _, each in streams)
        works = [self._visit.x.work(self._follow(share, each)) for share, each in streams]
        try:
            while not self._is_over():
                await self._changed.wait()
        finally:
            for each in works:
                each.cancel()
        if self._end is None:
            assert self._failure is not None  # one of the two has ended it
            raise again(self._failure)
        return self._end

    def _is_over(self) -> bool:
        has_end = self._end is not None or self._failure is not None
        return not self._open or (has_end and not self._visit.plan.fail_open)

    async def _follow(self, share: Share, found: Hearing | TargetFailed | None) -> None:
        """One part, until its server has none."""
        pauses = Pauses(self._visit)
        while found is not None:
            if isinstance(found, Hearing):
                await self._heard(found)
            if not self._visit.plan.fail_open:
                return  # all end with it
            await pauses.wait()
            found = await self._again(share)

    async def _again(self, share: Share) -> Hearing | TargetFailed | None:
        """None: it is answered with an error, so its server does not want to be asked."""
        try:
            found = await self._ask(share)
        except TargetFailed as failed:
            return kept(failed)
        if isinstance(found, Message):
            return None
        self._open += 1
        return found

    async def _heard(self, hearing: Hearing) -> None:
        try:
            self._end = await _notices(self._visit, self._message, hearing)
        except TargetFailed as failed:
            self._failure = kept(failed)
        finally:
            hearing.opened.call.cancel()
            self._open -= 1
            self._changed.set()


async def _notices(visit: Visit, message: Message, hearing: Hearing) -> Raw:
    """Pass what one server says; its result, which ends the stream. Raises `TargetFailed`."""
    target = hearing.share.target
    rewrite = rewrite_of(visit, target.name, message.request_id)
    try:
        while (event := await hearing.pump.next()) is not None:
            if isinstance(event, Event):
                end = _notice(visit, message, hearing, rewrite, event)
                if end is not None:
                    return end
            elif event.comment is not None:
                visit.out.give(write_aside(Aside(event.comment)))
            if visit.out.is_paused:
                await visit.out.ready()
    except WRONG as error:
        raise wrong(target.name, visit.plan.max_answer, error) from None
    raise TargetFailed(target.name, "its stream broke off")


def _notice(visit: Visit, message: Message, hearing: Hearing, rewrite: Rewrite, event: Event) -> Raw | None:
    """Give one event on, if it was asked for; the result, if it is that. Raises `Malformed`, `TargetFailed`."""
    if not event.data:
        return None
    found = messages.read(event.data)
    if found.is_response:
        if found.request_id != message.request_id:
            return None
        if found.result is UNSET:
            raise TargetFailed(hearing.share.target.name, "it ended its stream with an error")
        return found.result
    if found.is_request or not hearing.granted.grants(found.method):
        return None
    text = rewrite.message(event.data)
    if text is not None:
        visit.out.give(write(Event(text, b"message")))
    return None
