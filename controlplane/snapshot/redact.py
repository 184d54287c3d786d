"""Resources for people's eyes: without the values that must not be seen.

Called by everything that shows resources (CSDS, dumps); never by what sends them to a proxy. Hidden are the fields of
the table below and every field whose proto option `debug_redact` is set, at any depth; keys of maps stay visible.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from controlplane.snapshot.records import ENDPOINT_TYPE, RESOURCE_TYPE
from gatewright.wire.v1 import backend_pb2, resource_pb2

HIDDEN: Final = "[redacted]"

HIDDEN_FIELDS: Final = frozenset({"gatewright.wire.v1.Secret.data"})

MESSAGES: Final[dict[str, Callable[[bytes], Message]]] = {
    RESOURCE_TYPE: resource_pb2.Resource.FromString,
    ENDPOINT_TYPE: backend_pb2.Endpoint.FromString,
}
"""Types whose content is looked into. Any other type is opaque and passes as it is."""


def redacted(content: AnyMessage) -> AnyMessage:
    """A copy of a resource that may be shown. Content of our own types that cannot be read is hidden whole."""
    parse = MESSAGES.get(content.type_url)
    if parse is None:
        return content
    try:
        message = parse(content.value)
    except DecodeError:
        return AnyMessage(type_url=content.type_url)
    hide(message)
    return AnyMessage(type_url=content.type_url, value=message.SerializeToString(deterministic=True))


def hide(message: Message) -> None:
    """Hide in place what must not be seen; unknown fields go too, as it is unknown what they hold."""
    message.DiscardUnknownFields()
    if not _may_hide(message.DESCRIPTOR):
        return
    for field, value in message.ListFields():
        if _is_hidden(field):
            _blank(message, field)
        elif field.message_type is not None and _may_hide(field.message_type):
            _hide_within(field, value)


def _hide_within(field: FieldDescriptor, value: object) -> None:
    if isinstance(value, Message):
        hide(value)
    elif _is_map(field):
        for entry in value.values():  # type: ignore[attr-defined]  # a protobuf map of messages
            hide(entry)
    else:
        for entry in value:  # type: ignore[attr-defined]  # a repeated message
            hide(entry)


def _blank(message: Message, field: FieldDescriptor) -> None:
    """Replace the values of one field by a mark of their type, or clear it where the type cannot hold one."""
    value = getattr(message, field.name)
    if _is_map(field):
        mark = _mark(_map_value(field))
        keys = list(value)
        message.ClearField(field.name)
        if mark is not None:
            getattr(message, field.name).update(dict.fromkeys(keys, mark))
    elif field.is_repeated or _mark(field) is None:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _mark(field))


def _mark(field: FieldDescriptor) -> str | bytes | None:
    if field.type == FieldDescriptor.TYPE_STRING:
        return HIDDEN
    return HIDDEN.encode() if field.type == FieldDescriptor.TYPE_BYTES else None


def _map_value(field: FieldDescriptor) -> FieldDescriptor:
    assert field.message_type is not None  # a map field always has its entry message
    return field.message_type.fields_by_name["value"]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


@cache
def _is_hidden(field: FieldDescriptor) -> bool:
    return field.full_name in HIDDEN_FIELDS or field.GetOptions().debug_redact


@cache
def _may_hide(message: Descriptor) -> bool:
    """Whether a hidden field can be reached from this message: most resources need no walk."""
    seen: set[str] = set()
    waiting = [message]
    while waiting:
        current = waiting.pop()
        if current.full_name in seen:
            continue
        seen.add(current.full_name)
        if any(_is_hidden(field) for field in current.fields):
            return True
        waiting.extend(field.message_type for field in current.fields if field.message_type is not None)
    return False
