"""Messages between agent and worker as bytes and back. Pure: bytes in, messages out, no socket.

Both ends are processes of one proxy, of one version; still nothing that arrives is trusted with memory: a length above
the limit, an unknown type or a payload that does not fit is a `LinkError`, after which the link is of no use and is
closed.

Frame: length of what follows u32 · type u8 · payload, network byte order. Payload: JSON of the message's fields, but
for `Changes`, which carries resources as they are: type u8 · name length u16 · value length u32 (all ones: gone) ·
name · value, one after the other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

from dataplane.link import messages
from dataplane.link.messages import Changes, Message, Record, Trouble, WantedBind

MAX_FRAME = 64 * 1024 * 1024
"""A single resource may be large (a ConfigMap of CA bundles); a frame beyond this is a broken peer."""

CHUNK_RECORDS, CHUNK_BYTES = 250, 256 * 1024
"""Most of a state in one frame: what a worker takes in without holding its event loop for long (about 0.3 ms)."""

_LENGTH = struct.Struct("!I")
_RECORD = struct.Struct("!BHI")
_GONE = 0xFFFFFFFF


class LinkError(Exception):
    """The other end sent what cannot be a message."""


def encode(message: Message) -> bytes:
    """One frame."""
    kind = CODES[type(message)]
    payload = _WRITERS.get(type(message), _write_json)(message)
    return _LENGTH.pack(len(payload) + 1) + bytes((kind,)) + payload


def chunked(records: Iterable[Record]) -> Iterator[Changes]:
    """Records as messages of bounded size, in their order."""
    chunk: list[Record] = []
    size = 0
    for record in records:
        if chunk and (len(chunk) == CHUNK_RECORDS or size > CHUNK_BYTES):
            yield Changes(tuple(chunk))
            chunk, size = [], 0
        chunk.append(record)
        size += len(record.value or b"") + len(record.name)
    if chunk:
        yield Changes(tuple(chunk))


class Decoder:
    """Bytes of one direction of a link into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are whole now, in order. Raises LinkError; what came before it in `data` is lost."""
        buffer = self._buffer
        buffer += data
        found, at = [], 0
        while len(buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if not 0 < length <= MAX_FRAME:
                raise LinkError(f"frame of {length} bytes")
            end = at + _LENGTH.size + length
            if end > len(buffer):
                break
            found.append(_decode(bytes(memoryview(buffer)[at + _LENGTH.size : end])))
            at = end
        del buffer[:at]
        return found


def _decode(frame: bytes) -> Message:
    kind = _MESSAGES.get(frame[0])
    if kind is None:
        raise LinkError(f"unknown message type {frame[0]}")
    try:
        return _READERS.get(kind, _read_json)(kind, frame[1:])
    except (ValueError, TypeError, KeyError, struct.error, RecursionError) as error:
        raise LinkError(f"{kind.__name__} cannot be read: {error}") from error


# Payloads.


def _write_json(message: Message) -> bytes:
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    return json.dumps(values, separators=(",", ":")).encode()


def _read_json(kind: type[Message], payload: bytes) -> Message:
    values = json.loads(payload)
    if not isinstance(values, dict):
        raise ValueError("not an object")
    message = kind(**values)
    for field in fields(message):
        _check(field.name, getattr(message, field.name), str(field.type))
    return message


def _check(name: str, value: Any, annotation: str) -> None:
    expected = _JSON_TYPES[annotation.partition("[")[0]]
    if not isinstance(value, expected) or isinstance(value, bool):
        raise ValueError(f"{name} is {type(value).__name__}")


_JSON_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "dict": (dict,)}


def _read_prepared(_kind: type[Message], payload: bytes) -> Message:
    values = json.loads(payload)
    binds = tuple(
        WantedBind(str(key), int(port), tuple(map(str, at)), bool(streams), bool(datagrams))
        for key, port, at, streams, datagrams in values["binds"]
    )
    refused = {str(key): str(reason) for key, reason in dict(values["refused"]).items()}
    return messages.Prepared(int(values["number"]), refused, binds)


def _read_troubles(_kind: type[Message], payload: bytes) -> Message:
    return messages.Troubles(tuple(_trouble(*row) for row in json.loads(payload)["rows"]))


def _trouble(*row: Any) -> Trouble:
    """Any: JSON."""
    backend, endpoint, unhealthy, until, name, reason, failures, last = row
    texts = str(backend), str(endpoint), str(name), str(reason)
    return Trouble(*texts[:2], int(unhealthy), float(until), *texts[2:], int(failures), float(last))


def _write_changes(message: Message) -> bytes:
    assert isinstance(message, Changes)
    return b"".join(_written(record) for record in message.records)


def _written(record: Record) -> bytes:
    name = record.name.encode()
    kind = messages.TYPE_URLS.index(record.type_url)
    if record.value is None:
        return _RECORD.pack(kind, len(name), _GONE) + name
    return _RECORD.pack(kind, len(name), len(record.value)) + name + record.value


def _read_changes(_kind: type[Message], payload: bytes) -> Message:
    records, at = [], 0
    while at < len(payload):
        kind, name_length, value_length = _RECORD.unpack_from(payload, at)
        at += _RECORD.size
        name_end = at + name_length
        end = name_end if value_length == _GONE else name_end + value_length
        if end > len(payload) or kind >= len(messages.TYPE_URLS):
            raise ValueError("a record reaches beyond its frame or is of an unknown type")
        value = None if value_length == _GONE else payload[name_end:end]
        records.append(Record(messages.TYPE_URLS[kind], payload[at:name_end].decode(), value))
        at = end
    return Changes(tuple(records))


# Tables. Codes never change their meaning.

_MESSAGES: dict[int, type[Message]] = {
    1: messages.Hello,
    2: messages.Changes,
    3: messages.StateEnd,
    4: messages.OpenBind,
    5: messages.CloseBind,
    6: messages.Drain,
    7: messages.Ping,
    8: messages.DumpRequest,
    9: messages.LogLevel,
    10: messages.Common,
    11: messages.Commit,
    21: messages.BindOpened,
    22: messages.BindClosed,
    23: messages.Pong,
    24: messages.DumpAnswer,
    25: messages.Prepared,
    26: messages.Troubles,
}
CODES = {kind: code for code, kind in _MESSAGES.items()}
_WRITERS: dict[type[Message], Callable[[Message], bytes]] = {messages.Changes: _write_changes}
_READERS: dict[type[Message], Callable[[type[Message], bytes], Message]] = {
    messages.Changes: _read_changes,
    messages.Prepared: _read_prepared,
    messages.Troubles: _read_troubles,
}
