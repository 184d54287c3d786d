"""JSON-RPC messages of MCP, read strictly and lazily: the envelope is decoded, what it carries stays text.

So a message of megabytes costs what a scan costs, and what is not looked at passes as it was written. What was looked
at is written anew before it goes on: a repeated key must not mean one thing here and another one to the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dataplane.mcp import halves

ReadT = TypeVar("ReadT")

Id = str | int
"""Of a request. MCP knows no others, and no null."""


class Malformed(Exception):
    """No message: `code` is JSON-RPC's, the text says what is wrong and repeats nothing of it."""

    def __init__(self, code: int, text: str, request_id: Id | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.request_id = request_id


class Beyond(Malformed):
    """A message that may be one, and is not read: it is larger than what is read, or has what is no text where text is
    needed. Nothing but this message is concerned."""


PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603


class Message(msgspec.Struct, omit_defaults=True):
    """A request (method and id), a notification (method), or a response (id with result or error)."""

    jsonrpc: str | UnsetType = UNSET
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def is_request(self) -> bool:
        return self.method is not UNSET and self.id is not UNSET

    @property
    def is_response(self) -> bool:
        return self.method is UNSET

    @property
    def request_id(self) -> Id | None:
        return None if self.id is UNSET else self.id

    def __repr__(self) -> str:
        return f"Message({'response' if self.is_response else self.method!r}, id={self.request_id!r})"


Object = dict[str, Raw]
"""A JSON object of which only the keys were read."""

_message = msgspec.json.Decoder(Message).decode
_object = msgspec.json.Decoder(Object).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_scan = msgspec.json.Decoder(Raw).decode
_encode = msgspec.json.Encoder().encode

_NOT_READABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


def encode(message: object) -> bytes:
    """A message as it is sent."""
    return halves.escaped(_encode(message))


def text(raw: Raw) -> bytes:
    """A part of a message as others read it."""
    return halves.escaped(bytes(raw))


def read(body: bytes) -> Message:
    """The one message of a body. Raises `Malformed`, `Beyond`; batches are none (MCP 2025-06-18)."""
    try:
        str(body, "utf-8")  # text that is only scanned is not looked at otherwise
        message = _decoded(_message, body)
    except msgspec.ValidationError as error:
        raise _no_message(body, error) from None
    except RecursionError:
        raise Beyond(PARSE_ERROR, "the message has too many levels") from None
    except UnicodeDecodeError:
        raise _no_text(body) from None
    except _NOT_READABLE:
        raise Malformed(PARSE_ERROR, "the message is not JSON") from None
    _check(message)
    return message


def _decoded(decode: Callable[[bytes], ReadT], body: bytes) -> ReadT:
    """What a decoder makes of it, with halves of surrogate pairs or not. Raises its errors, `Beyond` for too many."""
    try:
        return decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        kept = halves.kept(body)
        if kept is body:
            raise
    if kept is None:
        raise Beyond(PARSE_ERROR, "the message has too many halves of surrogate pairs")
    return decode(kept)


def _no_text(body: bytes) -> Malformed:
    """Of bytes that are no UTF-8, or half a pair in an id or a method: JSON but for these, or none at all."""
    try:
        _decoded(_scan, body)
    except _NOT_READABLE:
        return Malformed(PARSE_ERROR, "the message is not JSON")
    return Beyond(PARSE_ERROR, "the message is not UTF-8, or its id or method is no text")


def _no_message(body: bytes, error: msgspec.ValidationError) -> Malformed:
    """What is wrong with a body that is no object of this form: it was read as far as to see that, no further."""
    try:
        _decoded(_scan, body)
    except RecursionError:
        return Beyond(PARSE_ERROR, "the message has too many levels")
    except _NOT_READABLE:
        return Malformed(PARSE_ERROR, "the message is not JSON")
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        return Malformed(INVALID_REQUEST, "batches of messages are not supported")
    return Malformed(INVALID_REQUEST, f"not a JSON-RPC message: {error}")


def _check(message: Message) -> None:
    request_id = message.request_id
    if message.jsonrpc != "2.0":
        raise Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', request_id)
    if message.id is None and not (message.is_response and message.error is not UNSET):
        raise Malformed(INVALID_REQUEST, "id must be a string or an integer")
    answers = (message.result is not UNSET) + (message.error is not UNSET)
    if message.is_response:
        if answers != 1 or message.id is UNSET:
            raise Malformed(INVALID_REQUEST, "a message has a method, or an id with a result or an error", request_id)
    elif answers:
        raise Malformed(INVALID_REQUEST, "a request has no result and no error", request_id)
    elif not message.method:
        raise Malformed(INVALID_REQUEST, "method is empty", request_id)


def object_of(raw: Raw | UnsetType) -> Object:
    """The keys of an object that was scanned; {} where there is none. Raises `Malformed` for what is no object,
    `Beyond` for one that is not read."""
    if raw is UNSET:
        return {}
    text = bytes(raw)
    try:
        _check_size(text)
        return _decoded(_object, text)
    except UnicodeDecodeError:
        raise Beyond(INVALID_PARAMS, "a key of an object is no text") from None
    except _NOT_READABLE:
        raise Malformed(INVALID_PARAMS, "params must be an object") from None


def exact(value: Object, *names: str) -> None:
    """Raises `Malformed` where one of these names is spelled with other letters as well, or instead: some servers (of
    Go, of .NET) take `Name` for `name`, and would do something else than rules were asked about."""
    folded = {name.casefold() for name in names}
    for key in value:
        if key not in names and key.casefold() in folded:
            raise Malformed(INVALID_PARAMS, "a name in other letters than the protocol's")


MANY_BYTES: Final = 65_536
"""Bytes of an object below which its keys are not counted."""
MANY_KEYS: Final = 10_000
MANY_BRACES: Final = 200_000
MANY_ITEMS: Final = 50_000
"""Items of a list, and objects within it, which are cheaper to count."""


class _Any(msgspec.Struct):
    """An object, passed over."""


_objects = msgspec.json.Decoder(list[_Any]).decode


class _Large(msgspec.Struct):
    """The parts of MCP's objects that may be long."""

    arguments: Raw = Raw()
    tools: Raw = Raw()
    prompts: Raw = Raw()
    resources: Raw = Raw()
    resourceTemplates: Raw = Raw()
    tasks: Raw = Raw()
    contents: Raw = Raw()
    content: Raw = Raw()
    structuredContent: Raw = Raw()
    messages: Raw = Raw()
    inputResponses: Raw = Raw()
    inputRequests: Raw = Raw()
    task: Raw = Raw()


_large = msgspec.json.Decoder(_Large).decode


def _check_size(text: bytes) -> None:
    """Raises `Malformed` for an object of thousands of keys: each costs, where scanning does not. Those within its long
    parts are not looked at here."""
    if len(text) <= MANY_BYTES or text.count(b'":') <= MANY_KEYS:
        return
    parts = _large(text)
    rest = len(text) - sum(len(bytes(getattr(parts, name))) for name in parts.__struct_fields__)
    if rest > MANY_BYTES:
        raise Beyond(INVALID_PARAMS, "an object has too many keys")


def items_of(raw: Raw | None) -> list[Raw]:
    """The items of a list that was scanned; of a long one objects, of a bounded number. Raises `Malformed` and
    `Beyond`."""
    if raw is None:
        return []
    try:
        text = bytes(raw)
        if len(text) > MANY_BYTES and (text.count(b"{") > MANY_BRACES or len(_objects(text)) > MANY_ITEMS):
            raise Beyond(INTERNAL_ERROR, "the list has too many items")
        return _items(raw)
    except _NOT_READABLE:
        raise Malformed(INTERNAL_ERROR, "the list is not readable") from None


def text_of(raw: Raw | None) -> str | None:
    """A string that was scanned; None for anything else."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except _NOT_READABLE:
        return None


MAX_ID: Final = 1024
"""Bytes of an id, or of a token of progress, that a message names."""


def id_of(raw: Raw | None) -> Id | None:
    """An id that was scanned; None for anything else. Raises `Malformed` for a number that is none."""
    if raw is None or len(bytes(raw)) > MAX_ID:
        return None
    value = value_of(raw, MAX_ID)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def value_of(raw: Raw | None, most: int) -> Any:  # Any: JSON
    """A value as a whole, of at most `most` bytes. Raises `Malformed`: reading takes ten times as long as scanning."""
    if raw is None:
        return None
    if len(bytes(raw)) > most:
        raise Malformed(INVALID_PARAMS, f"more than {most} bytes")
    try:
        return msgspec.json.decode(raw)
    except _NOT_READABLE:
        raise Malformed(INVALID_PARAMS, "not readable") from None


def raw(value: object) -> Raw:
    """A value as text of JSON."""
    return Raw(_encode(value))


def code_of(message: Message) -> Any:  # Any: JSON
    """The code of a JSON-RPC error; None: it is none. Raises `Malformed` for one that is no code."""
    return value_of(object_of(message.error).get("code"), _CODE)


_CODE: Final = 32
"""Bytes of a code."""


def request(method: str, request_id: Id, params: Raw | UnsetType = UNSET) -> bytes:
    return encode(Message("2.0", request_id, method, params))


def notification(method: str, params: Raw | UnsetType = UNSET) -> bytes:
    return encode(Message("2.0", UNSET, method, params))


def result(request_id: Id | None, value: Raw) -> bytes:
    return encode(Message("2.0", request_id, result=value))


def error(request_id: Id | None, code: int, text: str, data: object = None) -> bytes:
    body: dict[str, object] = {"code": code, "message": text}
    if data is not None:
        body["data"] = data
    return encode(Message("2.0", request_id, error=raw(body)))
