"""Messages of a WebSocket (RFC 6455), of one direction, without extensions: read and written. Pure.

For code that has to know what the two ends say to each other. To pass bytes on needs none of this
(`proxy/response/tunnel`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
"""Opcodes (RFC 6455 11.8)."""
_DATA: Final = (CONTINUATION, TEXT, BINARY)
_CONTROL: Final = (CLOSE, PING, PONG)
MAX_CONTROL: Final = 125
"""Bytes of a control frame (RFC 6455 5.5)."""

GOING_AWAY, PROTOCOL_ERROR, UNSUPPORTED, NOT_ALLOWED, TOO_LARGE, TRY_LATER = 1001, 1002, 1003, 1008, 1009, 1013
"""Why a connection is closed (RFC 6455 7.4.1, and the registry for the last one)."""

_FIN, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
_TWO_BYTES, _EIGHT_BYTES = 126, 127


class Broken(Exception):
    """The peer breaks the protocol, or sends more than may be held. `code`: of the close frame."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class Message(NamedTuple):
    """A whole one, or a control frame; `kind` is its opcode."""

    kind: int
    data: bytes


class _Frame(NamedTuple):
    is_last: bool
    kind: int
    begin: int
    """Where its content is."""
    length: int


class Reader:
    """Bytes of one direction, as messages. `is_client`: it is the client's, whose frames are masked; `most`: bytes of
    a message."""

    __slots__ = ("_buffer", "_kind", "_most", "_parts", "_size", "is_client")

    def __init__(self, is_client: bool, most: int) -> None:
        self.is_client = is_client
        self._most = most
        self._buffer = bytearray()
        self._kind = CONTINUATION
        """Of the message that has begun; `CONTINUATION`: none has."""
        self._parts: list[bytes] = []
        self._size = 0
        """Bytes of `_parts`."""

    @property
    def held(self) -> int:
        """Bytes of what is not whole yet."""
        return len(self._buffer) + self._size

    def feed(self, data: bytes) -> Iterator[Message | None]:
        """What is whole now; None for a frame that is the part of a message. Raises `Broken`. To be read to its end
        before more is fed: what it has yielded is taken out of the buffer then."""
        buffer, at = self._buffer, 0
        buffer += data
        while (frame := self._frame(at)) is not None and len(buffer) >= frame.begin + frame.length:
            at = frame.begin + frame.length
            content = bytes(buffer[frame.begin : at])
            if self.is_client:
                content = _masked(content, bytes(buffer[frame.begin - 4 : frame.begin]))
            yield self._message(frame, content)
        del buffer[:at]

    def _frame(self, at: int) -> _Frame | None:
        """The one that begins there; None: its head is not here. Raises `Broken`."""
        buffer = self._buffer
        if len(buffer) < at + 2:
            return None
        first, second = buffer[at], buffer[at + 1]
        kind, length, begin = first & _OPCODE, second & _LENGTH, at + 2
        self._require(not first & _RESERVED, "a frame has bits of an extension")
        self._require(kind in _DATA or kind in _CONTROL, f"{kind} is no opcode")
        self._require(bool(second & _MASKED) == self.is_client, "a frame is masked as those of the other side")
        if kind in _CONTROL:
            self._require(
                bool(first & _FIN) and length <= MAX_CONTROL, "a control frame is too large, or a part of one"
            )
        else:
            self._require((kind == CONTINUATION) == (self._kind != CONTINUATION), "frames of two messages are mixed")
        extra = 8 if length == _EIGHT_BYTES else 2 if length == _TWO_BYTES else 0
        if extra:
            if len(buffer) < begin + extra:
                return None
            length = int.from_bytes(buffer[begin : begin + extra], "big")
            self._require(length > (0xFFFF if extra > 2 else MAX_CONTROL), "a length is written with too many bytes")
            begin += extra
        if kind in _DATA and self._size + length > self._most:  # a ping between parts is no part
            raise Broken(TOO_LARGE, f"a message is larger than {self._most} bytes")
        if self.is_client:
            begin += 4
        return _Frame(bool(first & _FIN), kind, begin, length) if len(buffer) >= begin else None

    def _message(self, frame: _Frame, content: bytes) -> Message | None:
        if frame.kind in _CONTROL:
            return Message(frame.kind, content)
        self._kind = frame.kind or self._kind
        if frame.is_last and not self._parts:
            kind, self._kind = self._kind, CONTINUATION
            return Message(kind, content)
        if content:  # empty parts take no memory, however many come
            self._parts.append(content)
            self._size += len(content)
        if not frame.is_last:
            return None
        found = Message(self._kind, b"".join(self._parts))
        self._parts.clear()
        self._size, self._kind = 0, CONTINUATION
        return found

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Broken(PROTOCOL_ERROR, otherwise)

    def __repr__(self) -> str:
        return f"Reader({'client' if self.is_client else 'server'}, {self.held} bytes)"


def frame(kind: int, data: bytes, is_client: bool) -> bytes:
    """A message in one frame. `is_client`: it goes to a server, which takes masked ones alone."""
    size, mark = len(data), _MASKED if is_client else 0
    if size <= MAX_CONTROL:
        head = bytes((_FIN | kind, mark | size))
    elif size <= 0xFFFF:
        head = bytes((_FIN | kind, mark | _TWO_BYTES)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FIN | kind, mark | _EIGHT_BYTES)) + size.to_bytes(8, "big")
    if not is_client:
        return head + data
    key = os.urandom(4)
    return head + key + _masked(data, key)


def close(code: int, why: str, is_client: bool) -> bytes:
    """A close frame. `why` is cut to what may stand there."""
    text = why.encode()[: MAX_CONTROL - 2].decode(errors="ignore").encode()
    return frame(CLOSE, code.to_bytes(2, "big") + text, is_client)


def _masked(data: bytes, key: bytes) -> bytes:
    """RFC 6455 5.3; the same both ways."""
    size = len(data)
    if not size:
        return data
    keys = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(keys, "little")).to_bytes(size, "little")
