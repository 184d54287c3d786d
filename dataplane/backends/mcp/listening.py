"""`subscriptions/listen`: one stream of notices, of all servers that a client wants to hear of, as rules show them.

Each server is asked for its own part, without resources that rules refuse. The stream begins with one acknowledgement,
of what all of them grant, and passes what was asked for and nothing else. One server without rules answers by itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp import guarding
from dataplane.backends.mcp.answers import Deadline, Opened, TargetFailed, events
from dataplane.backends.mcp.relay import STREAM, Rewrite, kind_of, rewrite_of
from dataplane.backends.mcp.sending import OK, passed_on
from dataplane.backends.mcp.upstreams import LIST_SECONDS, Upstreams, together
from dataplane.backends.mcp.visit import EVENTS, Visit
from dataplane.chain.calls import CallFailed
from dataplane.http.sse import Event, EventReader, EventTooLarge, write
from dataplane.mcp import messages, names, subscriptions
from dataplane.mcp.messages import METHOD_NOT_FOUND, Malformed, Message, Object
from dataplane.mcp.subscriptions import Filter

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan


@dataclass(slots=True)
class _Share:
    """What one server is asked for: `wanted` as it names resources, `shown` by those names as clients see them."""

    target: TargetPlan
    flags: tuple[str, ...]
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> Filter:
        return Filter(self.flags, tuple(self.shown))


@dataclass(slots=True)
class _Hearing:
    """A stream that its server has acknowledged. `rest`: events that came together with that."""

    share: _Share
    opened: Opened
    reader: EventReader
    granted: Filter
    rest: list[Event]

    @property
    def shown(self) -> Filter:
        """What is granted, as clients see it."""
        return Filter(self.granted.flags, tuple(self.share.shown[uri] for uri in self.granted.uris))


async def listen(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """Raises `Malformed`, `TargetFailed`."""
    plan = visit.plan
    if not plan.several and not visit.policies.rules:
        return await passed_on(visit, upstreams, plan.targets[0], message, body, None)
    if plan.several and not visit.is_modern:
        visit.give(messages.error(message.request_id, METHOD_NOT_FOUND, "Method not found"))
        return None
    params = messages.object_of(message.params)
    messages.exact(params, "notifications")
    shares = await _shares(visit, subscriptions.read(params))
    found = await together(visit, [_begun(visit, upstreams, message, params, share) for share in shares])
    hearings = [each for each in found if isinstance(each, _Hearing)]
    try:
        _check(visit, message, found, hearings)
        if not hearings:
            return None
        granted = subscriptions.merged(each.shown for each in hearings)
        visit.out.head(OK, EVENTS)
        visit.out.give(write(Event(subscriptions.acknowledgement(granted, message.request_id), b"message")))
        await _heard(visit, message, hearings)
    finally:
        for each in hearings:
            each.opened.call.cancel()
    return None


SLICE: Final = 8
"""URIs that rules are asked about in one turn of the loop: each may have thousands of characters."""


async def _shares(visit: Visit, wanted: Filter) -> list[_Share]:
    """Who is asked for what. A client that wants nothing that it may have still gets a stream, of the first server."""
    shares = {target.name: _Share(target, wanted.flags) for target in visit.plan.targets}
    for index, uri in enumerate(wanted.uris, 1):
        if not index % SLICE:
            await asyncio.sleep(0)
        if visit.plan.several:
            name, own = names.parted("resource", uri)
        else:
            name, own = visit.plan.targets[0].name, uri
        share = shares.get(name)
        if share is not None and not visit.hides("resource", name, own):
            share.shown[own] = uri
    concerned = [share for share in shares.values() if share.wanted]
    return concerned or [next(iter(shares.values()))]


async def _begun(
    visit: Visit, upstreams: Upstreams, message: Message, params: Object, share: _Share
) -> _Hearing | Message:
    """A stream as far as its acknowledgement; an error of the server as its message. Raises `TargetFailed`."""
    sent = subscriptions.asking(message, params, share.wanted)
    opened = await upstreams.post(share.target, sent, LIST_SECONDS)
    is_open = False
    try:
        if opened.answer.status == OK and kind_of(opened) == STREAM:
            found = await _acknowledged(visit, opened, share, message)
            is_open = isinstance(found, _Hearing)
            return found
        answer = await upstreams.read(opened, message.request_id, share.target.name)
        if answer.result is not UNSET:
            raise TargetFailed(share.target.name, "it answered without a stream")
        return answer
    finally:
        if not is_open:
            opened.call.cancel()


async def _acknowledged(visit: Visit, opened: Opened, share: _Share, message: Message) -> _Hearing | Message:
    calls = visit.x.context.calls
    deadline = Deadline(opened)
    calls.wake_at(calls.clock() + LIST_SECONDS, deadline)
    reader, first, rest = EventReader(visit.plan.max_answer), None, list[Event]()
    try:
        while first is None:
            data = await opened.call.receive()
            if not data:
                raise TargetFailed(share.target.name, "its stream ended without an acknowledgement")
            async for event in events(reader, data):
                if first is not None:
                    rest.append(event)
                elif event.data:
                    first = messages.read(event.data)
        if first.is_response and first.request_id == message.request_id and first.result is UNSET:
            return first
        if first.method != subscriptions.ACKNOWLEDGED:
            raise TargetFailed(share.target.name, "its stream does not begin with an acknowledgement")
        granted = subscriptions.read(messages.object_of(first.params)).within(share.wanted)
        return _Hearing(share, opened, reader, granted, rest)
    except (CallFailed, EventTooLarge) as error:
        raise TargetFailed(share.target.name, str(error)) from None
    except Malformed as error:
        raise TargetFailed(share.target.name, f"its answer is not readable: {error}") from None
    finally:
        deadline.is_met = True


def _check(visit: Visit, message: Message, found: list[object], hearings: list[_Hearing]) -> None:
    """Nothing where there are streams enough; otherwise the error of the only server is given, or one is raised.
    Servers that have no such method have nothing to say. Raises `TargetFailed`, `Malformed`."""
    errors = [each for each in found if isinstance(each, Message) and not _lacks_method(each)]
    if errors and not visit.plan.several:
        visit.give(messages.encode(errors[0]))
        return
    failures = [each for each in found if isinstance(each, TargetFailed)] + [_failure(each) for each in errors]
    if failures and (not visit.plan.fail_open or not hearings):
        raise failures[0]
    if not hearings:
        raise Malformed(METHOD_NOT_FOUND, "Method not found", message.request_id)


def _lacks_method(answer: Message) -> bool:
    code = messages.object_of(answer.error).get("code")
    return bool(messages.value_of(code, _CODE) == METHOD_NOT_FOUND)


_CODE: Final = 32
"""Bytes of a code."""


def _failure(answer: Message) -> TargetFailed:
    text = messages.text_of(messages.object_of(answer.error).get("message")) or "an error"
    return TargetFailed("one of them", f"it answered {subscriptions.METHOD} with {text[:200]}")


# --- the stream


async def _heard(visit: Visit, message: Message, hearings: list[_Hearing]) -> None:
    """Until the streams end: with FailClosed all of them when the first does, so that the client asks anew and misses
    nothing; with FailOpen the others go on. Raises `TargetFailed`."""
    ends: list[Raw | TargetFailed] = []

    async def one(hearing: _Hearing) -> None:
        try:
            ends.append(await _notices(visit, message, hearing))
        except TargetFailed as failed:
            ends.append(failed)
        if not visit.plan.fail_open:
            for each in hearings:
                each.opened.call.cancel()

    await together(visit, [one(hearing) for hearing in hearings])
    counted = ends if visit.plan.fail_open else ends[:1]
    end = next((each for each in counted if isinstance(each, Raw)), None)
    if end is None:
        raise next(each for each in counted if isinstance(each, TargetFailed))
    shown = await guarding.result(visit, message, guarding.names(visit), end)
    visit.out.give(write(Event(messages.result(message.request_id, shown), b"message")))
    visit.out.end()


async def _notices(visit: Visit, message: Message, hearing: _Hearing) -> Raw:
    """Pass what one server says; its result, which ends the stream. Raises `TargetFailed`."""
    target = hearing.share.target
    rewrite = rewrite_of(visit, target.name, message.request_id)
    try:
        rest, hearing.rest = hearing.rest, []
        for event in rest:
            end = _notice(visit, message, hearing, rewrite, event)
            if end is not None:
                return end
        while data := await hearing.opened.call.receive():
            async for event in events(hearing.reader, data):
                end = _notice(visit, message, hearing, rewrite, event)
                if end is not None:
                    return end
            await visit.out.ready()
    except (CallFailed, EventTooLarge) as error:
        raise TargetFailed(target.name, str(error)) from None
    except Malformed as error:
        raise TargetFailed(target.name, f"its answer is not readable: {error}") from None
    raise TargetFailed(target.name, "its stream broke off")


def _notice(visit: Visit, message: Message, hearing: _Hearing, rewrite: Rewrite, event: Event) -> Raw | None:
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
