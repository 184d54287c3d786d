"""A server's answer on its way to the client: as it is, or message by message where names and ids are ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET, Raw

from dataplane.backends.mcp.upstreams import MAX_ANSWER, Opened, TargetFailed, events
from dataplane.backends.mcp.visit import EVENTS, JSON_LINES, Visit
from dataplane.chain.calls import CallFailed
from dataplane.http.heads import Head, without_named
from dataplane.http.messages import UNKNOWN
from dataplane.http.sse import Event, EventReader, EventTooLarge, write
from dataplane.mcp import merging, messages, names
from dataplane.mcp.messages import Malformed, Message

_OK: Final = 200
_NOT_PASSED: Final = {b"mcp-session-id", b"content-length", b"connection", b"keep-alive", b"transfer-encoding"}
STREAM: Final = b"text/event-stream"
JSON: Final = b"application/json"


def kind_of(opened: Opened) -> bytes:
    """The media type of an answer."""
    return (opened.answer.head.get(b"content-type") or b"").partition(b";")[0].strip().lower()


def passed_lines(head: Head) -> bytes:
    """The header lines of an answer that go on to the client."""
    return without_named(head.block, head.low, set(_NOT_PASSED))[0].removeprefix(b"\r\n")


async def relay(visit: Visit, opened: Opened, lines: bytes = b"") -> None:
    """Pass an answer on as it is; `lines`: further headers. A client that takes no JSON gets it as an event."""
    call, answer, _ = opened
    kind = kind_of(opened)
    if answer.status == _OK and kind == JSON and not visit.takes_json:
        visit.give(await whole(opened), lines)
        return
    head = answer.head
    block = passed_lines(head) + lines
    length = head.get(b"content-length") or b""
    size = int(length) if length.isdigit() and len(length) <= _DIGITS else UNKNOWN
    out = visit.out
    if size == 0 or kind == STREAM:  # events may be long in coming, and the client waits for the head
        out.head(answer.status, block, UNKNOWN if kind == STREAM else 0, b"", size == 0)
        if size == 0:
            return
    try:
        while data := await call.receive():
            if out.has_begun:
                out.give(data)
            else:
                out.head(answer.status, block, size, data, size == len(data))
                if size == len(data):
                    return
            await out.ready()
    except CallFailed as error:
        raise TargetFailed(opened.target, str(error)) from None
    if not out.has_begun:
        out.head(answer.status, block, 0, b"", True)
    else:
        out.end()


_DIGITS: Final = 15


async def whole(opened: Opened) -> bytes:
    """All content of an answer, bounded. Raises `TargetFailed`."""
    parts, size = [], 0
    try:
        while data := await opened.call.receive():
            size += len(data)
            if size > MAX_ANSWER:
                raise TargetFailed(opened.target, f"its answer has more than {MAX_ANSWER} bytes")
            parts.append(data)
    except CallFailed as error:
        raise TargetFailed(opened.target, str(error)) from None
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How messages of one target become those of the endpoint: ids of its requests and of its events name it, and so do
    resources."""

    target: str
    request_id: messages.Id | None
    method: str

    def message(self, text: bytes) -> bytes:
        """Raises `Malformed`."""
        message = messages.read(text)
        if message.is_request:
            message.id = names.tagged(self.target, message.request_id or 0)
        elif message.is_response:
            if message.request_id != self.request_id or message.result is UNSET:
                return text
            change = _RESULTS.get(self.method)
            if change is None:
                return text
            message.result = change(message.result, self.target)
        elif message.method in _NOTES:
            message.params = _NOTES[str(message.method)](message.params, self.target)
        else:
            return text
        return messages.encode(message)

    def event(self, event: Event) -> bytes:
        event_id = event.id
        if event_id:
            event_id = self.target.encode() + b":" + event_id
        data = self.message(event.data) if event.data else b""
        return write(replace(event, data=data, id=event_id))


def _task_renamed(result: Raw, target: str) -> Raw:
    """The task that a call has become, if it has."""
    fields = messages.object_of(result)
    task = fields.get("task")
    if task is None:
        return result
    fields["task"] = merging.renamed(task, "taskId", "task", target)
    return messages.raw(fields)


def _task_itself(result: Raw, target: str) -> Raw:
    return merging.renamed(result, "taskId", "task", target)


_RESULTS: Final[dict[str, Callable[[Raw, str], Raw]]] = {
    "resources/read": merging.contents_renamed,
    "tools/call": _task_renamed,
    "tasks/get": _task_itself,
    "tasks/cancel": _task_itself,
}


def _uri_renamed(params: Raw | object, target: str) -> Raw:
    return merging.renamed(_object(params), "uri", "resource", target)


def _request_renamed(params: Raw | object, target: str) -> Raw:
    """A server withdraws a request that it had for the client."""
    fields = messages.object_of(_object(params))
    raw = fields.get("requestId")
    if raw is None:
        return messages.raw(fields)
    value = messages.value_of(raw, _ID)
    if isinstance(value, str | int) and not isinstance(value, bool):
        fields["requestId"] = messages.raw(names.tagged(target, value))
    return messages.raw(fields)


_ID: Final = 1024


def _object(params: Raw | object) -> Raw:
    return params if isinstance(params, Raw) else Raw(b"{}")


def _status_renamed(params: Raw | object, target: str) -> Raw:
    return merging.renamed(_object(params), "taskId", "task", target)


_NOTES: Final[dict[object, Callable[[Raw | object, str], Raw]]] = {
    "notifications/resources/updated": _uri_renamed,
    "notifications/cancelled": _request_renamed,
    "notifications/tasks/status": _status_renamed,
}


async def relay_rewritten(visit: Visit, opened: Opened, rewrite: Rewrite) -> None:
    """Pass an answer on, message by message."""
    if opened.answer.status != _OK:
        await relay(visit, opened)
        return
    kind = kind_of(opened)
    if kind == JSON:
        visit.give(_readable(rewrite.message, await whole(opened), rewrite.target))
        return
    if kind != STREAM:
        raise TargetFailed(rewrite.target, "its answer is neither JSON nor a stream of events")
    visit.out.head(_OK, EVENTS)
    await relay_events(visit, opened, rewrite)
    visit.out.end()


async def relay_events(visit: Visit, opened: Opened, rewrite: Rewrite) -> None:
    """The events of a stream, each rewritten."""
    reader, out = EventReader(MAX_ANSWER), visit.out
    try:
        while data := await opened.call.receive():
            async for event in events(reader, data):
                out.give(_readable(rewrite.event, event, rewrite.target))
            await out.ready()
    except CallFailed as error:
        raise TargetFailed(rewrite.target, str(error)) from None
    except EventTooLarge as error:
        raise TargetFailed(rewrite.target, str(error)) from None


def _readable(change: Callable[..., bytes], what: object, target: str) -> bytes:
    try:
        return change(what)
    except Malformed as error:
        raise TargetFailed(target, f"its answer is not readable: {error}") from None


__all__ = ["JSON_LINES", "Message", "Rewrite", "kind_of", "relay", "relay_events", "relay_rewritten", "whole"]
