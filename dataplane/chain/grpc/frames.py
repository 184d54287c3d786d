"""Messages in a stream of bytes, both ways (PROTOCOL-HTTP2, Length-Prefixed-Message). Pure."""

from __future__ import annotations

from typing import Final

from dataplane.chain.calls import CallFailed

_HEAD: Final = 5
"""Bytes before a message: whether it is compressed, and its length."""


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


class Messages:
    """Those that a server sends, of at most `most` bytes each. We ask for no compression, so there is none."""

    __slots__ = ("_data", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> bytes | None:
        """The next that is here whole, or None. Raises `CallFailed`, as soon as what has come says that it is none."""
        data = self._data
        if not data:
            return None
        if data[0]:
            raise CallFailed("invalid", "a compressed message, though compression was not asked for")
        if len(data) < _HEAD:
            return None
        end = _HEAD + int.from_bytes(data[1:_HEAD], "big")
        if end - _HEAD > self._most:
            raise CallFailed("too_large", f"a message of more than {self._most} bytes")
        if len(data) < end:
            return None
        message = bytes(data[_HEAD:end])
        del data[:end]
        return message

    @property
    def is_empty(self) -> bool:
        """Nothing of a further message has come."""
        return not self._data
