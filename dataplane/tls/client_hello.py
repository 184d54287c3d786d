"""Reads for which server a client of TLS asks, of the first bytes that it sends. Pure.

OpenSSL sees these bytes only when a listener has been found for them: what is no ClientHello, or is for no listener, is
closed without a word, and what passes through undecrypted is never given to it. Bytes come in any pieces; nothing is
remembered between calls, so `read` says from how many bytes on it is worth asking again.

Every connection of TLS comes here, mostly with a ClientHello in one record, all at once: that is read where it lies.
Versions, suites and protocols are OpenSSL's to read.
"""

from __future__ import annotations

import struct
from typing import Final

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, ALPN = 0, 16
HOST_NAME = 0
"""RFC 8446 5.1, 4, 4.2; RFC 6066 3."""

MAX_RECORD: Final = 16_384
MAX_HELLO: Final = 65_536
"""Bytes of a record (RFC 8446 5.1), and of a whole ClientHello: those of browsers have about 2,000."""
MAX_RECORDS: Final = 16
"""Records that a ClientHello may come in."""
MAX_EXTENSIONS: Final = 256
"""Extensions of a ClientHello; browsers have twenty. 16,000 of them fit into 65,536 bytes."""
MAX_ALPN: Final = 1024
"""Bytes of the protocols that a ClientHello offers; browsers have 14. 32,000 protocols fit into 65,536 bytes,
which would occupy a worker for milliseconds when one of them is chosen."""

_RECORD_HEAD, _MESSAGE_HEAD = 5, 4
_BEHIND_RANDOM: Final = 34
"""Bytes of version and random, behind which the session id begins."""
_SHORT: Final = "the ClientHello ends too early"

_BEGINNING: Final = struct.Struct("!BBBHBBH")
"""Of a record (its type, version and length) and of a message (its type and length, the highest byte apart)."""
_EXTENSION: Final = struct.Struct("!HH")
_NAME: Final = struct.Struct("!HBH")


class NotTls(ValueError):
    """These bytes do not begin a connection of TLS."""


def read(data: bytes) -> bytes | int:
    """The server's name in the ClientHello that `data` begins with, in lower case; b"" where it has none. Or, of one
    that is not whole yet, how many bytes of `data` there must be before it is worth asking again. Raises `NotTls`."""
    size = len(data)
    if size > _RECORD_HEAD + _MESSAGE_HEAD:
        record, major, minor, content, message, high, length = _BEGINNING.unpack_from(data)
        if (
            content == _MESSAGE_HEAD + length
            and content + _RECORD_HEAD <= size
            and (record, major, message, high) == (HANDSHAKE, 3, CLIENT_HELLO, 0)
            and minor <= 4
            and content <= MAX_RECORD
        ):
            return _server(data, _RECORD_HEAD + _MESSAGE_HEAD, _RECORD_HEAD + content)
    return _read_pieces(data)


def _read_pieces(data: bytes) -> bytes | int:
    """As `read`, of one that is not whole, comes in several records, or is none."""
    at, message, records = 0, b"", 0
    while True:
        head = data[at : at + _RECORD_HEAD]
        _check_head(head)
        if len(head) < _RECORD_HEAD:
            return at + _RECORD_HEAD
        length = int.from_bytes(head[3:])
        records += 1
        if not 0 < length <= MAX_RECORD or records > MAX_RECORDS:
            raise NotTls("length of a record")
        message += data[at + _RECORD_HEAD : at + _RECORD_HEAD + length]
        wanted = _length(message)
        missing = _MESSAGE_HEAD - len(message)
        if missing > 0 and len(data) < at + _RECORD_HEAD + length:  # its own head is judged before the rest has come
            return min(at + _RECORD_HEAD + length, len(data) + (1 if not message else missing))
        at += _RECORD_HEAD + length
        if wanted and len(message) >= wanted:
            return _server(message, _MESSAGE_HEAD, wanted)
        if len(data) < at:
            return at


def _check_head(head: bytes) -> None:
    """Raises `NotTls` as soon as the beginning of a record says so."""
    if head[:1] not in (b"", b"\x16") or head[1:2] not in (b"", b"\x03") or head[2:3] > b"\x04":
        raise NotTls("no record of a handshake")


def _length(message: bytes) -> int:
    """Of the whole message with its head; 0 while that is not known. Raises `NotTls`."""
    if message and message[0] != CLIENT_HELLO:
        raise NotTls("no ClientHello")
    if len(message) < _MESSAGE_HEAD:
        return 0
    length = int.from_bytes(message[1:4])
    if length > MAX_HELLO:
        raise NotTls("length of the ClientHello")
    return _MESSAGE_HEAD + length


def _server(data: bytes, at: int, end: int) -> bytes:
    """Of a ClientHello from `at` to `end` (RFC 8446 4.1.2), with whatever may stand behind it. Raises `NotTls`."""
    try:
        at = _extensions_at(data, at + _BEHIND_RANDOM, end)
        return _name_among(data, at, end) if at else b""
    except (IndexError, struct.error):  # of a byte behind all of them; one behind `end` is found by comparing
        raise NotTls(_SHORT) from None


def _extensions_at(data: bytes, at: int, end: int) -> int:
    """Where the first extension begins, from a session id on; 0: there are none."""
    identifier = data[at]
    at += 1 + identifier
    suites = data[at] << 8 | data[at + 1]
    at += 2 + suites
    methods = data[at]
    at += 1 + methods
    if identifier > 32 or not suites or suites % 2 or not methods:
        raise NotTls("session id, cipher suites or compression methods")
    if at == end:
        return 0
    behind = at + 2 + (data[at] << 8 | data[at + 1])
    if behind != end:
        raise NotTls(_SHORT if behind > end else "bytes behind the extensions")
    return at + 2


def _name_among(data: bytes, at: int, end: int) -> bytes:
    """The server's name among extensions."""
    kinds: list[int] = []
    name = b""
    while at < end:
        kind, length = _EXTENSION.unpack_from(data, at)
        start, at = at + 4, at + 4 + length
        kinds.append(kind)
        if kind == SERVER_NAME:
            name = data[start:at]
        elif kind == ALPN and length > MAX_ALPN:
            raise NotTls("bytes of the protocols")
        if len(kinds) > MAX_EXTENSIONS:
            raise NotTls("number of extensions")
    if at != end:
        raise NotTls(_SHORT)
    if len(set(kinds)) < len(kinds):  # RFC 8446 4.2
        raise NotTls("an extension comes twice")
    return _server_name(name) if name else b""


def _server_name(extension: bytes) -> bytes:
    """RFC 6066 3: a list of one name of each type; only host names are defined."""
    names, kind, length = _NAME.unpack_from(extension)
    name = extension[_NAME.size :]
    if names != len(extension) - 2 or kind != HOST_NAME or length != len(name) or not _is_host(name):
        raise NotTls("the server name")
    return name.lower()


def _is_host(name: bytes) -> bool:
    """Letters, digits, hyphens, dots, and `_`, which some names have."""
    return 0 < len(name) <= 255 and not name.translate(None, _OF_HOSTS)


_OF_HOSTS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
