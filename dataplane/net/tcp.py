"""Listening sockets: what an address and port become. Used by the agent, which opens them, and by tests.

No event loop here, and no decision about what to listen on. Raises OSError as the system gives it.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataplane.net.keepalive import Keepalive

ANY_IPV6, ANY_IPV4 = "::", "0.0.0.0"

BACKLOG = 4096
"""Connections that may wait in each socket; the system lowers it to its own limit (net.core.somaxconn)."""

CAN_SHARE_PORT = sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")
"""Several sockets on one port get the connections by turns. Other systems have the option without that meaning."""

_NO_IPV6 = frozenset((errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT))


def listen(address: str, port: int, *, shared: bool) -> socket.socket:
    """A non-blocking listening socket. `shared`: other workers may listen on the same port (`CAN_SHARE_PORT`)."""
    sock = _bound(address, port, shared)
    try:
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def probe(address: str, port: int) -> None:
    """Raise OSError when somebody else holds the port.

    A shared socket would quietly join the port of another process that shares it as well (of the same user), so the
    port is first asked for without sharing.
    """
    _bound(address, port, shared=False).close()


def any_address() -> str:
    """Where a bind without addresses listens: IPv6 and IPv4 by one socket, or IPv4 where there is no IPv6."""
    try:
        with _bound(ANY_IPV6, 0, shared=False):
            return ANY_IPV6
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        return ANY_IPV4


def _bound(address: str, port: int, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        # Connections in TIME_WAIT must not keep a restarted proxy from its port; a listener still does.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared and CAN_SHARE_PORT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            # "::" alone takes IPv4 too; a literal IPv6 address has no IPv4 side.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == ANY_IPV6 else 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


_KEEPALIVE = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")


def keep_alive(sock: socket.socket, values: Keepalive) -> None:
    """Probe silent peers. What a listening socket has, its connections have. Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in zip(_KEEPALIVE, (values.time, values.interval, values.retries), strict=True):
        if hasattr(socket, name):  # not every system lets one choose all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def reset(transport: Any) -> None:
    """Close an asyncio transport's connection so that its peer meets a reset, and not the end of what was sent: asyncio
    itself sends the same for both. Of what is no TCP the connection is aborted."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):  # it is closed already; uvloop says so by ValueError
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


_RESET = struct.pack("ii", 1, 0)
"""socket(7), SO_LINGER: nothing that is not sent yet is waited for."""


def host_port(address: str, port: int) -> str:
    """As written in messages and URLs: `127.0.0.1:80`, `[::1]:80`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
