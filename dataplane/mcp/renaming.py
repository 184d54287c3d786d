"""Names in what a server of several says, as clients see them: wherever a message names a resource or a task, it does
so by a name that leads back to that server.

What may name one, as tables: items of lists, results, the server's own requests. Tables know fields by where they
stand, not by the method: which request an answer belongs to is not known on a stream that goes on where it broke off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dataplane.mcp import messages, names
from dataplane.mcp.messages import INTERNAL_ERROR, Beyond

MOST: Final = 10_000
"""Resources that one message names: each costs what a hundred bytes of other content do."""

Change = Callable[[Raw, str], Raw]
"""A part of a message, and the target that said it; the same object where nothing in it is a name."""


def result(found: Raw, target: str) -> Raw:
    """A result. Raises `Malformed`."""
    return _fields(_RESULT if _may_name(found) else _TASK, found, target)


def request(method: str, params: Raw | UnsetType, target: str) -> Raw | UnsetType:
    """Params of a request that a server has for the client. Raises `Malformed`."""
    if params is UNSET or method not in _REQUESTS or not _may_name(params):
        return params
    return _fields(_REQUESTS[method], params, target)


def item(raw: Raw, key: str, kind: str, target: str) -> Raw:
    """An item of a list. Raises `Malformed`."""
    return _fields({key: partial(_name, kind), "_meta": _meta}, raw, target)


def named(raw: Raw, key: str, kind: str, target: str) -> Raw:
    """An object whose `key` names an item. Raises `Malformed`."""
    return _fields({key: partial(_name, kind)}, raw, target)


def _may_name(raw: Raw) -> bool:
    """Whether a resource may be named in it: what is large and names none is not taken apart. Raises `Beyond`."""
    text = bytes(raw)
    if text.count(_URI) > MOST:
        raise Beyond(INTERNAL_ERROR, f"it names more than {MOST} resources")
    return b"resource" in text or _URI in text or _ESCAPED in text


_URI: Final = b'uri"'
_ESCAPED: Final = b"\\u00"
"""Letters may be written so."""


# --- how parts change


def _name(kind: str, raw: Raw, target: str) -> Raw:
    name = messages.text_of(raw)
    return raw if name is None else messages.raw(names.joined(kind, target, name))


def _fields(changes: Mapping[str, Change], raw: Raw, target: str) -> Raw:
    """An object of which these fields change; what is no object stays."""
    if bytes(memoryview(raw)[:1]) != b"{":
        return raw
    fields, is_other = messages.object_of(raw), False
    for key in changes.keys() & fields.keys():
        before = fields[key]
        fields[key] = changes[key](before, target)
        is_other = is_other or fields[key] is not before
    return messages.raw(fields) if is_other else raw


def _each(change: Change, raw: Raw, target: str) -> Raw:
    """A list, or one item in place of it; each changes."""
    if bytes(memoryview(raw)[:1]) != b"[":
        return change(raw, target)
    before = messages.items_of(raw)
    after = [change(each, target) for each in before]
    is_same = all(one is other for one, other in zip(before, after, strict=True))
    return raw if is_same else messages.raw(after)


def _values(change: Change, raw: Raw, target: str) -> Raw:
    """An object of which each value changes."""
    return _fields(dict.fromkeys(messages.object_of(raw), change), raw, target)


def _block(raw: Raw, target: str) -> Raw:
    """A block of content (MCP 2025-11-25, Tools, Tool Result)."""
    try:
        change = _BLOCKS.get(_kind(raw).type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return raw  # it has no type, so no client can read it as one that names a resource
    return raw if change is None else change(raw, target)


class _Kind(msgspec.Struct):
    type: str = ""


_kind = msgspec.json.Decoder(_Kind).decode


def _asked(raw: Raw, target: str) -> Raw:
    """A request within a result (MCP 2026-07-28, `inputRequests`)."""
    method = messages.text_of(messages.object_of(raw).get("method"))
    return _fields({"params": partial(_fields, _REQUESTS.get(method or "", {}))}, raw, target)


# --- where names are

_uri: Final = partial(_name, "resource")
_task: Final = partial(_name, "task")
_resource: Final = partial(_fields, {"uri": _uri})
_contents: Final = partial(_each, _block)
_BLOCKS: Final[dict[str, Change]] = {
    "resource_link": _resource,
    "resource": partial(_fields, {"resource": _resource}),
    "tool_result": partial(_fields, {"content": _contents}),
}
"""By their type."""
_meta: Final[Change] = partial(
    _fields,
    {
        "ui": partial(_fields, {"resourceUri": _uri}),  # SEP-1865, MCP Apps
        "ui/resourceUri": _uri,  # its first form, which its library still writes beside the other
        "openai/outputTemplate": _uri,
    },
)
_messages: Final = partial(_each, partial(_fields, {"content": _contents}))
_REQUESTS: Final[dict[str, dict[str, Change]]] = {"sampling/createMessage": {"messages": _messages}}

_TASK: Final[dict[str, Change]] = {
    "taskId": _task,  # the task itself; of the extension also what a call has become
    "task": partial(_fields, {"taskId": _task}),
}
_RESULT: Final[dict[str, Change]] = {
    **_TASK,
    "_meta": _meta,
    "content": _contents,  # of a call
    "messages": _messages,  # of a prompt
    "contents": partial(_each, _resource),  # of a read
    "inputRequests": partial(_values, _asked),
    "result": lambda raw, target: _fields(_RESULT, raw, target),  # of a task that is done
}
