"""Reads what a client of TLS begins with: for which server, which protocols and versions it asks. Pure.

OpenSSL sees these bytes only when a listener has been found for them: what is no ClientHello, or is for no listener, is
closed without a word, and what passes through undecrypted is never given to it. Bytes come in any pieces; nothing is
remembered between calls, so `read` says from how many bytes on it is worth asking again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, SUPPORTED_VERSIONS, ALPN = 0, 43, 16
HOST_NAME = 0
"""RFC 8446 5.1, 4, 4.2; RFC 6066 3."""

MAX_RECORD: Final = 16_384
MAX_HELLO: Final = 65_536
"""Bytes of a record (RFC 8446 5.1), and of a whole ClientHello: those of browsers have about 2,000."""
MAX_RECORDS: Final = 16
"""Records that a ClientHello may come in."""

_RECORD_HEAD, _MESSAGE_HEAD = 5, 4
_EXTENSION_HEAD: Final = struct.Struct(">HH")
"""Kind and length (RFC 8446 4.2)."""
_SHORT: Final = "the ClientHello ends too early"


@dataclass(frozen=True, slots=True)
class ClientHello:
    server_name: bytes = b""
    """Lower case; b"": none, or none that is a host name."""
    alpn: tuple[bytes, ...] = ()
    versions: tuple[int, ...] = ()
    """As offered: of `supported_versions`, else the one of the head."""


class NotTls(ValueError):
    """These bytes do not begin a connection of TLS."""


def read(data: bytes) -> ClientHello | int:
    """The ClientHello that `data` begins with; or, of one that is not whole yet, how many bytes of `data` there must be
    before it is worth asking again. Raises `NotTls`."""
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
        at += _RECORD_HEAD + length
        if wanted and len(message) >= wanted:
            return _parse(message[_MESSAGE_HEAD:wanted])
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


class _Reader:
    """Takes vectors off the front of bytes."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, length: int) -> bytes:
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise NotTls(_SHORT)
        return self.data[start : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))

    @property
    def is_done(self) -> bool:
        return self.at == len(self.data)


def _parse(body: bytes) -> ClientHello:
    reader = _Reader(body)
    version = reader.number(2)
    reader.take(32)  # random
    if len(reader.vector(1)) > 32:
        raise NotTls("length of the session id")
    suites = reader.vector(2)
    if not suites or len(suites) % 2 or not reader.vector(1):
        raise NotTls("cipher suites or compression methods")
    found: dict[int, bytes] = {}
    if not reader.is_done:
        found = _extensions(reader.vector(2))
        if not reader.is_done:
            raise NotTls("bytes behind the extensions")
    versions = _versions(found.get(SUPPORTED_VERSIONS, b"")) or (version,)
    return ClientHello(_server_name(found.get(SERVER_NAME, b"")), _protocols(found.get(ALPN, b"")), versions)


def _extensions(block: bytes) -> dict[int, bytes]:
    """By their kind. There are a dozen in each hello, so this is most of the work: no call for each."""
    found: dict[int, bytes] = {}
    at, end = 0, len(block)
    while at < end:
        start = at + _EXTENSION_HEAD.size
        if start > end:
            raise NotTls(_SHORT)
        kind, length = _EXTENSION_HEAD.unpack_from(block, at)
        at = start + length
        if at > end:
            raise NotTls(_SHORT)
        if kind in found:  # RFC 8446 4.2
            raise NotTls("an extension comes twice")
        found[kind] = block[start:at]
    return found


def _server_name(extension: bytes) -> bytes:
    """RFC 6066 3: one name of each type; only host names are defined."""
    if not extension:
        return b""
    reader = _Reader(extension)
    names = _Reader(reader.vector(2))
    if not reader.is_done or names.is_done:
        raise NotTls("the server name")
    kind, name = names.number(1), names.vector(2)
    if kind != HOST_NAME or not names.is_done or not _is_host(name):
        raise NotTls("the server name")
    return name.lower()


def _is_host(name: bytes) -> bool:
    """Letters, digits, hyphens, dots, and `_`, which some names have."""
    return 0 < len(name) <= 255 and not name.translate(None, _OF_HOSTS)


_OF_HOSTS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"


def _protocols(extension: bytes) -> tuple[bytes, ...]:
    if not extension:
        return ()
    reader = _Reader(extension)
    names = _Reader(reader.vector(2))
    found = []
    while not names.is_done:
        name = names.vector(1)
        if not name:
            raise NotTls("an empty protocol")
        found.append(name)
    if not reader.is_done or not found:
        raise NotTls("the protocols")
    return tuple(found)


def _versions(extension: bytes) -> tuple[int, ...]:
    if not extension:
        return ()
    reader = _Reader(extension)
    versions = reader.vector(1)
    if not reader.is_done or len(versions) % 2 or not versions:
        raise NotTls("the versions")
    return tuple(int.from_bytes(versions[at : at + 2]) for at in range(0, len(versions), 2))
