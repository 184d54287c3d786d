"""A client that asks one proxy over plain sockets: each time on a new connection, and on one that it keeps.

Used by `propagation`. Connections are reset when they are done with: a hundred thousand of them would else wait for
their time to pass and use up the ports of this machine.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

_RESET = struct.pack("ii", 1, 0)
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask for; `kind` says of which sort the route is."""

    kind: str
    host: str
    target: str

    def head(self) -> bytes:
        return f"GET {self.target} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode()


class Asked(NamedTuple):
    kind: str
    status: int


class Client:
    """Of one proxy. Whatever is no answer raises OSError: a connection that is refused or cut is a failure."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._kept: socket.socket | None = None

    def ask(self, request: Request) -> socket.socket:
        """Ask on a new connection, which is the caller's; `answer` reads the answer."""
        connection = self._connect()
        connection.sendall(request.head())
        return connection

    def ask_again(self, request: Request) -> socket.socket:
        """Ask on the connection that is kept."""
        if self._kept is None:
            self._kept = self._connect()
        self._kept.sendall(request.head())
        return self._kept

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def _connect(self) -> socket.socket:
        # Not create_connection, which looks the address up: what a question costs is part of what is measured.
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.settimeout(_TIMEOUT)
        connection.connect(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return connection


def answer(connection: socket.socket) -> int:
    """The status of the answer, when all of it is there."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    while len(body) < _length(head):
        body += _received(connection)
    return int(head[9:12])


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("closed before the whole answer")
    return data


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ValueError(f"an answer without content-length: {head!r}")
