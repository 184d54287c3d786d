"""Calls of gRPC: what `calls` has of JSON, of protobuf. Numbers of fields are those of `a2a.proto`; 0.3 has others, and
names tasks `tasks/ID`."""

from __future__ import annotations

import base64
from typing import Final

from dataplane.a2a import methods
from dataplane.a2a.call import GRPC, Call, Facts
from dataplane.a2a.documents import Fields, Unreadable, field, fields
from dataplane.http import grpc

FRAME: Final = 5
"""Bytes before each message of gRPC: whether it is compressed, and its length."""

_NEW, _OLD = methods.SERVICES
_MESSAGE: Final = {_NEW: 2, _OLD: 1}
_METADATA: Final = {_NEW: 4, _OLD: 3}
_TASK: Final = {
    # method -> the field of its request that has the id of the task, in 1.0
    methods.GET: 2,
    methods.CANCEL: 2,
    methods.SUBSCRIBE: 2,
    f"{methods.PUSH}set": 3,
    f"{methods.PUSH}get": 2,
    f"{methods.PUSH}list": 1,
    f"{methods.PUSH}delete": 2,
}
_CONTEXT_OF_LIST: Final = 2
"""The field of the context in 1.0's `ListTasksRequest`."""


def read(facts: Facts, service: str, method: str) -> Call:
    """The call of a request at the path of a gRPC method. Raises `Unreadable`."""
    call = Call(method, GRPC)
    if not facts.body:
        return call
    message = _message(facts)
    if method in (methods.SEND, methods.STREAM):
        _of_message(call, message, service)
    elif service == _OLD:
        call.task = _of_name(text(field(message, 1)))
    elif method in _TASK:
        call.task = text(field(message, _TASK[method]))
    elif method == methods.LIST:
        call.context = text(field(message, _CONTEXT_OF_LIST))
    return call


def _message(facts: Facts) -> bytes:
    """The one message of a body. Raises `Unreadable`."""
    media = facts.content_types[0].partition(b";")[0].strip().lower()
    if media.partition(b"+")[2] not in (b"", b"proto"):
        raise Unreadable("a gRPC message that is no protobuf")
    data = facts.body
    if facts.grpc_kind == grpc.WEB_TEXT:
        try:
            data = base64.b64decode(data, validate=True)
        except ValueError:
            raise Unreadable("text of gRPC-Web that is no base64") from None
    if len(data) < FRAME or data[0] or int.from_bytes(data[1:FRAME], "big") != len(data) - FRAME:
        raise Unreadable("a gRPC message that is compressed, cut off, or one of several")
    return data[FRAME:]


def _of_message(call: Call, request: bytes, service: str) -> None:
    outer = Fields(request)
    message = Fields(outer.part(_MESSAGE[service]))
    call.context, call.task = text(message.bytes_of(2)), text(message.bytes_of(3))
    call.skill = one_skill(_skill(message.part(6)), _skill(outer.part(_METADATA[service])))


def one_skill(of_message: str | None, of_request: str | None) -> str | None:
    """The skill that a message names, else its request. Raises `Unreadable` where they name two."""
    if None not in (of_message, of_request) and of_message != of_request:
        raise Unreadable("two skills at once")
    return of_message if of_message is not None else of_request


MAX_METADATA: Final = 1024
"""Entries of metadata that are looked at."""
MAX_ENTRY: Final = 16
"""Fields of one of them, which has a name and a value."""

SKILLS: Final = ("skillId", "skill_id", "skill")


def _skill(struct: bytes) -> str | None:
    """The skill in a `google.protobuf.Struct`, which is a map of name (1) to value (2), of which 3 is text."""
    found: dict[str, str | None] = {}
    for number, entry in fields(struct, MAX_METADATA):
        if number != 1 or not isinstance(entry, bytes):
            continue
        pair = Fields(entry, MAX_ENTRY)
        name = text(pair.bytes_of(1))
        if name in SKILLS:
            found[name] = _text_value(pair.part(2))
    if len(found) > 1:
        raise Unreadable(f"{' and '.join(sorted(found))} at once")
    return next(iter(found.values()), None)


def _text_value(value: bytes) -> str | None:
    """The text of a `google.protobuf.Value`: one of several fields, of which the last counts."""
    if len({number for number, _ in fields(value, MAX_ENTRY)}) > 1:
        raise Unreadable("a value of two kinds at once")
    return text(field(value, 3, most=MAX_ENTRY))


def _of_name(name: str | None) -> str | None:
    """The id in a resource name of 0.3: `tasks/ID`, `tasks/ID/pushNotificationConfigs/OTHER`."""
    parts = (name or "").split("/")
    return parts[1] if len(parts) > 1 and parts[0] == "tasks" and parts[1] else None


def text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode() or None
    except UnicodeDecodeError:
        raise Unreadable("text that is no UTF-8") from None
