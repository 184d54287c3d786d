"""A server's answer on its way to the client: as it is, or message by message where names and ids are the gateway's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp.answers import WRONG, Opened, TargetFailed, take_memory, too_large, wrong
from dataplane.backends.mcp.visit import EVENTS, JSON_LINES, Visit
from dataplane.backends.terminating.pump import pumped
from dataplane.chain.calls import CallFailed
from dataplane.http.heads import Head, is_value, lines_without
from dataplane.http.messages import UNKNOWN, ResponseHead
from dataplane.http.sse import Aside, Event, write, write_aside
from dataplane.mcp import merging, messages, names, renaming
from dataplane.mcp.asked import SESSION
from dataplane.mcp.messages import Malformed, Message

_OK: Final = 200
_NO_SUCCESS: Final = 300
_NOT_PASSED: Final = frozenset(
    (b"mcp-session-id", b"content-length", b"connection", b"keep-alive", b"transfer-encoding")
)
_SESSION: Final = b"\r\n%b:" % SESSION
STREAM: Final = b"text/event-stream"
JSON: Final = b"application/json"

Tag = Callable[[str, messages.Id], str]
"""Target and id of a request that it has for the client, to the id that the client sees."""
_CANCELLED: Final = "notifications/cancelled"
_RELATED: Final = merging.RELATED.encode()
_TOKEN: Final = merging.TOKEN.encode()


def kind_of(opened: Opened) -> bytes:
    """The media type of an answer."""
    return (opened.answer.head.get(b"content-type") or b"").partition(b";")[0].strip().lower()


def passed_lines(head: Head) -> bytes:
    """The header lines of an answer that go on to the client."""
    return lines_without(head.block, head.low, _NOT_PASSED)


def passed_head(head: ResponseHead) -> ResponseHead:
    """The same of a head that goes on as it is: that of the endpoint, unless it names a session."""
    low = head.block.lower() if head.low is None else head.low
    if _SESSION not in low:
        return head
    own = Head(head.block, low)
    own.remove(SESSION)
    return ResponseHead(head.status, head.line, own.block, own.low, head.length, head.is_dated)


async def relay(visit: Visit, opened: Opened, lines: bytes = b"") -> None:
    """Pass an answer on as it is; `lines`: further headers. A client that takes no JSON gets it as an event."""
    call, answer = opened.call, opened.answer
    kind = kind_of(opened)
    if answer.status == _OK and kind == JSON and not visit.takes_json:
        visit.give(await whole(visit, opened), lines)
        return
    head = answer.head
    block = passed_lines(head) + lines
    length = head.get(b"content-length") or b""
    size = int(length) if length.isdigit() and len(length) <= _DIGITS else UNKNOWN
    out = visit.out
    if kind == STREAM:  # events may be long in coming, and the client waits for the head
        out.head(answer.status, block, UNKNOWN, b"", size == 0)
        if size == 0:
            return
    try:
        if not out.has_begun:
            data = await call.receive()
            if not data:
                out.head(answer.status, block, 0, b"", True)
                return
            out.head(answer.status, block, size, data, size == len(data))
            if size == len(data):
                return
        await out.pour(call)
    except CallFailed as error:
        raise TargetFailed(opened.target, str(error)) from None
    out.end()


_DIGITS: Final = 15


async def whole(visit: Visit, opened: Opened) -> bytes:
    """All content of an answer, of at most as many bytes as are read of one, for which there is memory. Raises
    `TargetFailed`."""
    parts, size, most = [], 0, visit.plan.max_answer
    try:
        with visit.claim.reading():
            while data := await opened.call.receive():
                size += len(data)
                if size > most:
                    raise too_large(opened.target, most)
                await take_memory(visit.claim, len(data), opened.target)
                parts.append(data)
    except CallFailed as error:
        raise TargetFailed(opened.target, str(error)) from None
    return b"".join(parts)


MAX_EVENT_ID: Final = 1024
"""Bytes of an id with which a stream is asked for again."""


@dataclass(slots=True)
class Seen:
    """Of a stream of events what is needed to ask for it again: the `last` id, as its server gave it, and how many
    milliseconds that wants to be left alone before (`retry`; WHATWG HTML 9.2.6)."""

    last: bytes | None = None
    retry: int = 0

    def note(self, event: Event | Aside) -> None:
        if event.id is not None:
            self.last = event.id if 0 < len(event.id) <= MAX_EVENT_ID and is_value(event.id) else None
        if event.retry is not None:
            self.retry = event.retry


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How messages of one target become those of the endpoint. `renames`, with several: ids of its events name it, and
    so do resources and tasks wherever they are named. `tag` makes the ids of its requests the gateway's, so that
    answers find it; None: they stay. `hides`, with rules: notices of items that they refuse are left out. `is_resumed`:
    of a stream that goes on where it was broken off. `seen`: notes its events."""

    target: str
    request_id: messages.Id | None
    renames: bool
    tag: Tag | None
    hides: Callable[[str, str, str], bool] | None
    is_resumed: bool = False
    seen: Seen | None = None

    def message(self, text: bytes) -> bytes | None:
        """None: it is not for this client. Raises `Malformed`."""
        message = messages.read(text)
        is_other = self.renames and _RELATED in text and self._related(message)
        if message.is_request:
            if self.renames and _TOKEN in text:
                message.params = merging.token_renamed(message.params, partial(names.tagged, self.target))
            if self.renames:
                message.params = renaming.request(str(message.method), message.params, self.target)
            if self.tag is not None and message.request_id is not None:
                message.id, is_other = self.tag(self.target, message.request_id), True
        elif message.is_response:
            if not self._is_asked(message):
                return None
            if self.renames and message.result is not UNSET:
                before, message.result = message.result, renaming.result(message.result, self.target)
                is_other = is_other or message.result is not before
        elif message.method == _CANCELLED:
            if self.tag is not None:
                message.params, is_other = _request_renamed(message.params, self.target, self.tag), True
        elif message.method in _NAMED:
            if not self._noticed(message):
                return None
            is_other = True
        return messages.encode(message) if is_other else text

    def _is_asked(self, message: Message) -> bool:
        """Whether an answer is one that this server was asked for: clients know their requests by ids alone, and
        another one of several servers may have been asked with that. On a stream that goes on it may be that of any of
        its own."""
        return not self.renames or self.is_resumed or message.request_id in (self.request_id, None)

    def _related(self, message: Message) -> bool:
        """Name the task that it belongs to as clients see it. Raises `Malformed`."""
        rename = partial(names.joined, "task", self.target)
        message.params = merging.related(message.params, rename)
        message.result = merging.related(message.result, rename)
        return True

    def _noticed(self, message: Message) -> bool:
        """Make a notice the gateway's; whether it is for this client. Raises `Malformed`."""
        kind, key = _NAMED[str(message.method)]
        if self.hides is not None:
            fields = messages.object_of(_object(message.params))
            name = messages.text_of(fields.get(key))
            if name is None or self.hides(kind, self.target, name):
                return False
            message.params = messages.raw(fields)  # as it was judged: with one of each key
        if self.renames:
            message.params = renaming.named(_object(message.params), key, kind, self.target)
        return True

    def event(self, event: Event | Aside) -> bytes:
        """b"": none of it is for this client."""
        if self.seen is not None:
            self.seen.note(event)
        event_id = event.id
        if event_id and self.renames:
            event_id = self.target.encode() + b":" + event_id
        if isinstance(event, Aside):
            return write_aside(replace(event, id=event_id))
        data = event.data
        if data:
            found = self.message(data)
            if found is None:
                return b""
            data = found
        return write(replace(event, data=data, id=event_id))


def rewrite_of(visit: Visit, target: str, request_id: messages.Id | None = None, tag: Tag | None = None) -> Rewrite:
    """Of answers of a target, or with no request of a stream of what it has to say. `tag` in place of the usual one."""
    several = visit.plan.several
    hides = visit.hides if visit.policies.rules else None
    return Rewrite(target, request_id, several, tag or (names.tagged if several else None), hides)


def _request_renamed(params: Raw | object, target: str, tag: Tag) -> Raw:
    """A server withdraws a request that it had for the client."""
    fields = messages.object_of(_object(params))
    request_id = messages.id_of(fields.get("requestId"))
    if request_id is not None:
        fields["requestId"] = messages.raw(tag(target, request_id))
    return messages.raw(fields)


def _object(params: Raw | object) -> Raw:
    return params if isinstance(params, Raw) else Raw(b"{}")


_NAMED: Final = {
    "notifications/resources/updated": ("resource", "uri"),
    "notifications/tasks/status": ("task", "taskId"),
}
"""Notices that name an item: its kind, and where."""


async def relay_rewritten(visit: Visit, opened: Opened, rewrite: Rewrite, lines: bytes = b"") -> None:
    """Pass an answer on, message by message; `lines`: further headers."""
    status, kind = opened.answer.status, kind_of(opened)
    if status != _OK and not (rewrite.hides is not None and status < _NO_SUCCESS and kind == STREAM):
        await relay(visit, opened, lines)
        return
    is_plain = not rewrite.renames and (kind == JSON or rewrite.hides is None)
    if kind != STREAM and is_plain:
        await relay(visit, opened, lines)  # one message, which is the answer
        return
    if kind == JSON:
        try:
            text = rewrite.message(await whole(visit, opened))
        except Malformed as error:
            raise wrong(rewrite.target, visit.plan.max_answer, error) from None
        if text is None:
            raise TargetFailed(rewrite.target, "it answered what was not asked")
        visit.give(text, lines)
        return
    if kind != STREAM:
        raise TargetFailed(rewrite.target, "its answer is neither JSON nor a stream of events")
    visit.out.head(_OK, EVENTS + lines)
    await relay_events(visit, opened, rewrite)
    visit.out.end()


async def relay_events(visit: Visit, opened: Opened, rewrite: Rewrite) -> None:
    """The events of a stream, each rewritten."""
    most = visit.plan.max_answer
    try:
        await pumped(opened.call, rewrite.event, visit.out, most)
    except WRONG as error:
        raise wrong(rewrite.target, most, error) from None


__all__ = [
    "JSON_LINES",
    "Message",
    "Rewrite",
    "Seen",
    "kind_of",
    "relay",
    "relay_events",
    "relay_rewritten",
    "rewrite_of",
    "whole",
]
