"""`subscriptions/listen`: one stream of notices, of all servers that a client wants to hear of, as rules show them.

Each server is asked for its own part, without resources that rules refuse. The stream begins with one acknowledgement,
of what all of them grant, and passes what was asked for and nothing else. One server without rules answers by itself.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from dataplane.backends.mcp import listened
from dataplane.backends.mcp.answers import WRONG, Deadline, Opened, TargetFailed, wrong
from dataplane.backends.mcp.listened import Hearing, Share
from dataplane.backends.mcp.relay import STREAM, kind_of
from dataplane.backends.mcp.sending import OK, passed_on
from dataplane.backends.mcp.upstreams import LIST_SECONDS, Upstreams, together
from dataplane.backends.mcp.visit import EVENTS, Visit
from dataplane.backends.terminating.pump import EventPump
from dataplane.http.sse import Event, write
from dataplane.mcp import messages, names, subscriptions
from dataplane.mcp.messages import METHOD_NOT_FOUND, Malformed, Message, Object
from dataplane.mcp.subscriptions import Filter
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply


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
    shares = await shares_of(visit, subscriptions.read(params))
    found = await together(visit, [_begun(visit, upstreams, message, params, share) for share in shares])
    hearings = [each for each in found if isinstance(each, Hearing)]
    try:
        _check(visit, message, found, hearings)
        if not hearings:
            return None
        granted = subscriptions.merged(each.shown for each in hearings)
        visit.out.head(OK, EVENTS)
        visit.out.give(write(Event(subscriptions.acknowledgement(granted, message.request_id), b"message")))
        streams = [(share, each) for share, each in zip(shares, found, strict=True) if not isinstance(each, Message)]
        await listened.pass_on(visit, message, streams, partial(_begun, visit, upstreams, message, params))
    finally:
        for each in hearings:
            each.opened.call.cancel()
    return None


SLICE: Final = 2048
"""Characters of URIs that rules are asked about between two looks at the time: to judge one of `spellings.MAX_NAME`
takes milliseconds."""
SHORT: Final = 256
"""A URI counts for so many at least: rules are asked, however short it is."""


async def shares_of(visit: Visit, wanted: Filter) -> list[Share]:
    """Who is asked for what. A client that wants nothing that it may have still gets a stream, of the first server."""
    shares = {target.name: Share(target, wanted.flags) for target in visit.plan.targets}
    size = 0
    for uri in wanted.uris:
        size += max(SHORT, len(uri))
        if size >= SLICE:
            size = 0
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
    visit: Visit, upstreams: Upstreams, message: Message, params: Object, share: Share
) -> Hearing | Message:
    """A stream as far as its acknowledgement; an error of the server as its message. Raises `TargetFailed`."""
    sent = subscriptions.asking(message, params, share.wanted)
    opened = await upstreams.post(share.target, sent, LIST_SECONDS)
    is_open = False
    try:
        if opened.answer.status == OK and kind_of(opened) == STREAM:
            found = await _acknowledged(visit, opened, share, message)
            is_open = isinstance(found, Hearing)
            return found
        answer = await upstreams.read(opened, message.request_id, share.target.name)
        if answer.result is not UNSET:
            raise TargetFailed(share.target.name, "it answered without a stream")
        return answer
    finally:
        if not is_open:
            opened.call.cancel()


async def _acknowledged(visit: Visit, opened: Opened, share: Share, message: Message) -> Hearing | Message:
    calls = visit.x.context.calls
    deadline = Deadline(opened)
    calls.wake_at(calls.clock() + LIST_SECONDS, deadline)
    most = visit.plan.max_answer
    pump, first = EventPump(opened.call, most), None
    try:
        while first is None:
            event = await pump.event()
            if event is None:
                raise TargetFailed(share.target.name, "its stream ended without an acknowledgement")
            if event.data:
                first = messages.read(event.data)
        if first.is_response and first.request_id == message.request_id and first.result is UNSET:
            return first
        if first.method != subscriptions.ACKNOWLEDGED:
            raise TargetFailed(share.target.name, "its stream does not begin with an acknowledgement")
        granted = subscriptions.read(messages.object_of(first.params)).within(share.wanted)
        return Hearing(share, opened, pump, granted)
    except WRONG as error:
        raise wrong(share.target.name, most, error) from None
    finally:
        deadline.is_met = True


def _check(visit: Visit, message: Message, found: list[object], hearings: list[Hearing]) -> None:
    """Nothing where there are streams enough; otherwise the error of the only server is given, or one is raised.
    Servers that have no such method have nothing to say. Raises `TargetFailed`, `Malformed`."""
    errors = [each for each in found if isinstance(each, Message) and not _lacks_method(each)]
    if errors and not visit.plan.several:
        visit.give(messages.encode(errors[0]))
        return
    failures = [each for each in found if isinstance(each, TargetFailed)] + [_failure(each) for each in errors]
    if failures and (not visit.plan.fail_open or not hearings):
        raise again(failures[0])
    if not hearings:
        raise Malformed(METHOD_NOT_FOUND, "Method not found", message.request_id)


def _lacks_method(answer: Message) -> bool:
    return bool(messages.code_of(answer) == METHOD_NOT_FOUND)


def _failure(answer: Message) -> TargetFailed:
    text = messages.text_of(messages.object_of(answer.error).get("message")) or "an error"
    return TargetFailed("one of them", f"it answered {subscriptions.METHOD} with {text[:200]}")
