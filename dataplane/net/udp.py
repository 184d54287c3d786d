"""Sockets of UDP: bound ones that datagrams come to, with the address that each came to, and replies from it.

No event loop here, and no decision about who is answered. Raises OSError as the system gives it.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Final, NamedTuple

from dataplane.net.tcp import ANY_IPV6, CAN_SHARE_PORT

MAX_DATAGRAM: Final = 65_535

IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)
"""Linux's number: Python has the name from 3.14 on (ip(7))."""

_PKTINFO4 = struct.Struct("@i4s4s")
"""in_pktinfo of ip(7): interface, our address (of replies: the one to send from), address in the header."""
_PKTINFO6 = struct.Struct("@16si")
"""in6_pktinfo of RFC 3542 6: address, interface."""

Ancillary = list[tuple[int, int, bytes]]
NO_ANCILLARY: Final[Ancillary] = []
ANCILLARY_SIZE: Final = socket.CMSG_SPACE(_PKTINFO4.size) + socket.CMSG_SPACE(_PKTINFO6.size)
"""Bytes of ancillary data that a datagram comes with at most."""


class Datagram(NamedTuple):
    data: bytes
    source: Any
    """As the socket names it: what `reply` wants back."""
    ancillary: Ancillary
    """What a reply takes along so that it leaves from the address that the datagram came to."""


def listen(address: str, port: int, *, shared: bool) -> socket.socket:
    """A non-blocking socket that datagrams come to. `shared`: other workers may be bound to the same port; the system
    has datagrams of one peer come to one of them, by a hash of both ends."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        if shared and CAN_SHARE_PORT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sock.family == socket.AF_INET6:
            # "::" alone takes IPv4 too; a literal IPv6 address has no IPv4 side.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == ANY_IPV6 else 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def probe(address: str, port: int) -> None:
    """Raise OSError when somebody else holds the port."""
    listen(address, port, shared=False).close()


def receive(sock: socket.socket) -> Datagram | None:
    """The next datagram; None when there is none now."""
    try:
        data, ancillary, _, source = sock.recvmsg(MAX_DATAGRAM, ANCILLARY_SIZE)
    except (BlockingIOError, InterruptedError):
        return None
    return Datagram(data, source, _from_where_it_came(ancillary))


def _from_where_it_came(ancillary: list[tuple[int, int, bytes]]) -> Ancillary:
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO and len(data) >= _PKTINFO6.size:
            address, _ = _PKTINFO6.unpack_from(data)
            return [(level, kind, _PKTINFO6.pack(address, 0))]
        if level == socket.IPPROTO_IP and kind == IP_PKTINFO and len(data) >= _PKTINFO4.size:
            _, local, _ = _PKTINFO4.unpack_from(data)
            return [(level, kind, _PKTINFO4.pack(0, local, bytes(4)))]
    return NO_ANCILLARY


def reply(sock: socket.socket, data: bytes, to: Any, ancillary: Ancillary) -> bool:
    """Send a datagram from the address that `ancillary` names; False where it was lost (the system takes no more now,
    or knows no way to that peer)."""
    try:
        sock.sendmsg([data], ancillary, 0, to)
    except OSError:
        return False
    return True


def connect(address: str, port: int) -> socket.socket:
    """A non-blocking socket that sends to one endpoint, and gets what that one sends."""
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock
