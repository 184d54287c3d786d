"""The wire revision that a resource needs: an older proxy must refuse it, instead of acting on what it can read of it.

The schema alone says which: by the option `since` of a field (`proto/gatewright/wire/v1/revision.proto`). Both planes
are built from one schema, so the newest revision in it is the one that this code writes and reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from gatewright.wire.v1 import resource_pb2, revision_pb2

_FIRST: Final = 1
"""Of fields without the option."""


def resource(key: str, **kind: Any) -> resource_pb2.Resource:  # Any: one message of Resource.kind, by field name
    """The Resource that carries the one message given, with the revision that it needs."""
    made = resource_pb2.Resource(key=key, **kind)
    made.min_revision = needed(made)
    return made


def needed(message: Message) -> int:
    """The newest revision that a field set in the message, or in one below it, is of."""
    if newest(message.DESCRIPTOR) == _FIRST:  # of most kinds always: nothing to look for
        return _FIRST
    return max(_of_fields(message), default=_FIRST)


def _of_fields(message: Message) -> Iterator[int]:
    for field, value in message.ListFields():
        yield _since(field)
        if field.message_type is not None:
            yield from map(needed, _messages(field, field.message_type, value))


def _messages(field: FieldDescriptor, kind: Descriptor, value: Any) -> Iterable[Message]:  # Any: what the field holds
    if not field.is_repeated:
        return (value,)
    if not kind.GetOptions().map_entry:
        return value  # type: ignore[no-any-return]
    return value.values() if kind.fields_by_name["value"].message_type is not None else ()


@cache
def newest(descriptor: Descriptor) -> int:
    """The newest revision that any field of the message, or of those below it, is of."""
    return max((_since(field) for each in _below(descriptor) for field in each.fields), default=_FIRST)


def _below(descriptor: Descriptor) -> set[Descriptor]:
    """The message and all that it can hold. They may hold one another."""
    found: set[Descriptor] = set()
    waiting = [descriptor]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += [field.message_type for field in each.fields if field.message_type is not None]
    return found


def _since(field: FieldDescriptor) -> int:
    if not field.has_options:
        return _FIRST
    return field.GetOptions().Extensions[revision_pb2.since] or _FIRST  # type: ignore[index]  # as generated stubs say it


NEWEST: Final = newest(resource_pb2.Resource.DESCRIPTOR)
"""The wire revision of this code: what its control plane writes at most, and its proxies read."""
