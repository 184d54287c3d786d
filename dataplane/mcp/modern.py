"""The revision without sessions (2026-07-28): each request says by itself what it is, in its headers and in its body,
and the two have to agree.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from dataplane.mcp import messages
from dataplane.mcp.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Malformed
from dataplane.mcp.methods import METHODS

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.mcp.messages import Message, Object

REVISION: Final = "2026-07-28"
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
HEADER_MISMATCH: Final = -32020

REMOVED: Final = frozenset(
    (
        *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
        *("tasks/list", "tasks/result"),
    )
)
"""Methods of older revisions."""
NAMED: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods whose item is named in a header."""

_BEGIN, _END = "=?base64?", "?="


def check(message: Message, head: Head) -> None:
    """Raises `Malformed` for a request that may not be sent so."""
    request_id = message.request_id
    if message.is_response:
        raise Malformed(INVALID_REQUEST, "this revision has no requests of servers to answer", request_id)
    method = str(message.method)
    if method in REMOVED:
        raise Malformed(METHOD_NOT_FOUND, f"{method} is none of revision {REVISION}", request_id)
    if not message.is_request:
        return
    params = messages.object_of(message.params)
    meta = _meta(params)
    if VERSION_KEY not in meta:
        raise Malformed(INVALID_PARAMS, f"params._meta must have {VERSION_KEY}", request_id)
    if messages.text_of(meta[VERSION_KEY]) != REVISION:
        raise Malformed(HEADER_MISMATCH, f"params._meta does not say {VERSION_KEY} as the header does", request_id)
    if _one(head, b"mcp-method") != method:
        raise Malformed(HEADER_MISMATCH, "header Mcp-Method is not the method of the message", request_id)
    if method in NAMED and _one(head, b"mcp-name") != messages.text_of(params.get(METHODS[method].key)):
        raise Malformed(HEADER_MISMATCH, "header Mcp-Name is not what params name", request_id)


def _meta(params: Object) -> Object:
    """Raises `Malformed`."""
    return messages.object_of(params.get("_meta", Raw(b"{}")))


def is_meant(message: Message) -> bool:
    """Whether a message says its revision by itself, as none of the older ones do. Raises `Malformed`."""
    return message.is_request and VERSION_KEY in _meta(messages.object_of(message.params))


def _one(head: Head, name: bytes) -> str | None:
    """The value of a header that is there once."""
    values = head.get_all(name)
    return _decoded(values[0].decode("latin-1")) if len(values) == 1 else None


def _decoded(value: str) -> str | None:
    if not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    try:
        return b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def name_line(name: str) -> bytes:
    """The header that names an item."""
    is_plain = name.isascii() and name.isprintable() and name == name.strip() and not name.startswith(_BEGIN)
    value = name if is_plain else _BEGIN + b64encode(name.encode()).decode() + _END
    return b"mcp-name: %b\r\n" % value.encode()


def fresh(fields: dict[str, object]) -> dict[str, object]:
    """A result that is merged here: whole, and not to be cached."""
    return {**fields, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
