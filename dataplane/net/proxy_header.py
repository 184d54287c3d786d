"""The header of the PROXY protocol, versions 1 and 2: bytes to addresses, and addresses to bytes. Pure.

A peer that connects for a client (a load balancer that passes TCP on) says by it who the client is, before anything of
the client's own (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, sections 2.1 and 2.2). It is read from
what has come so far, in whatever pieces; what does not begin like a header that is looked for is not one. Reading is
strict: what begins like one and is none is refused, never guessed at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final

V1: Final = b"PROXY "
V2: Final = b"\r\n\r\n\0\r\nQUIT\n"
"""What headers begin with."""

MAX_LINE: Final = 107
"""Bytes of a header of version 1, with its CRLF (section 2.1)."""

MAX_BLOCK: Final = 512
"""Bytes of addresses and TLVs of a header of version 2."""

_FIXED: Final = 16
"""Bytes of a header of version 2 before its addresses."""

_PREFIX = Struct("!12xBBH").unpack_from
_TCP4 = Struct("!4s4xH").unpack_from
_TCP6 = Struct("!16s16xH").unpack_from

_LOCAL, _PROXY = 0x20, 0x21
"""Version and command."""

_INET, _INET6 = 0x11, 0x21
"""Address family and TCP. Other pairs that exist leave the addresses of the connection."""

_OTHERS: Final = frozenset((0x00, 0x12, 0x22, 0x31, 0x32))
"""UNSPEC, UDP over IPv4 and IPv6, Unix stream and datagram (section 2.2)."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of `size` bytes. `address`: the client's, IPv4 written plainly; "": who connected is the client (LOCAL,
    UNKNOWN, families that are no IP)."""

    size: int
    address: str = ""
    port: int = 0


class More:
    """As far as it has come, it may be a header."""


class Absent:
    """What has come is no header."""


class Malformed(ValueError):
    """It began like a header, and is none."""


MORE: Final = More()
ABSENT: Final = Absent()

Reading = Header | More | Absent


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads headers of the versions that begin with one of `signatures`."""

    signatures: tuple[bytes, ...]

    def read(self, data: bytes) -> Reading:
        """What the first bytes of a connection are. Raises Malformed."""
        for signature in self.signatures:
            if data.startswith(signature):
                return _READERS[signature](data)
        return MORE if self._may_begin(data) else ABSENT

    def _may_begin(self, data: bytes) -> bool:
        return any(signature.startswith(data) for signature in self.signatures)


def _line(data: bytes) -> Reading:
    """2.1: one line of US-ASCII, fields apart by one space each."""
    end = data.find(b"\n", 0, MAX_LINE)
    if end < 0:
        if len(data) >= MAX_LINE:
            raise Malformed("a line of more than 107 bytes")
        if _BEGINNING(data) is None:
            raise Malformed("neither TCP4, TCP6 nor UNKNOWN")
        return MORE
    if data[end - 1 : end] != b"\r":
        raise Malformed("a line that does not end with CRLF")
    fields = data[len(V1) : end - 1].split(b" ")
    if fields[0] == b"UNKNOWN":  # what follows is not looked at
        return Header(end + 1)
    if len(fields) != 5:
        raise Malformed("not five fields")
    family, source, destination, *ports = fields
    if family not in _FAMILIES:
        raise Malformed("neither TCP4, TCP6 nor UNKNOWN")
    of = _FAMILIES[family]
    port, _ = (_port(each) for each in ports)
    _address(destination, of)
    return Header(end + 1, _plain(_address(source, of)), port)


_FAMILIES: Final[dict[bytes, type[IPv4Address | IPv6Address]]] = {b"TCP4": IPv4Address, b"TCP6": IPv6Address}


_BEGINNING = re.compile(
    rb"PROXY (?:T|TC|TCP|TCP[46]|TCP[46] [0-9A-Fa-f.: ]*+\r?|U|UN|UNK|UNKN|UNKNO|UNKNOW|UNKNOWN[\x20-\x7e]*+\r?)?"
).fullmatch
"""Of a line of which a part has come."""


def _address(text: bytes, of: type[IPv4Address | IPv6Address]) -> IPv4Address | IPv6Address:
    try:
        address = of(text.decode("ascii"))
    except ValueError:
        raise Malformed("not an address of its family") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise Malformed("an address with a zone")
    return address


def _plain(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


_MOST_DIGITS: Final = 5
_PORTS: Final = 65_536


def _port(text: bytes) -> int:
    """Digits, without a leading zero (2.1)."""
    if not text.isdigit() or len(text) > _MOST_DIGITS or (text[:1] == b"0" and text != b"0") or int(text) >= _PORTS:
        raise Malformed("not a port")
    return int(text)


def _binary(data: bytes) -> Reading:
    """2.2: sixteen bytes, then addresses and what else the length covers (TLVs), which is left out."""
    if len(data) > len(V2) and data[len(V2)] not in (_LOCAL, _PROXY):
        raise Malformed("neither PROXY nor LOCAL of version 2")
    if len(data) < _FIXED:
        return MORE
    command, family, length = _PREFIX(data)
    if length > MAX_BLOCK:
        raise Malformed(f"more than {MAX_BLOCK} bytes of addresses")
    least = _LEAST.get(family)
    if command == _PROXY and ((least is None and family not in _OTHERS) or (least or 0) > length):
        raise Malformed("addresses of a family that does not exist, or cut short")
    size = _FIXED + length
    if len(data) < size:
        return MORE
    if command == _LOCAL or least is None:
        return Header(size)
    if family == _INET:
        raw, port = _TCP4(data, _FIXED)
        return Header(size, str(IPv4Address(raw)), port)
    raw, port = _TCP6(data, _FIXED)
    return Header(size, _plain(IPv6Address(raw)), port)


_LEAST: Final = {_INET: 12, _INET6: 36}
"""Bytes of two addresses and two ports."""

_READERS: Final = {V1: _line, V2: _binary}


def written(version: int, source: tuple[str, int], destination: tuple[str, int]) -> bytes:
    """A header that names a client and where it connected to. What is no IP address, as of a Unix socket, makes it one
    that names no client, as `of_ourselves`. Of two families both are written as IPv6 (2.1 has one family for both)."""
    try:
        ends = [ip_address(address) for address, _ in (source, destination)]
    except ValueError:
        return of_ourselves(version)
    if ends[0].version != ends[1].version:
        ends = [_mapped(each) for each in ends]
    of = ends[0].version
    ports = source[1], destination[1]
    if version == 1:
        return f"PROXY TCP{of} {ends[0]} {ends[1]} {ports[0]} {ports[1]}\r\n".encode()
    addresses = b"".join(each.packed for each in ends) + _PORTS_OF(*ports)
    return V2 + _COMMAND(_PROXY, _INET if of == 4 else _INET6, len(addresses)) + addresses


def of_ourselves(version: int) -> bytes:
    """A header of a connection that is made for no client (LOCAL; UNKNOWN of version 1)."""
    return b"PROXY UNKNOWN\r\n" if version == 1 else V2 + _COMMAND(_LOCAL, 0, 0)


def _mapped(address: IPv4Address | IPv6Address) -> IPv6Address:
    return address if isinstance(address, IPv6Address) else IPv6Address(f"::ffff:{address}")


_COMMAND = Struct("!BBH").pack
_PORTS_OF = Struct("!HH").pack
