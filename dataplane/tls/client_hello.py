"""Reads what a client of TLS begins with: for which server, which protocols and versions it asks. Pure.

OpenSSL sees these bytes only when a listener has been found for them: what is no ClientHello, or is for no listener, is
closed without a word, and what passes through undecrypted is never given to it. Bytes come in any pieces; nothing is
remembered between calls, so `read` says from how many bytes on it is worth asking again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, SUPPORTED_VERSIONS, ALPN = 0, 43, 16
HOST_NAME = 0
"""RFC 8446 5.1, 4, 4.2; RFC 6066 3."""

MAX_RECORD: Final = 16_384
MAX_HELLO: Final = 65_536
"""Bytes of a record (RFC 8446 5.1), and of a whole ClientHello: those of browsers have about 2,000."""
MAX_RECORDS: Final = 16
"""Records that a ClientHello may come in."""
MAX_EXTENSIONS: Final = 256
"""Extensions of a ClientHello, and protocols that it offers: browsers have twenty and two. 65,536 bytes have room for
32,000 of them, which would hold a worker for milliseconds, and longer behind this in OpenSSL."""

_RECORD_HEAD, _MESSAGE_HEAD = 5, 4
_AT_IDENTIFIER: Final = 34
"""Behind version and random."""
_SHORT: Final = "the ClientHello ends too early"


class ClientHello(NamedTuple):
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


def _parse(body: bytes) -> ClientHello:
    try:
        return _fields(body)
    except IndexError:  # of a byte behind the end; what a slice cuts short is compared with the end
        raise NotTls(_SHORT) from None


def _fields(body: bytes) -> ClientHello:
    """RFC 8446 4.1.2. Every connection of TLS comes here: lengths are followed in place, without a call for each."""
    version, identifier = body[0] << 8 | body[1], body[_AT_IDENTIFIER]
    if identifier > 32:
        raise NotTls("length of the session id")
    at = _AT_IDENTIFIER + 1 + identifier
    suites = body[at] << 8 | body[at + 1]
    at += 2 + suites
    methods = body[at]
    at += 1 + methods
    if not suites or suites % 2 or not methods:
        raise NotTls("cipher suites or compression methods")
    if at == len(body):
        return ClientHello(versions=(version,))
    end = at + 2 + (body[at] << 8 | body[at + 1])
    if end != len(body):
        raise NotTls(_SHORT if end > len(body) else "bytes behind the extensions")
    found = _extensions(body, at + 2)
    versions = _versions(found.get(SUPPORTED_VERSIONS, b"")) or (version,)
    return ClientHello(_server_name(found.get(SERVER_NAME, b"")), _protocols(found.get(ALPN, b"")), versions)


def _extensions(body: bytes, at: int) -> dict[int, bytes]:
    """From `at` to the end, by their kind."""
    found: dict[int, bytes] = {}
    end = len(body)
    while at < end:
        kind, length = body[at] << 8 | body[at + 1], body[at + 2] << 8 | body[at + 3]
        start, at = at + 4, at + 4 + length
        if at > end:
            raise NotTls(_SHORT)
        if kind in found:  # RFC 8446 4.2
            raise NotTls("an extension comes twice")
        found[kind] = body[start:at]
        if len(found) > MAX_EXTENSIONS:
            raise NotTls("number of extensions")
    return found


def _server_name(extension: bytes) -> bytes:
    """RFC 6066 3: a list of one name of each type; only host names are defined."""
    if not extension:
        return b""
    names, kind, length = extension[0] << 8 | extension[1], extension[2], extension[3] << 8 | extension[4]
    name = extension[5:]
    if names != len(extension) - 2 or kind != HOST_NAME or length != len(name) or not _is_host(name):
        raise NotTls("the server name")
    return name.lower()


def _is_host(name: bytes) -> bool:
    """Letters, digits, hyphens, dots, and `_`, which some names have."""
    return 0 < len(name) <= 255 and not name.translate(None, _OF_HOSTS)


_OF_HOSTS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"


def _protocols(extension: bytes) -> tuple[bytes, ...]:
    if not extension:
        return ()
    at, end = 2, len(extension)
    found = []
    while at < end:
        start, at = at + 1, at + 1 + extension[at]
        found.append(extension[start:at])
        if len(found) > MAX_EXTENSIONS:
            raise NotTls("number of protocols")
    if extension[0] << 8 | extension[1] != end - 2 or at != end or not found or not all(found):
        raise NotTls("the protocols")
    return tuple(found)


def _versions(extension: bytes) -> tuple[int, ...]:
    if not extension:
        return ()
    if extension[0] != len(extension) - 1 or extension[0] % 2 or not extension[0]:
        raise NotTls("the versions")
    return tuple([extension[at] << 8 | extension[at + 1] for at in range(1, len(extension), 2)])
