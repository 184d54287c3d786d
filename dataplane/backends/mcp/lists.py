"""Lists: of one server filtered by rules, of several merged, page by page.

A page holds what each server gives for one of its pages; our cursor names those that have more. So nothing is lost, and
what is held at a time is bounded by what a server may answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET, Raw

from dataplane.backends.mcp import processing
from dataplane.backends.mcp.answers import AnswerRefused, Congested, TargetFailed, unreadable
from dataplane.backends.mcp.relay import JSON, kind_of
from dataplane.backends.mcp.sending import passed_on
from dataplane.backends.mcp.upstreams import LIST_SECONDS, NOT_FOUND, Upstreams, together
from dataplane.mcp import merging, messages, sessions
from dataplane.mcp.dialogue import BOUND
from dataplane.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Malformed, Message
from dataplane.mcp.methods import METHODS, Method
from dataplane.mcp.policies import MCP
from gatewright.kept_errors import again

if TYPE_CHECKING:
    from dataplane.backends.mcp.visit import Visit
    from dataplane.chain.reply import Reply
    from dataplane.mcp.plans import TargetPlan

SLICE: Final = 128
"""Items that are looked at in one turn of the loop."""
_OK: Final = 200


class _Part(NamedTuple):
    """What one target has for this page."""

    target: TargetPlan
    items: list[Raw]
    cursor: str | None
    rest: messages.Object


async def merged(visit: Visit, upstreams: Upstreams, message: Message, body: bytes) -> Reply | None:
    """Answer a request for a list, such as `tools/list`: `body` is the request as it came. None: the answer was given.

    Raises:
        TargetFailed: of a server, where the list would lack its items (`failureMode`); `Congested` first.
        Malformed: the request's cursor is none of this list.
    """
    method = METHODS[str(message.method)]
    if not visit.plan.several and not visit.policies.rules and not processing.reads_answers(visit, message):
        return await passed_on(visit, upstreams, visit.plan.targets[0], message, body, None)
    params = messages.object_of(message.params)
    pages = _pages(visit, message, params)
    with visit.claim.reading():
        found = await together(visit, [_part(visit, upstreams, message, method, params, *page) for page in pages])
    failures = [each for each in found if isinstance(each, TargetFailed)]
    congested = [each for each in failures if isinstance(each, Congested)]
    if failures and (congested or not visit.plan.fail_open or len(failures) == len(pages)):
        raise again((congested or failures)[0])  # a list is not cut short for want of memory
    parts = [each for each in found if isinstance(each, _Part)]
    answers = [each for each in found if isinstance(each, Message)]
    if answers and (not parts or not visit.plan.several):
        visit.give(messages.encode(answers[0]))
        return None
    result = await _page(visit, message, method, parts)
    result = await processing.result(visit, message, processing.names(visit), result)
    visit.give(messages.result(message.request_id, result))
    return None


def _pages(visit: Visit, message: Message, params: messages.Object) -> list[tuple[TargetPlan, str | None]]:
    """Which targets are asked, with which cursor of theirs. Raises `Malformed`."""
    plan = visit.plan
    if "cursor" not in params or not plan.several:
        return [(target, None) for target in plan.targets]
    text = messages.text_of(params["cursor"]) or ""
    cursor = sessions.opened_cursor(text, visit.x.context.of_kind(MCP).sealer, visit.owner, str(message.method))
    if cursor is None:
        raise Malformed(INVALID_PARAMS, "params.cursor is none of this list", message.request_id)
    return [(plan.by_name[name], theirs) for name, theirs in cursor.pages if name in plan.by_name]


async def _part(
    visit: Visit,
    upstreams: Upstreams,
    message: Message,
    method: Method,
    params: messages.Object,
    target: TargetPlan,
    cursor: str | None,
) -> _Part | Message:
    """What one target answers; an error of JSON-RPC as its message. Of a server that lacks the method, nothing."""
    mine = params if cursor is None else {**params, "cursor": messages.raw(cursor)}
    sent = Message("2.0", message.id, message.method, messages.raw(mine) if mine else UNSET)
    opened = await upstreams.post(target, messages.encode(sent), LIST_SECONDS)
    try:
        status = opened.answer.status
        may_say_why = (visit.is_modern or status == NOT_FOUND) and kind_of(opened) == JSON
        if status != _OK and not may_say_why:
            raise TargetFailed(target.name, f"it answered {message.method} with {status}")
        answer = await upstreams.read(opened, message.request_id, target.name)
    finally:
        opened.call.cancel()
    if answer.result is UNSET:
        return _without(visit, target, answer)
    try:
        await _in_turn(answer.result)
        fields = messages.object_of(answer.result)
        await _in_turn(answer.result)
        items = await _items(visit, method, target, fields)
        return _Part(target, items, messages.text_of(fields.pop("nextCursor", None)), fields)
    except Malformed as error:
        raise unreadable(target.name, error) from None


def _without(visit: Visit, target: TargetPlan, answer: Message) -> _Part | Message:
    if not visit.plan.several:
        return answer
    if messages.code_of(answer) == METHOD_NOT_FOUND:
        return _Part(target, [], None, {})
    if visit.plan.fail_open:
        return answer
    error = messages.object_of(answer.error)
    text = messages.text_of(error.get("message")) or "an error"
    if target.is_stdio and BOUND in messages.object_of(error.get("data", UNSET)):
        raise AnswerRefused(target.name, text[:200])
    raise TargetFailed(target.name, f"it answered a list with {text[:200]}")


async def _in_turn(result: Raw) -> None:
    """To go through a long result once more, wait for a turn that has time: all of them take milliseconds."""
    if memoryview(result).nbytes > messages.MANY_BYTES:
        await asyncio.sleep(0)


async def _items(visit: Visit, method: Method, target: TargetPlan, fields: messages.Object) -> list[Raw]:
    """Those that rules show, in slices: there may be ten thousand."""
    rules = visit.policies
    decide = rules.for_lists if rules.rules else None
    found: list[Raw] = []
    for index, (name, item) in enumerate(merging.items(method, target.name, fields, visit.plan.several), 1):
        if not index % SLICE:
            visit.no_item(method.kind)
            await asyncio.sleep(0)
        if decide is not None:
            visit.item(method.kind, target.name, name)
            if decide(visit.x) is not None:  # type: ignore[arg-type]  # the exchange is the context
                continue
        found.append(item)
    visit.no_item(method.kind)
    return found


async def _page(visit: Visit, message: Message, method: Method, parts: list[_Part]) -> Raw:
    if not visit.plan.several:
        (part,) = parts
        return merging.page(method, part.items, part.cursor, part.rest)
    found: list[Raw] = []
    more: list[tuple[str, str]] = []
    for part in parts:
        found += part.items
        if part.cursor is not None:
            more.append((part.target.name, part.cursor))
    cursor = None
    if more:
        made = sessions.Cursor(str(message.method), more)
        cursor = sessions.sealed_cursor(made, visit.x.context.of_kind(MCP).sealer, visit.owner)
    return merging.page(method, found, cursor, is_modern=visit.is_modern)
